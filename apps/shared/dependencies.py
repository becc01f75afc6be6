"""Dependencies of nodes on sources, which betweenness adds up: level by level, by all ranks or each by itself."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cusp import ADD, MAX, EdgeOperator, Label, Partition, Sync, everywhere
from cusp.apps.bfs import bfs
from cusp.apps.bfs import prepare as prepare_bfs
from cusp.apps.operators.interfaces import InEdges, Undirected, in_edges_of
from cusp.apps.operators.sums.interfaces import Betweenness, CpuBetweenness, Rows
from cusp.apps.shared.graphs.whole_graph import WholeGraph, copy_of, sum_of_copies, whole_graph, works_in_copies
from cusp.apps.shared.lengths import Lengths, measure
from cusp.apps.sssp import sssp
from cusp.errors import GraphFileError, together
from cusp.kernels.arrays import total
from cusp.runtime.devices import backend, to_host, xp_of
from gluon.reduction import ASSIGN

DEEPEN = EdgeOperator(
    "level + 1",
    into="dst.level",
    where="src.length >= 0 and src.length < dst.length and src.length + weight == dst.length",
    priority="length",
)


class Found(NamedTuple):
    """What one rank has added up by itself.

    Attributes
    ----------
    nodes : (nodes,) float64
        By global id.
    edges : (edges,) float64, or None
        In the order of a copy of the graph.
    levels : int
    wrong : int or None
        A source that cannot be added, where it ended.
    """

    nodes: np.ndarray
    edges: np.ndarray | None
    levels: int
    wrong: int | None


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
    targets : (edges,) int32
        Of the out-edges.
    in_edges : InEdges
    """

    deepest: int
    lids: Any
    bounds: list[int]
    out_rows: Any
    in_rows: Any
    targets: Any
    in_edges: InEdges


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
    edges : (edges,) float64, or None
        The same on each local edge, if they are wanted.
    """

    edges: Any = None

    def __init__(self, part: Partition, sync: Sync) -> None:
        self.part, self.sync, in_edges = part, sync, in_edges_of(part)
        assert in_edges is not None
        self.in_edges = in_edges
        self.ops = backend(Betweenness, part.device)
        self.rows = backend(Rows, part.device)
        self.levels = Label(part, np.int32, -1, ASSIGN)
        self.paths, self.shares = Label(part, np.float64, 0, ASSIGN), Label(part, np.float64, 0, ASSIGN)
        self.sums = Label(part, np.float64, 0, ADD)
        self.centrality = self.paths.masters() * 0

    def add(self, source: int, prepared: Any) -> int:
        """Add the dependencies of a source; returns the number of levels. Collective.

        ``prepared`` is what :func:`cusp.apps.bfs.prepare` returned.
        """
        levels = self._search(source, prepared)
        self._count_paths(source, levels)
        own = self.paths.masters()
        with together(self.sync.comm):
            if own.size and not bool(own.max() < np.inf):
                raise GraphFileError(
                    f"there are more than 1.8e308 shortest paths from node {source:,}: too many to count"
                )
        self._add_dependencies(levels)
        return levels.deepest

    def _search(self, source: int, prepared: Any) -> "Levels":
        """The proxies of every level, and the rows of their in-edges and out-edges. Collective."""
        self.levels.masters()[:] = bfs(self.part, self.sync, source, prepared=prepared).labels["hops"]
        self.levels.mark_all()
        self.sync.broadcast(self.levels, read="any")
        return self._by_level(self.levels.values, self.part.offsets, self.part.targets, self.in_edges)

    def _by_level(self, levels: Any, offsets: Any, targets: Any, in_edges: InEdges) -> "Levels":
        """The proxies of every level, and the rows of their edges among these. Collective."""
        deepest = self.sync.highest(int(levels.max()) if levels.size else 0)
        lids, bounds = self.ops.by_level(levels, deepest)
        out_rows = self.rows.group_rows(lids, bounds, offsets)
        in_rows = out_rows if in_edges.offsets is offsets else self.rows.group_rows(lids, bounds, in_edges.offsets)
        return Levels(deepest, lids, bounds, out_rows, in_rows, targets, in_edges)

    def _count_paths(self, source: int, levels: "Levels") -> None:
        """Shortest paths to every node: as many as to its predecessors together, level by level. Collective."""
        sync, paths, sums, in_edges = self.sync, self.paths, self.sums, levels.in_edges
        paths.values.fill(0)
        paths.write(source, 1)
        paths.swap_updated()
        for level in range(1, levels.deepest + 1):
            where = levels.bounds[level], levels.bounds[level + 1]
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
            where = levels.bounds[level], levels.bounds[level + 1]
            if level < levels.deepest:
                self.rows.sum_rows(levels.out_rows, level, levels.targets, shares.values, sums.values)
                self.ops.mark(*where, levels.lids, sums.updated)
                sync.reduce(sums, write="src")
            self.ops.give_shares(*where, self.part.num_masters, levels.lids, self.paths.values, sums.values,
                                 self.centrality, shares.values, shares.updated)  # fmt: skip
            sync.broadcast(shares, read="dst")
            shares.swap_updated()


AddAlone = Callable[[Sweeps, list[int], Any], int]  # see sweeps_alone


class TightSweeps(Sweeps):
    """The same along tight edges alone: for paths by weights, and for what depends on edges.

    The level of a node is the largest number of edges on a shortest path to it, so tight edges lead to higher levels.
    Lengths are compared exactly, as NetworkX compares them. No weight is 0.
    """

    def __init__(self, part: Partition, sync: Sync, edges: bool) -> None:
        super().__init__(part, sync)
        rows_of = backend(Undirected, part.device).rows_of_edges
        self.out = self.into = part.offsets, part.targets, rows_of(part.offsets)
        if not part.symmetric:
            assert part.csc is not None
            self.into = part.csc.offsets, part.csc.sources, rows_of(part.csc.offsets)
        self.edges = xp_of(part.device).zeros(part.num_local_edges, np.float64) if edges else None

    def add(self, source: int, prepared: Lengths) -> int:
        """Add the dependencies of a source; returns the number of levels. Collective.

        ``prepared`` is what :func:`cusp.apps.shared.lengths.measure` returned.
        """
        deepest = super().add(source, prepared)
        if self.edges is not None:
            _, targets, sources = self.out
            self.paths.mark_all()
            self.sync.broadcast(self.paths, read="src")
            self.edges[self.tight] += self.paths.values[sources[self.tight]] * self.shares.values[targets[self.tight]]
        return deepest

    def _search(self, source: int, prepared: Lengths) -> Levels:
        part, sync = self.part, self.sync
        found = sssp(part, sync, source, prepared).labels["distance"]
        length, level = everywhere(part, sync, found, 0, ASSIGN), Label(part, np.int32, -1, MAX)
        level.write(source, 0)
        DEEPEN.until_quiet(part, sync, level=level, length=length)
        level.mark_all()
        sync.broadcast(level, read="any")
        with together(sync.comm):
            if total((found >= 0) & (found < np.inf) & (level.masters() < 0)) > 0:
                raise GraphFileError(
                    f"distances from node {source:,} are so long that some weights added to them change nothing, so "
                    "shortest paths cannot be counted; use weights that differ less"
                )
        of_into = prepared.weights if part.symmetric or part.csc is None else part.csc.weights
        offsets, targets, self.tight = _tight(part, self.out, prepared.weights, length.values)
        in_offsets, sources, _ = _tight(part, self.into, of_into, length.values, away=False)
        in_edges = self.in_edges._replace(offsets=in_offsets, sources=sources)
        return self._by_level(level.values, offsets, targets, in_edges)


def _tight(
    part: Partition, rows: tuple[Any, Any, Any], weights: Any, length: Any, away: bool = True
) -> tuple[Any, Any, Any]:
    """The tight ones of the edges in some rows, which lead away from them or to them.

    Returns
    -------
    offsets : (rows + 1,) int64
    columns : (tight,) int32
    places : (tight,) int64
        Where they are among all edges.
    """
    xp, (offsets, columns, ends) = xp_of(part.device), rows
    near, far = (length[ends], length[columns]) if away else (length[columns], length[ends])
    weights = 1 if weights is None else weights.astype(length.dtype, copy=False)
    places = xp.flatnonzero((near >= 0) & (near < far) & (near + weights == far))
    return xp.searchsorted(places, offsets), columns[places], places


def sweeps_alone(part: Partition, sync: Sync, sources: int, lengths: Lengths | None, edges: bool) -> AddAlone | None:
    """What adds the dependencies on several sources to sweeps, each rank some in its copy of the graph. Collective.

    None if that does not pay. It takes what :meth:`Sweeps.add` does, and is collective, too.

    Parameters
    ----------
    lengths : Lengths, or None
        For paths by weights.
    edges : bool
        Whether those of edges are wanted.
    """
    if lengths is not None:
        part = replace(part, weights=lengths.weights)
    far = lengths is not None and lengths.may_overflow
    if far or (edges and part.device == "gpu") or not works_in_copies(part, sync, sources):
        return None
    if part.device == "gpu":
        copy, alone = copy_of(part, sync.comm)
        prepared = prepare_bfs(copy, alone) if lengths is None else measure(copy, alone)
        return partial(_add_alone, partial(_sweep_copy, copy, alone, prepared), None)
    whole = whole_graph(part, sync.comm, lengths)
    return partial(_add_alone, partial(_sweep_rows, whole, edges), whole.places)


def _add_alone(
    find: Callable[[list[int]], Found], places: Any, sweeps: Sweeps, sources: list[int], prepared: Any
) -> int:  # fmt: skip
    """Each rank adds some of the sources by itself; ``places``: where its edges are in the copy. Collective."""
    part, sync, comm = sweeps.part, sweeps.sync, sweeps.sync.comm
    found = find(sources[comm.rank :: comm.size])
    wrong = sync.lowest(part.num_nodes if found.wrong is None else found.wrong)
    if wrong < part.num_nodes:
        sweeps.add(wrong, prepared)  # which says why that cannot be
    sweeps.centrality += sum_of_copies(part, comm, found.nodes)
    if found.edges is not None:
        sweeps.edges += sum_of_copies(part, comm, found.edges, places)
    return int(sync.total(found.levels)[0])


def _sweep_rows(whole: WholeGraph, edges: bool, own: list[int]) -> Found:
    """On a CPU: along the rows of the graph."""
    nodes, of_edges = np.zeros(whole.offsets.size - 1), np.zeros(whole.targets.size) if edges else None
    levels, wrong = backend(CpuBetweenness, "cpu").sweep(whole, whole.rows[own], nodes, of_edges)
    return Found(nodes[whole.rows], of_edges, levels, None if wrong < 0 else own[wrong])


def _sweep_copy(copy: Partition, sync: Sync, prepared: Any, own: list[int]) -> Found:
    """On a GPU: level by level, as one rank."""
    sweeps = make_sweeps(copy, sync, prepared)
    levels, sums = 0, np.zeros(copy.num_nodes)
    for source in own:
        try:
            levels += sweeps.add(source, prepared)
        except GraphFileError:  # which all ranks together will find, too
            return Found(sums, None, levels, source)
    sums[to_host(copy.gids)] = to_host(sweeps.centrality)
    return Found(sums, None, levels, None)


def make_sweeps(part: Partition, sync: Sync, prepared: Any, edges: bool = False) -> Sweeps:
    """Those that go by what has been prepared: :class:`TightSweeps` by lengths."""
    return TightSweeps(part, sync, edges) if isinstance(prepared, Lengths) else Sweeps(part, sync)
