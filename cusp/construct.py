"""Phase 4: edges travel to their owners, proxies get local ids, the local CSR fills."""

from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

from cusp import build_cpu as build
from cusp.allocate import Layout
from cusp.assign_masters import Masters
from cusp.checksum import as_bits
from cusp.exchange import exchange_counts, post, wait_all
from cusp.graph_file import EdgeSlice
from cusp.lid_map import LidMap
from cusp.partition import Partition

CHUNK = 1 << 20  # edges of a slice that travel at a time


@dataclass(frozen=True)
class Arrivals:
    """The edges of this rank's rows, in the order of :class:`~cusp.allocate.Layout`, ends still global ids.

    Attributes
    ----------
    targets : (edges,) uint32 or uint64
    weights : (edges,) any number type, or None
    """

    targets: np.ndarray
    weights: np.ndarray | None


def exchange_edges(edges: EdgeSlice, owners: np.ndarray | None, layout: Layout, comm: MPI.Intracomm) -> Arrivals:
    """First half of phase 4: every edge travels to its owner. Collective."""
    targets = ship(edges.targets, owners, layout, comm)
    if edges.weights is None:
        return Arrivals(targets, None)
    return Arrivals(targets, ship(as_bits(edges.weights), owners, layout, comm).view(edges.weights.dtype))


def construct(
    graph: EdgeSlice, arrivals: Arrivals, masters: Masters, layout: Layout, order: str, comm: MPI.Intracomm
) -> Partition:
    """Second half of phase 4: number the proxies and build the local CSR. Collective.

    ``graph`` need not have its edges any more, see :meth:`~cusp.graph_file.EdgeSlice.without_edges`.
    """
    arrived = arrivals.targets
    lid_map, gids, mirror_starts, has_in = _number_proxies(graph.num_nodes, arrived, layout, masters, order, comm)
    row_lids = lid_map.lids(layout.row_gids)
    sizes = np.zeros(gids.size + 1, np.int64)
    sizes[row_lids + 1] = np.diff(layout.row_offsets)
    offsets = np.cumsum(sizes)
    targets = np.empty(arrived.size, np.int32)
    build.relabel(lid_map.index, lid_map.table, row_lids, layout.row_offsets, arrived, offsets, targets)
    weights = None
    if arrivals.weights is not None:
        weights = np.empty_like(arrivals.weights)
        build.move_rows(row_lids, layout.row_offsets, as_bits(arrivals.weights), offsets, as_bits(weights))
    degrees = np.empty_like(masters.my_degrees)
    degrees[lid_map.lids(masters.my_nodes)] = masters.my_degrees
    return Partition(
        comm.rank, comm.size, graph.num_nodes, graph.num_edges, graph.symmetric, masters.my_nodes.size,
        mirror_starts, gids, offsets, targets, weights, has_in, degrees, lid_map,
    )  # fmt: skip


def ship(values: np.ndarray, owners: np.ndarray | None, layout: Layout, comm: MPI.Intracomm) -> np.ndarray:
    """Send one value an edge (target or weight) to its owner; returns those of this rank's rows. Collective.

    A slice travels in chunks of bounded size: while one is under way, the next is grouped by owner.
    What comes from a reader is appended to its piece of the result, so nothing is unpacked.
    """
    if owners is None:
        return values
    arrived = np.empty(int(layout.arrivals[-1]), values.dtype)
    place = layout.arrivals[:-1].copy()
    grouped = np.empty((2, min(CHUNK, values.size)), values.dtype)
    under_way: list = []
    chunks = comm.allreduce(-(-values.size // CHUNK), MPI.MAX)
    for chunk in range(chunks):
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        counts = build.count_owners(owners[part], comm.size)
        build.group_by_owner(values[part], owners[part], counts, grouped[chunk % 2])
        send = np.split(grouped[chunk % 2][: counts.sum()], np.cumsum(counts)[:-1])
        sizes = exchange_counts(comm, counts)
        receive = [arrived[at : at + size] for at, size in zip(place, sizes, strict=True)]
        wait_all(under_way)
        under_way = post(comm, send, receive)
        receive[comm.rank][:] = send[comm.rank]
        place += sizes
    wait_all(under_way)
    return arrived


def _number_proxies(
    num_nodes: int, arrived: np.ndarray, layout: Layout, masters: Masters, order: str, comm: MPI.Intracomm
) -> tuple[LidMap, np.ndarray, np.ndarray, np.ndarray]:
    """Local ids: masters first, in the order asked for; then mirrors, grouped by their master's rank."""
    index = np.zeros(2 * (-(-num_nodes // 64)), np.uint64)
    build.mark(index, arrived)
    targeted = index[::2].copy()
    build.mark(index, layout.row_gids)
    build.mark(index, masters.my_nodes)
    ascending = np.empty(build.count_below(index), np.int64)
    build.list_marked(index, ascending)

    num_masters = masters.my_nodes.size
    master_places = np.empty(num_masters, np.int64)
    mirror_places = np.empty(ascending.size - num_masters, np.int64)
    build.find_masters(ascending, masters.my_nodes, master_places, mirror_places)
    mirror_ranks = masters.of(ascending[mirror_places]).astype(np.uint16)
    by_lid = np.concatenate(
        [
            master_places[_order_of(masters.my_degrees, order)],
            mirror_places[np.argsort(mirror_ranks, kind="stable")],
        ]
    )
    table = np.empty(ascending.size, np.int32)
    table[by_lid] = np.arange(ascending.size, dtype=np.int32)
    gids = ascending[by_lid]
    has_in = np.empty(gids.size, np.bool_)
    build.test_bits(targeted, gids, has_in)
    mirror_starts = np.full(comm.size + 1, num_masters, np.int64)
    mirror_starts[1:] += np.cumsum(np.bincount(mirror_ranks, minlength=comm.size))
    return LidMap(index, table), gids, mirror_starts, has_in


def _order_of(degrees: np.ndarray, order: str) -> np.ndarray:
    """Places of the masters by lid: ``degree`` = hubs first; ``natural`` = by gid. Without out-edges last."""
    if order == "natural":
        return np.argsort(degrees == 0, kind="stable")
    return np.argsort(np.uint16(65535) - np.minimum(degrees, 65535).astype(np.uint16), kind="stable")
