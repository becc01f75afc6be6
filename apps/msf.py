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
from cusp.apps.operators.choices.interfaces import Candidates, Msf
from cusp.apps.operators.structure.interfaces import Cc
from cusp.apps.shared.components import Directory, come_first
from cusp.apps.verify.msf import verify_msf
from cusp.kernels.arrays import distinct, mapped, occurring, take, total, total_of_floats
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
        first = occurring(best[found[move(own, part.device)]])  # of two trees, perhaps
        members.append(edges.places[first])
        directory.unite(*(here[to_host(trees[ends[first]])] for ends in (edges.sources, edges.targets)))
        here, places = distinct(directory.look_up(here))
        names, trees = move(here, part.device), take(move(places.astype(np.int32), part.device), trees)
        sync.end_round()
        rounds += 1
    places, component = xp.concatenate(members), names[trees[: part.num_masters]]
    in_forest[left], in_forest[places] = 0, 1
    return Answer({"component": component}, None, rounds, _figures(part, sync, places), {"in_forest": in_forest})


def _own_forest(part: Partition, order: "EdgeOrder") -> tuple[Any, Any, int]:
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
    backend(Cc, part.device).lower_roots(trees, names.values, None, names.updated)
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


class EdgeOrder:
    """The lightest edges of a rank first, or the heaviest.

    Of edges that weigh the same, that with the lowest end is first, then that with the lower other end, then the one
    from the lower end to the other, then that of the lower rank, and there the one that is stored first.

    Attributes
    ----------
    of_nodes : (proxies,) uint32
        The place of each among the global ids of this rank.
    maximum : bool
    """

    def __init__(self, part: Partition, maximum: bool) -> None:
        xp = xp_of(part.device)
        self.part, self.maximum, self.of_nodes = part, maximum, xp.empty(part.num_proxies, np.uint32)
        self.of_nodes[part.lid_map.table] = xp.arange(part.num_proxies, dtype=np.uint32)

    def candidates(self, places: Any, sources: Any = None) -> Candidates:
        """The edges at some places, (n,) int64, whose sources, (n,) int32, are looked up if they are not given."""
        part, xp = self.part, xp_of(self.part.device)
        if sources is None:
            sources = (xp.searchsorted(part.offsets, places, side="right") - 1).astype(np.int32)
        keys, targets = xp.zeros((places.size, 2), np.uint64), take(part.targets, places)
        keys[:, 1] = mapped(self._ends, sources, targets, dtype=np.uint64)
        if part.weights is not None:
            keys[:, 0] = mapped(self._weights, take(part.weights, places), dtype=np.uint64)
        return Candidates(keys, sources, targets, places)

    def halves(self) -> list[tuple[bool, tuple[Any, int]]]:
        """Whether the light edges are meant, or all others, and where the light ones end; from a sample of the edges.

        The end is the weight of an edge and the second of its keys: see ``Msf.list_edges``.
        """
        part, edges = self.part, self.part.num_local_edges
        if edges == 0:
            return []
        size = min(SAMPLE, edges)
        sample = self.candidates(xp_of(part.device).arange(size) * edges // size)
        last = np.lexsort(to_host(sample.keys).T[::-1])[min(LIGHT * part.num_proxies * size // edges, size - 1)]
        weight = 0 if part.weights is None else to_host(part.weights[sample.places[last : last + 1]])[0]
        return [(light, (weight, int(sample.keys[last, 1]))) for light in (True, False)]

    def keys(self, edges: Candidates, chosen: Any) -> list[np.ndarray]:
        """Numbers, (n,) uint64 on the host, that order some candidates of all ranks, the first number first."""
        xp, gids = xp_of(self.part.device), self.part.gids.view(np.uint64)
        source, target = gids[edges.sources[chosen]], gids[edges.targets[chosen]]
        numbers = edges.keys[chosen, 0], xp.minimum(source, target), xp.maximum(source, target), source
        return [to_host(each) for each in numbers]

    def _ends(self, sources: Any, targets: Any) -> Any:
        source, target = (self.of_nodes[ends].astype(np.uint64) for ends in (sources, targets))
        xp = xp_of(self.part.device)
        lower, higher = xp.minimum(source, target), xp.maximum(source, target)
        return lower << np.uint64(32) | higher << np.uint64(1) | (source > lower)

    def _weights(self, values: Any) -> Any:
        if values.dtype.kind == "f":  # the bits of floats rise with them, and below 0 fall
            bits = (values.astype(np.float64) + 0.0).view(np.int64)
            values = (bits ^ (bits >> 63 | SIGN)).view(np.uint64)
        elif values.dtype.kind == "i":
            values = (values.astype(np.int64) ^ SIGN).view(np.uint64)
        values = values.astype(np.uint64, copy=False)
        return ~values if self.maximum else values


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
