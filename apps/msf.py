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
from cusp.apps.operators.structure.interfaces import Candidates, Cc, Msf
from cusp.apps.shared.components import Directory, come_first
from cusp.apps.verify.msf import verify_msf
from cusp.kernels.arrays import mapped, take, total, total_of_floats
from cusp.runtime.devices import backend, move, to_host, xp_of

SIGN = np.int64(-(2**63))
SAMPLE = 1 << 12  # edges whose weights say which are light
LIGHT = 2  # edges per node


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
    ops, xp = backend(Msf, part.device), xp_of(part.device)
    order = xp.empty(part.num_proxies, np.uint32)  # of local ids by gid
    order[part.lid_map.table] = xp.arange(part.num_proxies, dtype=np.uint32)
    parents, in_forest, alone = _own_forest(part, order, maximum)
    trees, names, edges, members = _open_trees(part, sync, order, parents, in_forest, maximum)
    directory, active, rounds = Directory(sync, part.num_nodes), xp.arange(edges.places.size), sync.highest(alone)
    while True:
        best = xp.full(names.size, -1)
        active = ops.choose(edges, active, trees, best)
        if sync.total(active.size) == (0,):
            break
        here, found = to_host(names), xp.flatnonzero(best >= 0)
        first = best[found]
        source, target = (part.gids.view(np.uint64)[ends[first]] for ends in (edges.sources, edges.targets))
        keys = edges.keys[first, 0], xp.minimum(source, target), xp.maximum(source, target), source
        own = come_first(sync, here[to_host(found)], [to_host(key) for key in keys])
        first = xp.unique(first[move(own, part.device)])  # of two trees, perhaps
        members.append(edges.places[first])
        directory.unite(*(here[to_host(trees[ends[first]])] for ends in (edges.sources, edges.targets)))
        here, places = np.unique(directory.look_up(here), return_inverse=True)
        names, trees = move(here, part.device), take(move(places.astype(np.int32), part.device), trees)
        sync.end_round()
        rounds += 1
    places, component = xp.concatenate(members), names[trees[: part.num_masters]]
    in_forest[places] = 1
    return Answer({"component": component}, None, rounds, _figures(part, sync, places), {"in_forest": in_forest})


def _own_forest(part: Partition, order: Any, maximum: bool) -> tuple[Any, Any, int]:
    """The forest of this rank's edges: the root of each proxy's tree, ``in_forest``, and rounds.

    Light edges come first: they connect most nodes, and most of the others are then inside a tree.
    """
    ops, xp = backend(Msf, part.device), xp_of(part.device)
    parents, in_forest = xp.arange(part.num_proxies, dtype=np.int32), xp.zeros(part.num_local_edges, np.uint8)
    best, rounds = xp.full(part.num_proxies, -1), 0
    for light, pivot in _halves(part, order, maximum):
        edges = _candidates(part, order, *ops.list_edges(part, order, parents, pivot, maximum, light), maximum)
        active = xp.arange(edges.places.size)
        while (active := ops.choose(edges, active, parents, best)).size:
            ops.join(edges, best, parents, in_forest)
            backend(Cc, part.device).flatten(parents)
            rounds += 1
    return parents, in_forest, rounds


def _halves(part: Partition, order: Any, maximum: bool) -> list[tuple[bool, tuple[Any, int]]]:
    """Whether edges up to a pivot are listed, or those after it, and its weight and tie, from a sample of edges."""
    size = min(SAMPLE, part.num_local_edges)
    if size == 0:
        return []
    places = xp_of(part.device).arange(size) * part.num_local_edges // size
    sample = _candidates(part, order, _sources(part, places), places, maximum)
    wanted = min(LIGHT * part.num_proxies * size // part.num_local_edges, size - 1)
    last = np.lexsort(to_host(sample.keys).T[::-1])[wanted]
    weight = 0 if part.weights is None else to_host(part.weights[places[last : last + 1]])[0]
    pivot = weight, int(sample.keys[last, 1])
    return [(True, pivot), (False, pivot)]


def _sources(part: Partition, places: Any) -> Any:
    """(n,) int32: the rows of some edges."""
    return (xp_of(part.device).searchsorted(part.offsets, places, side="right") - 1).astype(np.int32)


def _candidates(part: Partition, order: Any, sources: Any, places: Any, maximum: bool) -> Candidates:
    """Some edges of this rank."""
    xp, targets, keys = (
        xp_of(part.device),
        take(part.targets, places),
        xp_of(part.device).zeros((places.size, 2), np.uint64),
    )

    def tie(sources: Any, targets: Any) -> Any:
        source, target = order[sources].astype(np.uint64), order[targets].astype(np.uint64)
        lower = xp.minimum(source, target)
        return lower << np.uint64(32) | xp.maximum(source, target) << np.uint64(1) | (source > lower)

    keys[:, 1] = mapped(tie, sources, targets, dtype=np.uint64)
    if part.weights is not None:
        keys[:, 0] = mapped(lambda some: _keys(part.weights[some], maximum), places, dtype=np.uint64)
    return Candidates(keys, sources, targets, places)


def _keys(values: Any, maximum: bool) -> Any:
    """(n,) uint64 in the order of these weights, or in the reverse one."""
    if values.dtype.kind == "f":  # the bits of floats rise with them, and below 0 fall
        bits = (values.astype(np.float64) + 0.0).view(np.int64)
        values = (bits ^ (bits >> 63 | SIGN)).view(np.uint64)
    elif values.dtype.kind == "i":
        values = (values.astype(np.int64) ^ SIGN).view(np.uint64)
    values = values.astype(np.uint64, copy=False)
    return ~values if maximum else values


def _open_trees(
    part: Partition, sync: Sync, order: Any, parents: Any, in_forest: Any, maximum: bool
) -> tuple[Any, Any, Candidates, list[Any]]:
    """Trees with nodes that other ranks have fall apart into nodes; their edges are candidates, and not in the forest.

    Returns the tree of each proxy, (proxies,) int32, the lowest gid of each tree, the candidates, and the places of the
    other edges in the forest, as the first of a list.
    """
    xp, lists = xp_of(part.device), sync.plan.lists("any")
    opened = xp.zeros(part.num_proxies, np.bool_)
    for lids in (*lists.mirrors, *lists.masters):
        opened[parents[lids]] = True
    trees = xp.where(opened[parents], xp.arange(part.num_proxies, dtype=np.int32), parents)
    names = Label(part, np.int64, 0, MIN)
    names.values[:] = part.gids
    backend(Cc, part.device).lower_roots(trees, names.values, names.updated)
    places = xp.flatnonzero(in_forest.view(np.bool_))
    left = opened[parents[part.targets[places]]]
    kept, places = places[~left], places[left]
    in_forest[places] = 0
    return trees, names.values, _candidates(part, order, _sources(part, places), places, maximum), [kept]


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
