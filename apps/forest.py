"""Breadth-first search from many sources at once: hops to the nearest of them, and which one that is.

``mpirun -n 4 python -m apps.forest graph.h5 --roots 17,99,3``

>>> from cusp import forest, partition_graph
>>> graph = partition_graph(([0, 1, 4], [1, 2, 3]))
>>> trees = forest(graph, roots=[0, 4])
>>> trees.hops
array([0, 1, 2, 1, 0], dtype=int32)
>>> trees.root
array([0, 0, 0, 4, 4])
"""

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.search import TREES
from cusp.apps.verify.paths import verify_forest
from cusp.program.cli import node_list
from cusp.program.warm_up import FAR_NODE

UNREACHED = np.iinfo(np.int64).max


def forest(part: Partition, sync: Sync, roots: list[int]) -> Answer:
    """Hops to the nearest of ``roots`` along out-edges, and that root, the lowest of several. Collective.

    Hops and root are one number, hops in the higher bits, so MIN keeps the nearest root and, of several, the lowest.

    Returns
    -------
    Answer
        ``hops`` (int32) and ``root`` (int64) of this rank's masters; -1 where there is no path from any root.

    Raises
    ------
    OptionError
        On every rank: a root is not a node of the graph.
    """
    for root in roots:
        part.check_node(root, "root")
    one_hop = 1 << part.num_nodes.bit_length()
    tree, rounds = TREES.run(part, sync, {root: root for root in roots}, np.int64, one_hop=one_hop)
    values = tree.masters()
    unreached = values == UNREACHED
    hops, root = (values // one_hop).astype(np.int32), values % one_hop
    hops[unreached] = root[unreached] = -1
    return Answer({"hops": hops, "root": root}, -1, rounds)


APP = App(
    name="forest",
    summary="breadth-first search from many sources: the nearest source of each node, and the hops to it",
    run=lambda part, sync, _, prepared, options: forest(part, sync, options.roots),
    verify=lambda part, sync, _, answer, prepared, options: verify_forest(part, sync, options.roots, **answer.labels),
    add_options=lambda parser: parser.add_argument(
        "--roots", type=node_list, required=True, metavar="NODE,NODE...", help="the sources"
    ),
    needs_source=False,
    nodes=("root",),
    rehearsed={"roots": [FAR_NODE]},
    needs_rounds=lambda options: "",
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
