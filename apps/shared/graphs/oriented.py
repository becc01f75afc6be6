"""Undirected graphs whose edges all lead to the end of higher degree, with rows shared out so that wedges are balanced.

Nodes have *places*: the node with the highest degree has place 0, and edges lead to the lower place. So no row is
longer than the square root of twice the number of edges (Schank and Wagner, WEA 2005). The node of place p is counted
at rank p modulo the number of ranks, which spreads hubs and leaves alike, whatever the policy was.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cusp import MIN, Label, Partition, Sync
from cusp.apps.operators.triangles.interfaces import Triangles
from cusp.kernels.arrays import add_up, by_rank, offsets_of, runs_of_rows, total_of
from cusp.kernels.interfaces import Build
from cusp.runtime.devices import backend, device_of, to_host, xp_of
from cusp.runtime.exchange import pieces
from cusp.runtime.mpi import MPI
from gluon.plan import make_plan

ENOUGH = 1.25  # times the work by degree is near enough to it


@dataclass(frozen=True)
class Shares:
    """What one rank has of an oriented graph. Nodes that occur in it are numbered by ascending place.

    On one rank, local ids may be the numbers; then there are no places.

    Attributes
    ----------
    graph : Partition
        Without directions, loops and parallel edges, before it was oriented.
    index : (2 * ceil(N / 64),) uint64, or None
        From places to numbers, as in :class:`~cusp.lid_map.LidMap`.
    places : (numbers,) uint32 or uint64, or None
    begins, ends, targets : (numbers,) int64, the same, (entries,) int32
        ``targets[begins[n] : ends[n]]`` is the row of number n in this rank's share, ascending; others are empty.
    in_begins, in_ends, sources : the same, transposed
    taken : list of (n_r,) int32
        Numbers of the nodes whose rows came from rank r.
    given : (n,) int64, or None
        Local ids of the masters whose rows were sent away, those to rank 0 first.
    """

    graph: Partition
    index: Any
    places: Any
    begins: Any
    ends: Any
    targets: Any
    in_begins: Any
    in_ends: Any
    sources: Any
    taken: list[Any]
    given: Any

    @cached_property
    def paths(self) -> int:
        """Paths of two edges, with a master of this rank in the middle."""
        return total_of(pairs_among, self.graph.degrees)

    def numbers_of(self, places: Any) -> Any:
        """(n,) int32: numbers of places; -1 for a place that does not occur here."""
        return _look_up(self.index, self.places.size, places)


def pairs_among(degrees: Any) -> Any:
    """How many pairs of neighbours nodes have."""
    return degrees * (degrees - 1) >> 1


def orient(graph: Partition, sync: Sync) -> Shares:
    """The oriented graph, shared out. Collective.

    On one rank, local ids are as good as places if they make rows hardly longer than degrees do. Then the lower
    neighbours of a node are the beginning of its row, and its in-edges the rest.
    """
    if sync.comm.size == 1:
        ops = backend(Triangles, graph.device)
        splits, work, least = ops.split_rows(graph.offsets, graph.targets)
        if work <= ENOUGH * least:
            rows = ops.lower_rows(graph.offsets, splits, graph.targets)
            return Shares(graph, None, None, *rows, splits, graph.offsets[1:], graph.targets, [], None)
    return share_out(graph, place_by_degree(graph, sync), sync.comm)


def place_by_degree(graph: Partition, sync: Sync) -> Any:
    """(proxies,) uint32 or uint64: places of all proxies of an undirected graph. Collective.

    Nodes of equal degree are ordered by rank, then by local id.
    """
    comm, xp = sync.comm, xp_of(graph.device)
    order = xp.argsort(-graph.degrees, kind="stable")
    descending = graph.degrees[order]
    first = xp.diff(descending, prepend=-1) != 0  # of those with a degree
    begins = xp.flatnonzero(first)
    degrees, counts = to_host(-descending[begins]), np.diff(to_host(begins), append=order.size)
    everyone = comm.allgather((degrees, counts))
    distinct = np.unique(np.concatenate([values for values, _ in everyone]))
    table = np.zeros((distinct.size, comm.size), np.int64)
    for rank, (values, times) in enumerate(everyone):
        table[np.searchsorted(distinct, values), rank] = times
    starts = np.cumsum(table).reshape(table.shape) - table
    ahead = starts[np.searchsorted(distinct, degrees), comm.rank] - (np.cumsum(counts) - counts)
    label = Label(graph, np.int64, 0, MIN)
    label.values[order] = xp.arange(order.size) + xp.asarray(ahead)[xp.cumsum(first) - 1]
    if comm.size > 1:
        label.mark_all()
        Sync(make_plan(graph, comm, sync.plan.transport), comm).broadcast(label, read="dst")
    return label.values.astype(np.uint32 if graph.num_nodes < 2**32 else np.uint64)


def share_out(graph: Partition, places: Any, comm: MPI.Intracomm) -> Shares:
    """Orient the edges of an undirected graph, and send each row to the rank that counts it. Collective."""
    build, ops = backend(Build, graph.device), backend(Triangles, graph.device)
    xp = build.xp
    given = xp.flatnonzero(graph.degrees > 0)
    given, ends = _by_holder(given, places[given], comm)
    begins, entries = ops.orient(given, graph.offsets[:-1], graph.offsets[1:], graph.targets, places)
    names = places[given]
    came = build.all_to_all(comm, pieces(names, ends))
    sizes = xp.concatenate(build.all_to_all(comm, pieces(xp.diff(begins), ends)))
    entries = xp.concatenate(build.all_to_all(comm, pieces(entries, to_host(begins[build.xp.asarray(ends)]))))
    row_places = xp.concatenate(came)
    index = xp.zeros(2 * (-(-graph.num_nodes // 64)), np.uint64)
    build.mark(index, row_places)
    build.mark(index, entries)
    here = xp.empty(build.count_below(index), places.dtype)
    build.list_marked(index, here)
    rows = _look_up(index, here.size, row_places)
    all_sizes = xp.zeros(here.size, np.int64)
    all_sizes[rows] = sizes
    offsets, targets = offsets_of(all_sizes), xp.empty(entries.size, np.int32)
    build.relabel(
        index, xp.arange(here.size, dtype=np.int32), rows, offsets_of(sizes), entries, offsets, targets,
        xp.empty(rows.size, np.int64), False,
    )  # fmt: skip
    del entries
    in_offsets, sources = transpose(offsets, targets)
    offsets, targets = transpose(in_offsets, sources)  # rows ascend after two transpositions
    taken = pieces(rows, np.cumsum([part.size for part in came]))
    rows, in_rows = (offsets[:-1], offsets[1:], targets), (in_offsets[:-1], in_offsets[1:], sources)
    return Shares(graph, index, here, *rows, *in_rows, taken, given)


def rows_of_others(shares: Shares, comm: MPI.Intracomm) -> Iterator[tuple[Any, Any, Any]]:
    """Rows of other ranks to whose nodes edges here lead, in rounds of so many entries as suit the device. Collective.

    Entries that do not occur here are left out. Ranks say once which rows they need, and in each round every rank gets
    the next few of them from every other rank.

    Yields
    ------
    begins, ends, entries : (numbers,) int64, the same, (entries,) int32
        The row of number n is ``entries[begins[n] : ends[n]]``, ascending; those that did not come are empty.
    """
    if shares.places is None:
        return
    build = backend(Build, device_of(shares.index))
    ops, xp = backend(Triangles, device_of(shares.index)), build.xp
    elsewhere = shares.places % comm.size != comm.rank
    needed = xp.flatnonzero(elsewhere & (shares.in_ends > shares.in_begins)).astype(np.int32)
    needed, ends = _by_holder(needed, shares.places[needed], comm)
    requested = [shares.numbers_of(places) for places in build.all_to_all(comm, pieces(shares.places[needed], ends))]
    own, capacity = (shares.begins, shares.ends, shares.targets), ops.ROWS_AT_ONCE
    rounds = [runs_of_rows(shares.ends[rows] - shares.begins[rows], capacity // comm.size) for rows in requested]
    begin = ends - np.diff(ends, prepend=0)  # of the rows that have not come yet
    for turn in range(max(comm.allgather(max(len(cuts) for cuts in rounds)))):
        send = [rows[cuts[turn]] if turn < len(cuts) else rows[:0] for rows, cuts in zip(requested, rounds)]
        gathered = [ops.orient(rows, *own, shares.places, in_order=True) for rows in send]
        sizes = build.all_to_all(comm, [xp.diff(offsets) for offsets, _ in gathered])
        entries = shares.numbers_of(xp.concatenate(build.all_to_all(comm, [values for _, values in gathered])))
        numbers = xp.concatenate([needed[at : at + came.size] for at, came in zip(begin, sizes)])
        begin += [came.size for came in sizes]
        kept = entries >= 0
        offsets = offsets_of(kept)[offsets_of(xp.concatenate(sizes))]
        row_begins, row_ends = xp.zeros((2, shares.places.size), np.int64)
        row_begins[numbers], row_ends[numbers] = offsets[:-1], offsets[1:]
        yield row_begins, row_ends, entries[kept]


def return_to_masters(shares: Shares, values: Any, comm: MPI.Intracomm) -> Any:
    """(masters,) int64: ``values``, one per number, summed over the ranks, at the masters of this rank. Collective."""
    if shares.places is None:
        return values
    build = backend(Build, device_of(values))
    xp = build.xp
    counted = xp.flatnonzero(values)
    counted, ends = _by_holder(counted, shares.places[counted], comm)
    sums = xp.zeros_like(values)
    came = [build.all_to_all(comm, pieces(what[counted], ends)) for what in (shares.places, values)]
    for places, parts in zip(*came):
        sums[shares.numbers_of(places)] += parts
    answer = xp.zeros(shares.graph.num_masters, np.int64)
    answer[shares.given] = xp.concatenate(build.all_to_all(comm, [sums[rows] for rows in shares.taken]))
    return answer


def _by_holder(items: Any, places: Any, comm: MPI.Intracomm) -> tuple[Any, np.ndarray]:
    """Items by the rank at which their places are counted, and where those of each rank end."""
    order, ends = by_rank(places % comm.size, comm.size)
    return items[order], ends


def _look_up(index: Any, size: int, places: Any) -> Any:
    build = backend(Build, device_of(index))
    numbers = build.xp.empty(places.size, np.int32)
    build.look_up(index, build.xp.arange(size, dtype=np.int32), places, numbers)
    return numbers


def transpose(offsets: Any, targets: Any) -> tuple[Any, Any]:
    """Offsets and sources of the transpose; sources ascend within a row."""
    build = backend(Build, device_of(targets))
    in_offsets, sources, none = build.xp.zeros_like(offsets), build.xp.empty_like(targets), build.xp.empty(0, np.uint8)
    build.count_in_edges(targets, in_offsets)
    add_up(in_offsets)
    build.transpose(0, offsets, targets, none, 0, offsets.size - 1, in_offsets[:-1].copy(), sources, none)
    return in_offsets, sources
