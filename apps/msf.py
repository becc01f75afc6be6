"""Minimum spanning forest: edges that connect all that the graph connects, and weigh least in all.

``mpirun -n 4 python -m apps.msf graph.h5 --policy cvc --verify --output forest.h5``

>>> from cusp import msf, partition_graph
>>> found = msf(partition_graph(([0, 1, 2, 2], [1, 2, 0, 3], [4, 2, 3, 7])))
>>> found.weight, found.edges["in_forest"]
(12, array([0, 1, 1, 1], dtype=uint8))
"""

from typing import Any

import numpy as np

from cusp import MIN, Answer, App, Label, Partition, Sync, main, run_main
from cusp.apps.operators.choices.interfaces import Msf
from cusp.apps.operators.structure.interfaces import Cc
from cusp.apps.shared.components import Directory, come_first
from cusp.apps.shared.edge_order import EdgeOrder
from cusp.apps.verify.msf import verify_msf
from cusp.kernels.arrays import take, total, total_of_floats
from cusp.runtime.devices import backend, move, to_host, xp_of


def msf(part: Partition, sync: Sync, maximum: bool = False) -> Answer:
    """The minimum spanning forest of the graph without directions; without weights every edge weighs 1. Collective.

    Every component takes its lightest edge to another, until none has one (Boruvka, 1926; on GPUs: Fallin et al., SC
    2023). Each rank does so with its own edges first, as no other edge of it can be in the forest; then all do with
    those that are left, unless no other rank has a node of their tree. Of edges that weigh the same, that with the
    lowest end is first, then that with the lower other end, then the one from the lower end to the other: so the forest
    does not depend on the partition.

    Parameters
    ----------
    maximum : bool
        The heaviest edges in place of the lightest.

    Returns
    -------
    Answer
        Of this rank's masters, ``component`` (int64): the smallest node of the tree. Of its edges, ``in_forest``
        (uint8): 1 of those in the forest, each in one direction only. Figures: their ``weight``; ``members``, how many.
    """
    ops, xp, order = backend(Msf, part.device), xp_of(part.device), EdgeOrder(part, maximum)
    parents, in_forest, alone = _own_forest(part, order)
    trees, names, kept, left = _open_trees(part, sync, parents, in_forest)
    edges, directory, rounds = order.candidates(left), Directory(sync, part.num_nodes), sync.highest(alone)
    active, members = xp.arange(left.size), [kept]
    while True:
        best = xp.full(names.size, -1)
        active = ops.choose(edges, active, trees, best)
        if sync.total(active.size) == (0,):
            break
        here, found = to_host(names), xp.flatnonzero(best >= 0)
        own = come_first(sync, here[to_host(found)], order.keys(edges, best[found]))
        first = xp.unique(best[found[move(own, part.device)]])  # of two trees, perhaps
        members.append(edges.places[first])
        directory.unite(*(here[to_host(trees[ends[first]])] for ends in (edges.sources, edges.targets)))
        here, places = np.unique(directory.look_up(here), return_inverse=True)
        names, trees = move(here, part.device), take(move(places.astype(np.int32), part.device), trees)
        sync.end_round()
        rounds += 1
    places, component = xp.concatenate(members), names[trees[: part.num_masters]]
    in_forest[left], in_forest[places] = 0, 1
    return Answer({"component": component}, None, rounds, _figures(part, sync, places), {"in_forest": in_forest})


def _own_forest(part: Partition, order: EdgeOrder) -> tuple[Any, Any, int]:
    """The forest of this rank's edges: the root of each proxy's tree, ``in_forest``, and rounds.

    The light edges connect most nodes, and then most of the others are inside a tree and need not be looked at again.
    """
    ops, xp = backend(Msf, part.device), xp_of(part.device)
    parents, in_forest = xp.arange(part.num_proxies, dtype=np.int32), xp.zeros(part.num_local_edges, np.uint8)
    best, rounds = xp.full(part.num_proxies, -1), 0
    for light, end in order.halves():
        sources, places = ops.list_edges(part, order.of_nodes, parents, end, order.maximum, light)
        edges, active = order.candidates(places, sources), xp.arange(places.size)
        while (active := ops.choose(edges, active, parents, best)).size:
            ops.join(edges, best, parents, in_forest)
            backend(Cc, part.device).flatten(parents)
            rounds += 1
    return parents, in_forest, rounds


def _open_trees(part: Partition, sync: Sync, parents: Any, in_forest: Any) -> tuple[Any, Any, Any, Any]:
    """Trees with nodes that other ranks have, too, fall apart: each of their nodes is a tree.

    Returns the tree of each proxy, (proxies,) int32; the lowest gid of each tree; the places of edges in the forest,
    inside trees, and of those that are now between trees.
    """
    xp, lists = xp_of(part.device), sync.plan.lists("any")
    opened, names = xp.zeros(part.num_proxies, np.bool_), Label(part, np.int64, 0, MIN)
    for lids in (*lists.mirrors, *lists.masters):
        opened[parents[lids]] = True
    opened = opened[parents]
    trees = xp.where(opened, xp.arange(part.num_proxies, dtype=np.int32), parents)
    names.values[:] = part.gids
    backend(Cc, part.device).lower_roots(trees, names.values, names.updated)
    places = xp.flatnonzero(in_forest.view(np.bool_))
    left = opened[part.targets[places]]
    return trees, names.values, places[~left], places[left]


def _figures(part: Partition, sync: Sync, places: Any) -> dict[str, Any]:
    """The weight, exact if weights are whole numbers and it is below 2^62, and the number of edges. Collective."""
    weights = xp_of(part.device).ones(places.size, np.int8) if part.weights is None else part.weights[places]
    floats = weights.dtype.kind == "f"
    whole, weight, members = sync.total(
        0 if floats else total(weights), total_of_floats(weights.astype(np.float64)), places.size
    )
    return {"weight": weight if floats or abs(weight) >= 2.0**62 else whole, "members": members}


APP = App(
    name="msf",
    summary="a minimum spanning forest, ignoring edge direction",
    run=lambda part, sync, source, prepared, options: msf(part, sync, options.maximum),
    verify=lambda part, sync, source, answer, prepared, options: verify_msf(part, sync, answer, options.maximum),
    nodes=("component",),
    add_options=lambda parser: parser.add_argument(
        "--maximum", action="store_true", help="the heaviest edges in place of the lightest"
    ),
    needs_source=False,
    weighted=True,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
