"""Dependencies of nodes on sources, which betweenness adds up: level by level, by all ranks or each by itself."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from apps.bfs import bfs
from apps.bfs import prepare as prepare_bfs
from apps.operators.sums.interfaces import Betweenness, CpuBetweenness, Rows
from apps.shared.in_edges import InEdges, in_edges_of
from apps.shared.whole_graph import copy_of, sum_of_copies, whole_graph
from cusp.errors import GraphFileError, together
from cusp.partition import Partition
from cusp.runtime.devices import backend, to_host
from gluon.label import Label
from gluon.reduction import ADD, ASSIGN
from gluon.sync import Sync

Alone = Callable[[list[int]], tuple[np.ndarray, int, int | None]]


class Levels(NamedTuple):
    """The proxies that a search reached, by level.

    Attributes
    ----------
    deepest : int
        The last level of all ranks.
    lids : (reached,) int32
    bounds : list of int
        Those of level l are ``lids[bounds[l] : bounds[l + 1]]``.
    out_rows, in_rows : RowGroups
        Their out-edges and in-edges, level by level.
    in_edges : InEdges
    """

    deepest: int
    lids: Any
    bounds: list[int]
    out_rows: Any
    in_rows: Any
    in_edges: InEdges

    def range(self, level: int) -> tuple[int, int]:
        """Where a level begins and ends in ``lids``."""
        return self.bounds[level], self.bounds[level + 1]


class Sweeps:
    """Dependencies, summed over the rows of one level at a time; its labels serve one source after the other.

    Path counts go from level to level along edges, shares against them (Brandes, J. Math. Sociol. 2001, section 4). No
    operator asks for the levels of neighbours: values that are not known yet are 0, and no edge leads more than one
    level further, so only edges on shortest paths count. A symmetric graph has both neighbourhoods in its
    rows.

    Attributes
    ----------
    centrality : (masters,) float64
        Sum of the dependencies of the sources so far.
    """

    def __init__(self, part: Partition, sync: Sync) -> None:
        self.part, self.sync = part, sync
        self.ops = backend(Betweenness, part.device)
        self.rows = backend(Rows, part.device)
        self.levels = Label(part, np.int32, -1, ASSIGN)
        self.paths, self.shares = Label(part, np.float64, 0, ASSIGN), Label(part, np.float64, 0, ASSIGN)
        self.sums = Label(part, np.float64, 0, ADD)
        self.centrality = self.paths.masters() * 0

    def add(self, source: int, prepared: Any) -> int:
        """Add the dependencies of a source; returns the number of levels. Collective.

        ``prepared`` is what :func:`apps.bfs.prepare` returned.
        """
        levels = self._levels(bfs(self.part, self.sync, source, prepared=prepared).labels["hops"])
        self._count_paths(source, levels)
        self._refuse_overflow(source)
        self._add_dependencies(levels)
        return levels.deepest

    def add_alone(self, alone: Alone, sources: list[int]) -> int:
        """Add those of several sources, each rank some by itself; returns the number of levels. Collective."""
        comm, nodes = self.sync.comm, self.part.num_nodes
        sums, levels, wrong = alone(sources[comm.rank :: comm.size])
        wrong = self.sync.lowest(nodes if wrong is None else wrong)
        if wrong < nodes:
            raise _too_many_paths(wrong)
        self.centrality += sum_of_copies(self.part, comm, sums)
        return int(self.sync.total(levels)[0])

    def _levels(self, hops: Any) -> "Levels":
        """The proxies of every level, and the rows of their in-edges and out-edges. Collective."""
        part = self.part
        deepest = self.sync.highest(int(hops.max()) if hops.size else 0)
        self.levels.masters()[:] = hops
        self.levels.mark_all()
        self.sync.broadcast(self.levels, read="any")
        lids, bounds = self.ops.by_level(self.levels.values, deepest)
        in_edges = in_edges_of(part)
        assert in_edges is not None
        out_rows = self.rows.group_rows(lids, bounds, part.offsets)
        in_rows = out_rows if part.symmetric else self.rows.group_rows(lids, bounds, in_edges.offsets)
        return Levels(deepest, lids, bounds, out_rows, in_rows, in_edges)

    def _count_paths(self, source: int, levels: "Levels") -> None:
        """Shortest paths to every node: as many as to its predecessors together, level by level. Collective."""
        sync, paths, sums, in_edges = self.sync, self.paths, self.sums, levels.in_edges
        paths.values.fill(0)
        paths.write(source, 1)
        paths.swap_updated()
        for level in range(1, levels.deepest + 1):
            where = levels.range(level)
            self.rows.sum_rows(levels.in_rows, level, in_edges.sources, paths.values, sums.values)
            self.ops.mark(*where, levels.lids, sums.updated)
            sync.reduce(sums, write=in_edges.write)
            self.ops.give_paths(*where, self.part.num_masters, levels.lids, sums.values, paths.values, paths.updated)
            sync.broadcast(paths, read=in_edges.read)
            paths.swap_updated()

    def _add_dependencies(self, levels: "Levels") -> None:
        """What depends on every node, from what depends on its successors, from the deepest level up. Collective."""
        sync, shares, sums = self.sync, self.shares, self.sums
        shares.values.fill(0)
        for level in range(levels.deepest, 0, -1):
            where = levels.range(level)
            if level < levels.deepest:
                self.rows.sum_rows(levels.out_rows, level, self.part.targets, shares.values, sums.values)
                self.ops.mark(*where, levels.lids, sums.updated)
                sync.reduce(sums, write="src")
            self.ops.give_shares(*where, self.part.num_masters, levels.lids, self.paths.values, sums.values,
                                 self.centrality, shares.values, shares.updated)  # fmt: skip
            sync.broadcast(shares, read="dst")
            shares.swap_updated()

    def _refuse_overflow(self, source: int) -> None:
        """Raise if there are too many paths to be counted. Collective."""
        own = self.paths.masters()
        with together(self.sync.comm):
            if own.size and not bool(own.max() < np.inf):
                raise _too_many_paths(source)


def _too_many_paths(source: int) -> GraphFileError:
    return GraphFileError(f"there are more than 1.8e308 shortest paths from node {source:,}: too many to count")


def sweeps_alone(part: Partition, sync: Sync, sources: int) -> Alone | None:
    """A function that adds the dependencies on sources in a copy of the graph; None if that is too large. Collective.

    It returns the sums (nodes,) float64 by global id, the number of levels, and the first of the sources with more
    shortest paths than float64 can count, where it ends, or None.
    """
    ops = backend(Betweenness, part.device)
    if not sync.lowest(int(ops.sweeps(part, sync, sources))):
        return None
    if part.device == "cpu":
        return partial(_sweep_rows, whole_graph(part, sync.comm))
    copy, alone = copy_of(part, sync.comm)
    return partial(_sweep_copy, copy, alone, prepare_bfs(copy, alone))


def _sweep_rows(whole: tuple[Any, Any], own: list[int]) -> tuple[np.ndarray, int, int | None]:
    """On a CPU: along the rows of the graph."""
    offsets, targets = whole
    sums = np.zeros(offsets.size - 1)
    levels, wrong = backend(CpuBetweenness, "cpu").sweep(offsets, targets, np.array(own, np.int64), sums)
    return sums, levels, None if wrong < 0 else own[wrong]


def _sweep_copy(copy: Partition, sync: Sync, prepared: Any, own: list[int]) -> tuple[np.ndarray, int, int | None]:
    """On a GPU: level by level, as one rank."""
    sweeps, levels, sums = Sweeps(copy, sync), 0, np.zeros(copy.num_nodes)
    for source in own:
        try:
            levels += sweeps.add(source, prepared)
        except GraphFileError:  # there are too many paths
            return sums, levels, source
    sums[to_host(copy.gids)] = to_host(sweeps.centrality)
    return sums, levels, None
