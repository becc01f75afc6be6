"""Maximal independent set: nodes of which no two are neighbours, and to which no other node can be added.

``mpirun -n 4 python -m apps.mis graph.h5 --policy cvc --seed 7 --verify --output set.h5``

>>> from cusp import mis, partition_graph
>>> graph = partition_graph(([0, 1, 2, 3], [1, 2, 3, 4]))
>>> mis(graph, seed=5).in_set
array([1, 0, 1, 0, 1], dtype=uint8)
"""

import numpy as np

from cusp import MIN, Answer, App, EdgeOperator, Label, Partition, Sync, main, run_main
from cusp.apps.shared.splitmix64 import distinct_lots, key_of
from cusp.apps.verify.independent import verify_independent
from cusp.kernels.arrays import total
from cusp.runtime.devices import xp_of
from gluon.reduction import ASSIGN

INSIDE, OUTSIDE = -1, 2**63 - 1  # in place of the rank of a node that is decided
OUT = EdgeOperator("dst.rank", into="src.least", where="0 <= src.rank < outside")
INTO = EdgeOperator("src.rank", into="dst.least", where="0 <= dst.rank < outside")


def mis(part: Partition, sync: Sync, seed: int = 1) -> Answer:
    """A maximal independent set of the graph without directions and loops. Collective.

    Nodes have random ranks (Luby, SIAM J. Comput. 1986). Whoever ranks before all of its undecided neighbours is in the
    set, and its neighbours are not: this is what a loop over the nodes in the order of their ranks would choose
    (Blelloch, Fineman, Shun, SPAA 2012), so the seed decides, not the partition.

    Returns
    -------
    Answer
        ``in_set`` (uint8, 0 or 1) of this rank's masters; the number of ``members`` as a figure.
    """
    xp = xp_of(part.device)
    rank, least = Label(part, np.int64, OUTSIDE, ASSIGN), Label(part, np.int64, OUTSIDE, MIN)
    own, rounds = rank.masters(), 0
    own[:] = distinct_lots(part.gids[: part.num_masters], key_of(seed), part.num_nodes)
    rank.mark_all()
    while True:
        undecided = (own != INSIDE) & (own != OUTSIDE)
        if sync.total(total(undecided)) == (0,):
            break
        sync.broadcast(rank, read="any")
        rank.swap_updated()
        least.values.fill(OUTSIDE)
        for look in (OUT,) if part.symmetric else (OUT, INTO):
            look(part, rank=rank, least=least, outside=OUTSIDE)
        sync.reduce(least, write="any")
        lowest = least.masters()
        left, taken = undecided & (lowest == INSIDE), undecided & (own <= lowest)  # equal along a loop
        own[left], own[taken] = OUTSIDE, INSIDE
        rank.mark(xp.flatnonzero(left | taken))
        least.swap_updated()
        sync.end_round()
        rounds += 1
    inside = own == INSIDE
    return Answer({"in_set": inside.astype(np.uint8)}, None, rounds, {"members": sync.total(total(inside))[0]})


APP = App(
    name="mis",
    summary="a maximal independent set, ignoring edge direction",
    run=lambda part, sync, source, prepared, options: mis(part, sync, options.seed),
    verify=lambda part, sync, source, answer, prepared, options: verify_independent(
        part, sync, answer.labels["in_set"], **answer.figures
    ),
    needs_source=False,
    seeded=True,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
