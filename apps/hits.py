"""HITS: hubs, which have edges to good authorities, and authorities, which have edges from good hubs.

``mpirun -n 4 python -m apps.hits graph.h5 --verify --output hits.h5``

>>> from cusp import hits, partition_graph
>>> found = hits(partition_graph(([0, 0, 1, 3], [1, 2, 2, 2])))
>>> found.hubs.round(3)
array([0.414, 0.293, 0.   , 0.293])
>>> found.authorities.round(3)
array([0.   , 0.293, 0.707, 0.   ])
"""

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.shared.neighbour_sums import ITERATED, Neighbours, Sums, add_options, prepare_both, repeat
from cusp.apps.verify.centrality import verify_hits
from cusp.kernels.arrays import mapped, total_of_floats
from cusp.runtime.devices import xp_of


def hits(
    part: Partition, sync: Sync, both: tuple[Neighbours, ...], tolerance: float = 1e-8, iterations: int = 1000
) -> Answer:
    """Hubs and authorities by the power method: the first singular vectors (Kleinberg, J. ACM 46, 1999). Collective.

    Returns
    -------
    Answer
        ``hubs`` and ``authorities`` (float64) of this rank's masters; each has the sum 1 over all ranks, also in a
        graph without edges, where all nodes are alike. Figure ``l1_change``: what one more iteration would change of
        the hubs in all.

    Raises
    ------
    ConvergenceError
        On every rank.
    """
    into, out = (Sums(part, sync, neighbours) for neighbours in both)
    start = xp_of(part.device).full(part.num_masters, 1 / part.num_nodes)

    def shares(sums: np.ndarray) -> np.ndarray:
        (total,) = sync.total(total_of_floats(sums))
        return mapped(lambda some: some / total, sums) if total > 0 else start

    def step(hubs: np.ndarray) -> np.ndarray:
        return shares(out.of(shares(into.of(hubs))))

    hubs, rounds, change = repeat(sync, step, start, tolerance, iterations)
    return Answer({"hubs": hubs, "authorities": shares(into.of(hubs))}, None, rounds, {"l1_change": change})


APP = App(
    name="hits",
    summary="hubs and authorities",
    prepare=prepare_both,
    run=lambda part, sync, source, both, options: hits(part, sync, both, options.tolerance, options.iterations),
    verify=lambda part, sync, source, answer, both, options: verify_hits(
        part, sync, **answer.labels, tolerance=options.tolerance, weighted=both[0].weights is not None
    ),
    add_options=lambda parser: add_options(parser, 1e-8, "all hubs together"),
    **ITERATED,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
