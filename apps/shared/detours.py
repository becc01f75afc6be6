"""Detours: of paths to a target that keep the first nodes of one that is known and leave it there, the shortest.

All distances are to the target, so one search along in-edges serves every node of a path. Where the tail that it gives
meets the nodes that are kept, a search without these finds another one. That search stays among nodes through which a
path from the source can be as short as is asked for: their distances from the source are known, too.
"""

import sys
from typing import Any, NamedTuple

import numpy as np

from cusp import MIN, EdgeOperator, Label, Partition, Sync, everywhere
from cusp.apps.shared.common import places_of_edges
from cusp.apps.shared.graphs.reversal import reversed_graph
from cusp.apps.shared.lengths import Lengths, measure
from cusp.apps.shared.tree import trace
from cusp.apps.sssp import sssp
from cusp.errors import GraphFileError, together
from cusp.kernels.arrays import extremes, sizes_of, total
from cusp.runtime.devices import move, to_host, xp_of
from gluon.plan import SyncPlan

NOBODY = np.iinfo(np.int64).max
BOUNDED = EdgeOperator("src.rest + weight", into="dst.rest", where="dst.before + (src.rest + weight) <= limit")
TIGHT = "dst.rest == src.rest + weight and dst.known == nobody and (src.rest < dst.rest or src.known != nobody)"
NEXT = EdgeOperator("src.gid", into="dst.next", where=TIGHT)
SLOP = 1 + 1e-9  # sums of floats from either end of a path differ by less


class Graphs(NamedTuple):
    """A graph and its reverse, and the lengths of their edges.

    Attributes
    ----------
    part, back : Partition
        Without weights, unless they count.
    plan : SyncPlan
        Of ``back``.
    lengths, back_lengths : Lengths
    """

    part: Partition
    back: Partition
    plan: SyncPlan
    lengths: Lengths
    back_lengths: Lengths


def graphs_of(part: Partition, sync: Sync, hops: bool) -> Graphs:
    """What a search for detours needs; without weights by hops, or if there are none. Collective.

    Raises
    ------
    GraphFileError
        On every rank: a weight is negative or infinite; or paths may be too long for numbers of 64 bits.
    """
    part = part.without_weights() if hops or sync.total(int(part.weights is None))[0] else part
    back, plan = reversed_graph(part, sync)
    lengths, back_lengths = measure(part, sync), measure(back, sync.on(plan))
    largest = sync.highest(float(extremes(lengths.weights)[1]) if lengths.weights.size else 0.0)
    with together(sync.comm):
        if largest * part.num_nodes >= (sys.float_info.max if lengths.dtype.kind == "f" else 2.0**63):
            raise GraphFileError(
                f"with weights up to {largest:g}, a path through all {part.num_nodes:,} nodes may be too long for "
                "numbers of 64 bits; use smaller weights"
            )
    return Graphs(part, back, plan, lengths, back_lengths)


class Rests(NamedTuple):
    """Distances to the target, and the ways there.

    Attributes
    ----------
    rest : Label
        The distance of every proxy; the largest number of its type without a path.
    next : (masters,) int64
        The next node, of several the lowest; -1 without a path.
    """

    rest: Label
    next: Any


class Edges(NamedTuple):
    """Edges from nodes of a path.

    Attributes
    ----------
    places : (edges,) int64
        Of their nodes on the path.
    heads : (edges,) int64
        Their other ends.
    at : (edges,) int64
        The places of these on the path, or its length.
    lengths, rests : (edges,) int64 or float64
        Their own, and the distances from their other ends to the target.
    """

    places: np.ndarray
    heads: np.ndarray
    at: np.ndarray
    lengths: np.ndarray
    rests: np.ndarray

    def steps(self, path: np.ndarray) -> np.ndarray:
        """(nodes - 1,) the lengths of the edges of the path, of parallel ones the shortest."""
        own, steps = self.at == self.places + 1, np.full(path.size - 1, self.lengths.max(initial=0))
        np.minimum.at(steps, self.places[own], self.lengths[own])
        return steps


class Detours:
    """Those of paths from one node to another.

    Attributes
    ----------
    dtype : numpy type
        Of lengths of paths: int64 or float64.
    whole : Rests
        Of all nodes in the whole graph.
    before : Label
        The distance of every proxy from the source.
    rounds : int
        Of all searches until now.
    """

    def __init__(self, graphs: Graphs, sync: Sync, source: int, target: int) -> None:
        self.part, self.sync, self.lengths, self.target = graphs.part, sync, graphs.lengths, target
        self.back, self.back_sync, self.rounds = graphs.back, sync.on(graphs.plan), 0
        self.part.check_node(source, "--source")
        self.part.check_node(target, "--target")
        self.zeros = bool(sync.total(total(graphs.lengths.weights == 0))[0])
        self.dtype = np.dtype("f8" if graphs.lengths.dtype.kind == "f" else "i8")
        self.far: Any = MIN.identity(self.dtype).item()
        self.whole = self._rests(self._from(self.back, self.back_sync, graphs.back_lengths, target))
        self.before = self._from(self.part, sync, graphs.lengths, source)

    def limit(self, length: float, limited: bool) -> float:
        """A length as the type has it, rounded up; or the largest."""
        most = np.nextafter(self.far, 0).item() if self.dtype.kind == "f" else self.far - 1
        rounded = length if self.dtype.kind == "f" else int(length) + 1
        return min(rounded, most) if limited else most

    def _from(self, part: Partition, sync: Sync, lengths: Lengths, source: int) -> Label:
        """Distances of all proxies from a node. Collective."""
        answer = sssp(part, sync, source, lengths)
        distances = answer.labels["distance"]
        self.rounds += int(answer.rounds)
        return everywhere(part, sync, xp_of(part.device).where(distances < 0, self.far, distances), self.far)

    def _rests(self, rest: Label) -> Rests:
        """With the next node of each: where edges of length 0 lead, only to nodes that have one. Collective."""
        part, sync, steps = self.back, self.back_sync, Label(self.back, np.int64, NOBODY, MIN)
        steps.write(self.target, self.target)
        left: tuple = ()
        while True:
            NEXT(part, next=steps, rest=rest, known=steps.values.copy(), nobody=NOBODY)
            sync.reduce(steps, write="dst")
            lost = steps.masters() == NOBODY
            before, left = left, sync.total(total(lost))
            if not self.zeros or before == left:
                return Rests(rest, xp_of(part.device).where(lost, -1, steps.masters()))
            sync.broadcast(steps, read="any")

    def without(self, nodes: np.ndarray, limit: float) -> Rests:
        """Distances that matter to paths up to a length, and that avoid some nodes. Collective."""
        lids = self.part.lid_map.lids(nodes)
        lids = move(lids[lids >= 0], self.part.device)
        before = self.before.values.copy()
        before[lids] = self.far
        rest = Label(self.back, self.dtype, self.far, MIN)
        rest.write(self.target, 0)
        limit = min(limit * SLOP, sys.float_info.max) if self.dtype.kind == "f" else limit
        self.rounds += BOUNDED.until_quiet(self.back, self.back_sync, rest=rest, before=before, limit=limit)
        return self._rests(everywhere(self.back, self.back_sync, rest.masters(), self.far))

    def tail(self, node: int, rests: Rests) -> np.ndarray:
        """Nodes from one, with a distance, to the target. Collective."""
        return np.ascontiguousarray(trace(self.part, self.sync.comm, rests.next, [node])[0][::-1])

    def leave(self, path: np.ndarray, first: int, banned: frozenset[int], rests: Rests) -> list[tuple[float, int, int]]:
        """How to leave a path for the target, but not by its own next node, nor to a node before. Collective.

        Parameters
        ----------
        path : (nodes,) int64
        first : int
            The place of the first node to leave it at; the last one is before the last node.
        banned : frozenset
            Nodes to which it is not left at the first.

        Returns
        -------
        list of (length, place, node)
            For each node with such a way: how long the whole path is at least, the place where it leaves this one,
            and for which node. Sums of floats begin at the target.
        """
        edges = self._edges(path, rests)
        steps = edges.steps(path)
        free = (edges.places >= first) & (edges.at > edges.places + 1) & (edges.rests < self.far)
        free &= (edges.places > first) | ~np.isin(edges.heads, np.array([*banned], np.int64))
        places, heads, whole = edges.places[free], edges.heads[free], edges.lengths[free] + edges.rests[free]
        order = np.lexsort((heads, whole, places))
        best = order[np.diff(places[order], prepend=-1) > 0]
        places, heads, whole = places[best], heads[best], whole[best]
        for place in range(path.size - 2, -1, -1):
            whole[np.searchsorted(places, place, side="right") :] += steps[place]
        return list(zip(whole.tolist(), places.tolist(), heads.tolist()))

    def distances(self, path: np.ndarray) -> np.ndarray:
        """(nodes,) how far each node of a path is from its first. Collective."""
        return np.concatenate([np.zeros(1, self.dtype), self._edges(path, self.whole).steps(path).cumsum()])

    def _edges(self, path: np.ndarray, rests: Rests) -> "Edges":
        """All out-edges of the nodes of a path but the last. Collective."""
        part = self.part
        lids = part.lid_map.lids(path[:-1])
        here = np.flatnonzero(lids >= 0)
        lids = move(lids[here], part.device)
        edges = places_of_edges(part, lids)
        ends = part.targets[edges]
        values = part.gids[ends], self.lengths.weights[edges], rests.rest.values[ends]
        own = np.repeat(here, to_host(sizes_of(part.offsets, lids))), *map(to_host, values)
        places, heads, lengths, rest = map(np.concatenate, zip(*self.sync.comm.allgather(own)))
        order = np.argsort(path)
        found = order[np.searchsorted(path, heads, sorter=order).clip(max=path.size - 1)]
        return Edges(places, heads, np.where(path[found] == heads, found, path.size), lengths.astype(rest.dtype), rest)
