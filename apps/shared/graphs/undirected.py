"""A partition taken as undirected: every master has its whole neighbourhood on its rank."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cusp.apps.operators.interfaces import Undirected
from cusp.kernels.arrays import filled_rows, occurring, offsets_of, sizes_of
from cusp.kernels.interfaces import Build
from cusp.lid_map import LidMap, map_lids, order_of_masters
from cusp.partition import Partition, transpose
from cusp.runtime.devices import backend, move, to_host, xp_of
from cusp.runtime.mpi import MPI
from cusp.runtime.storage import memory_of
from gluon.plan import SyncPlan, make_plan
from gluon.sync import Sync


@dataclass(frozen=True)
class RowPieces:
    """Pieces of the rows of some masters, as they came from one rank.

    Attributes
    ----------
    lids : (rows,) int32
        The masters.
    offsets : (rows + 1,) int64
        The neighbours of row i are ``places[offsets[i] : offsets[i + 1]]``.
    places : (entries,) int32
        Neighbours, as places in ``nodes``.
    nodes : (distinct neighbours,) int64 or int32, or None
        Their names as in ``nodes_of``, later their local ids. None: their places are their local ids.
    weights : (entries,) numbers, or None
    """

    lids: Any
    offsets: Any
    places: Any
    nodes: Any
    weights: Any


class UndirectedGraph(NamedTuple):
    """The graph without directions, loops and parallel edges, with its sync plan and what is prepared for it."""

    part: Partition
    plan: SyncPlan
    prepared: Any


def undirected_graph(part: Partition, sync: Sync, prepare: Callable[[Partition, Sync], Any]) -> UndirectedGraph:
    """The undirected graph without weights, and what ``prepare`` makes of it. Collective."""
    graph = as_undirected(part, sync.comm, weights=False)
    plan = make_plan(graph, sync.comm, sync.plan.transport)
    return UndirectedGraph(graph, plan, prepare(graph, sync.on(plan)))


def as_undirected(part: Partition, comm: MPI.Intracomm, weights: bool = True) -> Partition:
    """The graph without directions, loops and parallel edges, as an edge-cut with the same masters. Collective.

    A row holds all neighbours of a master, in-neighbours and out-neighbours alike, each once and by ascending local
    id; mirrors have empty rows. Masters keep their local ids, so that results line up with ``part``: with
    ``order="degree"`` they are ordered by out-degree in the original graph. ``degrees`` counts distinct neighbours,
    ``num_edges`` entries of all rows, two for each pair of neighbours. Weights become float64: the sum over all edges
    between two nodes in either direction, so an edge that the graph has in both directions counts twice.

    Rows travel to the rank of their master as numbers of 4 bytes, with a list of the nodes that they stand for. Of a
    symmetric graph the out-edges suffice unless they have weights; otherwise its CSC travels too. Besides ``part`` and
    the result, a rank needs at most 8 bytes for each edge that it owns or gets, and on a GPU 24; 16 and 40 more with
    weights. If the partition is of this form on every rank already, nothing is copied.

    Parameters
    ----------
    part : Partition
        By any policy, on either device; the result is made there.
    weights : bool
        Keep weights, if there are any.
    """
    weighted, ops = weights and part.weights is not None, backend(Undirected, part.device)
    complete = part.symmetric and int(part.offsets[part.num_masters]) == part.num_local_edges
    undirected = not weighted and complete and ops.rows_are_simple(part.offsets, part.targets)
    if comm.allreduce(undirected, MPI.LAND):
        return replace(part, weights=None)
    tables = [(part.offsets, part.targets, part.weights if weighted else None)]
    if weighted or not part.symmetric:
        csc = part.csc or transpose(part)
        tables.append((csc.offsets, csc.sources, csc.weights if weighted else None))
    return join_rows(part, tables, comm)


def join_rows(part: Partition, tables: list[tuple[Any, Any, Any]], comm: MPI.Intracomm) -> Partition:
    """What :func:`as_undirected` makes of the CSRs in ``tables``: offsets, targets and weights or None. Collective.

    Taken together, the tables of all ranks must have every edge in both directions. The list is emptied.
    """
    weighted = tables[0][2] is not None
    if comm.size == 1:  # every node has its master here, and keeps its local id
        every = xp_of(part.device).arange(part.num_masters, dtype=np.int32)
        arrived = [RowPieces(every, offsets, ends, None, _as_floats(weights)) for offsets, ends, weights in tables]
        starts, gids, lid_map = np.zeros(2, np.int64), part.gids, part.lid_map
    else:
        arrived, starts, gids, lid_map = _gather_rows(part, tables, comm)
    tables.clear()
    merged = backend(Undirected, part.device).merge_rows(arrived, gids.size, weighted)
    return _partition_of(part, starts, gids, lid_map, *merged, comm)


def _gather_rows(
    part: Partition, tables: list[tuple[Any, Any, Any]], comm: MPI.Intracomm
) -> tuple[list[RowPieces], np.ndarray, Any, LidMap]:
    """The pieces of this rank's rows; where each rank's nodes begin behind the masters; gids; local ids. Collective."""
    xp, names = xp_of(part.device), nodes_of(part)
    arrived = [rows for table in tables for rows in exchange_rows(part, names, *table, comm)]
    del names
    elsewhere = (rows.nodes[rows.nodes // part.num_nodes != part.rank] for rows in arrived)
    mirrors = occurring(xp.concatenate([*elsewhere]))  # named as in nodes_of, ascending
    bounds = xp.asarray(np.arange(comm.size + 1) * part.num_nodes)
    starts = to_host(xp.searchsorted(mirrors, bounds))  # of those whose masters are on each rank
    order = order_of_masters(mirrors % part.num_nodes, starts[1:], part.lid_map, comm)
    lids = part.num_masters + order.argsort().astype(np.int32)
    arrived = [
        replace(rows, nodes=_lids_of(part, mirrors, lids, rows.nodes), weights=_as_floats(rows.weights))
        for rows in arrived
    ]
    gids = xp.concatenate([part.gids[: part.num_masters], mirrors[order] % part.num_nodes])
    return arrived, starts, gids, map_lids(part.num_nodes, gids)


def _as_floats(weights: Any) -> Any:
    return None if weights is None else weights.astype(np.float64)


def nodes_of(part: Partition) -> Any:
    """(proxies,) int64: rank of the master * nodes of the graph + gid."""
    xp = xp_of(part.device)
    masters_on = np.repeat(np.arange(part.num_ranks), np.diff(part.mirror_starts))
    names = xp.full(part.num_proxies, part.rank, np.int64)
    names[part.num_masters :] = move(masters_on, part.device)
    return names * part.num_nodes + part.gids


def exchange_rows(
    part: Partition, names: Any, offsets: Any, ends: Any, weights: Any, comm: MPI.Intracomm
) -> list[RowPieces]:
    """Send every row of a CSR or CSC to the rank of its master; returns what came from each rank. Collective.

    ``names`` are what :func:`nodes_of` returns. Entries keep their order.

    The mirrors of a rank have consecutive local ids, and so their edges are consecutive too.
    """
    build = backend(Build, part.device)
    xp = build.xp
    gids, sizes, places, nodes, values = [], [], [], [], []
    for rank in range(comm.size):
        first, last = nodes_of_rank(part, rank)
        edges = slice(int(offsets[first]), int(offsets[last]))
        counts = xp.diff(offsets[first : last + 1])
        gids.append(part.gids[first:last][counts > 0])
        sizes.append(counts[counts > 0])
        seen = xp.zeros(part.num_proxies, np.bool_)
        seen[ends[edges]] = True
        place = xp.cumsum(seen, dtype=np.int32) - 1
        places.append(place[ends[edges]])
        nodes.append(names[seen])
        values.append(None if weights is None else weights[edges])
    came = [build.all_to_all(comm, what) for what in (gids, sizes, places, nodes)]
    came.append([None] * comm.size if weights is None else build.all_to_all(comm, values))
    return [RowPieces(part.lid_map.lids(owners), offsets_of(counts), *rest) for owners, counts, *rest in zip(*came)]


def nodes_of_rank(part: Partition, rank: int) -> tuple[int, int]:
    """The first proxy whose master is on a rank, and the one behind the last."""
    if rank == part.rank:
        return 0, part.num_masters
    return int(part.mirror_starts[rank]), int(part.mirror_starts[rank + 1])


def _lids_of(part: Partition, mirrors: Any, mirror_lids: Any, nodes: Any) -> Any:
    """(n,) int32: local ids of nodes; ``mirror_lids`` are those of ``mirrors``, which ascend."""
    xp = xp_of(part.device)
    local = nodes // part.num_nodes == part.rank
    lids = xp.empty(nodes.size, np.int32)
    lids[local] = part.lid_map.lids(nodes[local] % part.num_nodes)
    lids[~local] = mirror_lids[xp.searchsorted(mirrors, nodes[~local])]
    return lids


def _partition_of(
    part: Partition, starts: np.ndarray, gids: Any, lid_map: LidMap, offsets: Any, targets: Any, weights: Any,
    comm: MPI.Intracomm,
) -> Partition:  # fmt: skip
    """The partition with these nodes and rows. Collective."""
    xp, own = xp_of(part.device), part.num_masters
    degrees = sizes_of(offsets[: own + 1])
    has_in = xp.ones(gids.size, np.bool_)
    has_in[:own] = filled_rows(offsets[: own + 1])
    if gids.size > own:
        filled = xp.flatnonzero(has_in[:own])
        has_in[filled] = targets[offsets[filled]] < own  # rows ascend, so masters come first
    return Partition(
        part.rank, part.num_ranks, part.num_nodes, comm.allreduce(int(targets.size)), True, own, own + starts, gids,
        offsets, targets, weights, has_in, degrees, lid_map, storage=memory_of(part.device), device=part.device,
    )  # fmt: skip
