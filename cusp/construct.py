"""Phase 4: edges travel to their owners, proxies get local ids, and the local CSR is built."""

from dataclasses import dataclass

import numpy as np

from cusp.allocate import Layout
from cusp.assign_masters import Masters
from cusp.errors import together
from cusp.input.checksum import as_bits
from cusp.input.edge_slice import EdgeSlice
from cusp.kernels.arrays import add_up, mapped, numbers, put, sizes_of
from cusp.kernels.interfaces import Build
from cusp.lid_map import LidMap, order_of_masters
from cusp.partition import Partition
from cusp.runtime.devices import backend
from cusp.runtime.exchange import exchange_counts, pieces
from cusp.runtime.mpi import MPI
from cusp.runtime.storage import Storage

HIGHEST = {"degree": 65535, "natural": 1}  # masters of this out-degree or more are in the order of their gids


@dataclass(frozen=True)
class Proxies:
    """The nodes of this rank by local id: what a :class:`~cusp.partition.Partition` holds besides edges."""

    lid_map: LidMap
    gids: np.ndarray
    mirror_starts: np.ndarray
    has_in: np.ndarray
    degrees: np.ndarray


def exchange_edges(
    edges: EdgeSlice, owners: np.ndarray | None, layout: Layout, comm: MPI.Intracomm
) -> tuple[np.ndarray, np.ndarray | None]:
    """First part: every edge travels to its owner; targets, as global ids, and weights in the order of the layout.

    Collective.
    """
    targets = ship(edges.targets, owners, layout, edges.storage, comm)
    if edges.weights is None:
        return targets, None
    weights = ship(as_bits(edges.weights), owners, layout, edges.storage, comm)
    return targets, weights.view(edges.weights.dtype)


def number_proxies(
    graph: EdgeSlice, targets: np.ndarray, masters: Masters, layout: Layout, order: str, comm: MPI.Intracomm
) -> Proxies:
    """Second part: every node that occurs gets a local id. Collective.

    Masters come first, in the given order; then mirrors, grouped by their master's rank and in the order of the masters
    there: so what two ranks exchange about their nodes is read and written in order on both sides.
    """
    build = backend(Build, graph.device)
    xp = build.xp
    index = xp.zeros(2 * (-(-graph.num_nodes // 64)), np.uint64)
    if comm.size == 1 and graph.symmetric:
        build.mark(index, layout.row_gids)  # they are the targets, too, and far fewer than edges
    else:
        for part in graph.storage.parts(targets.size):
            build.mark(index, targets[part])
    targeted = index[::2].copy()
    build.mark(index, layout.row_gids)
    build.mark(index, masters.my_nodes)
    num_proxies = build.count_below(index)
    table = xp.empty(num_proxies, np.int32)  # made first: what is made when a card is full lies elsewhere
    num_masters = masters.my_nodes.size
    mirror_places = xp.empty(num_proxies - num_masters, np.int32)
    if mirror_places.size:
        ascending, master_places = xp.empty(num_proxies, layout.row_gids.dtype), xp.empty(num_masters, np.int32)
        build.list_marked(index, ascending)
        build.find_masters(ascending, masters.my_nodes, master_places, mirror_places)
    else:
        ascending = mapped(lambda gids: gids, masters.my_nodes, dtype=layout.row_gids.dtype)
        master_places = numbers(0, num_masters, np.int32, graph.device)
    mirror_ranks = masters.of(ascending[mirror_places].astype(np.int64)).astype(np.uint16)
    gids, degrees = xp.empty(ascending.size, np.int64), xp.empty(num_masters, np.int64)
    build.sort_masters(masters.my_degrees, HIGHEST[order], master_places, ascending, table, gids, degrees)
    mirror_starts = np.full(comm.size + 1, num_masters, np.int64)
    mirror_starts[1:] += np.cumsum(build.count_owners(mirror_ranks, comm.size))
    mirror_places = mirror_places[xp.argsort(mirror_ranks, kind="stable")]
    lid_map = LidMap(index, table)
    table[mirror_places] = -1
    order = order_of_masters(ascending[mirror_places], mirror_starts[1:] - num_masters, lid_map, comm)
    mirror_places = mirror_places[order]
    gids[num_masters:] = ascending[mirror_places]
    table[mirror_places] = xp.arange(num_masters, ascending.size, dtype=np.int32)
    gids, degrees = graph.storage.aside(gids), graph.storage.aside(degrees)
    has_in = xp.empty(gids.size, np.bool_)
    build.test_bits(targeted, gids, has_in)
    return Proxies(lid_map, gids, mirror_starts, has_in, degrees)


def construct(
    graph: EdgeSlice, arrived: np.ndarray, weights: np.ndarray | None, proxies: Proxies, layout: Layout, order: str,
    comm: MPI.Intracomm, gids: np.ndarray | None = None,
) -> Partition:  # fmt: skip
    """Last part: build the local CSR. Collective.

    ``graph`` no longer needs its edges, see :meth:`~cusp.input.edge_slice.EdgeSlice.without_edges`. What has
    ``arrived`` are places in ``gids``, if they are given, else global ids.
    """
    build = backend(Build, graph.device)
    xp = build.xp
    lid_map, storage = proxies.lid_map, graph.storage
    row_lids = lid_map.lids(layout.row_gids)
    every = proxies.gids.size == graph.num_nodes  # has a proxy here: then the table is one of all nodes
    index = lid_map.index[:0] if every or gids is not None else lid_map.index
    table = lid_map.table if gids is None else lid_map.lids(gids)
    offsets = xp.zeros(proxies.gids.size + 1, np.int64)
    put(sizes_of(layout.row_offsets), row_lids, offsets[1:])
    add_up(offsets)
    with together(comm):
        targets = storage.empty(arrived.size, np.int32)
        moved = None if weights is None else storage.empty(arrived.size, weights.dtype)
    for row, end in storage.rows(layout.row_offsets):
        rows, places, fronts = row_lids[row:end], layout.row_offsets[row : end + 1], xp.empty(end - row, np.int64)
        build.relabel(index, table, rows, places, arrived, offsets, targets, fronts, order == "degree")
        if weights is not None and moved is not None:
            build.move_rows(rows, places, as_bits(weights), offsets, as_bits(moved), fronts)
    return Partition(
        comm.rank, comm.size, graph.num_nodes, graph.num_edges, graph.symmetric, proxies.degrees.size,
        proxies.mirror_starts, proxies.gids, offsets, targets, moved, proxies.has_in, proxies.degrees, lid_map,
        storage=storage, device=graph.device,
    )  # fmt: skip


def ship(
    values: np.ndarray, owners: np.ndarray | None, layout: Layout, storage: Storage, comm: MPI.Intracomm
) -> np.ndarray:
    """Send one value per edge (target or weight) to its owner; returns those of this rank's rows. Collective.

    A slice travels in chunks of bounded size: while one is under way, the next is grouped by owner.
    What comes from a reader is received straight into its piece of the result, so nothing is unpacked.
    """
    if owners is None:
        return values
    build = backend(Build, storage.device)
    with together(comm):
        arrived = storage.empty(int(layout.arrivals[-1]), values.dtype)
    place = layout.arrivals[:-1].copy()
    step = min(build.CHUNK, storage.chunk)
    grouped = build.xp.empty((2, min(step, values.size)), values.dtype)
    under_way: list = []
    landing: list[tuple[np.ndarray, np.ndarray]] = []
    for chunk in range(comm.allreduce(-(-values.size // step), MPI.MAX)):
        part = slice(chunk * step, (chunk + 1) * step)
        counts = build.count_owners(owners[part], comm.size)
        build.group_by_owner(values[part], owners[part], counts, grouped[chunk % 2])
        send = pieces(grouped[chunk % 2], np.cumsum(counts))
        sizes = exchange_counts(comm, counts)
        build.wait_all(under_way)
        _land(storage, landing)
        places = [arrived[at : at + size] for at, size in zip(place, sizes, strict=True)]
        receive = [storage.landing(into) for into in places]
        under_way, landing = build.post(comm, send, receive), list(zip(places, receive))
        receive[comm.rank][:] = send[comm.rank]
        place += sizes
    build.wait_all(under_way)
    _land(storage, landing)
    return arrived


def _land(storage: Storage, landing: list[tuple[np.ndarray, np.ndarray]]) -> None:
    for place, received in landing:
        storage.land(place, received)
    storage.release()
