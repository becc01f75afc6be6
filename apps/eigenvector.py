"""Eigenvector centrality: a node is as central as its in-neighbours are together, up to a factor for all nodes.

``mpirun -n 4 python -m apps.eigenvector graph.h5 --tolerance 1e-9 --verify --output eigenvector.h5``

>>> from cusp import eigenvector, partition_graph
>>> graph = partition_graph(([0, 1, 2, 2], [1, 2, 0, 1]))
>>> eigenvector(graph).eigenvector.round(3)
array([0.414, 0.727, 0.548])
"""

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.shared.neighbour_sums import ITERATED, Neighbours, Sums, add_options, prepare_sums, repeat
from cusp.apps.verify.centrality import verify_eigenvector
from cusp.kernels.arrays import mapped, total_of_floats
from cusp.runtime.devices import xp_of


def eigenvector(
    part: Partition, sync: Sync, neighbours: Neighbours, tolerance: float = 1e-6, iterations: int = 1000
) -> Answer:
    """The left eigenvector of the largest eigenvalue, by the power method. Collective.

    Bonacich, J. Math. Sociol. 2 (1972); von Mises and Pollaczek-Geiringer, ZAMM 9 (1929). With the values themselves
    added to the sums, as by a loop at each node, values do not swing between the two sides of a bipartite graph.

    Returns
    -------
    Answer
        ``eigenvector`` (float64) of this rank's masters, whose squares add up to 1 over all ranks; figure
        ``l1_change``: what one more iteration would change in all.

    Raises
    ------
    ConvergenceError
        On every rank.
    """
    sums = Sums(part, sync, neighbours)

    def step(values: np.ndarray) -> np.ndarray:
        new = mapped(np.add, values, sums.of(values))
        norm = np.sqrt(sync.total(total_of_floats(mapped(np.square, new)))[0])
        return mapped(lambda some: some / norm, new)

    start = xp_of(part.device).full(part.num_masters, part.num_nodes**-0.5)
    values, rounds, change = repeat(sync, step, start, tolerance, iterations)
    return Answer({"eigenvector": values}, None, rounds, {"l1_change": change})


APP = App(
    name="eigenvector",
    summary="eigenvector centrality of every node",
    prepare=prepare_sums,
    run=lambda part, sync, source, neighbours, options: eigenvector(
        part, sync, neighbours, options.tolerance, options.iterations
    ),
    verify=lambda part, sync, source, answer, neighbours, options: verify_eigenvector(
        part, sync, answer.labels["eigenvector"], options.tolerance, neighbours.weights is not None
    ),
    add_options=lambda parser: add_options(parser, 1e-6, "all values together"),
    **ITERATED,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
