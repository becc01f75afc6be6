"""Data about nodes that other ranks read: one value for each target of a rank's edges."""

from dataclasses import dataclass

import numpy as np

from cusp.input.edge_slice import EdgeSlice
from cusp.kernels.arrays import changed_rows
from cusp.kernels.interfaces import Build
from cusp.runtime.compiled_code import njit
from cusp.runtime.devices import Array, backend, device_of, to_host, xp_of
from cusp.runtime.exchange import all_to_all, pieces
from cusp.runtime.mpi import MPI


@dataclass(frozen=True)
class Neighbors:
    """Nodes of other slices that the edges of this slice point to, and which nodes of this one others requested.

    Attributes
    ----------
    index : (2 * ceil(N / 64),) uint64
        Bits of the neighbours, with counts, as in :class:`cusp.lid_map.LidMap`: the place of a
        neighbour is the number of bits below its own.
    starts : (ranks + 1,) int64
        Neighbours that rank r reads have the places ``starts[r] : starts[r + 1]``, by ascending gid.
    requested : list of (n_r,) int64
        Rows of this slice, ascending, whose values rank r needs.
    rows : int
        Nodes of this slice; their places come before those of the neighbours.
    """

    index: np.ndarray
    starts: np.ndarray
    requested: list[np.ndarray]
    rows: int

    @property
    def size(self) -> int:
        """Number of neighbours."""
        return int(self.starts[-1])

    def exchange_changes(self, values: np.ndarray, known: np.ndarray, join: bool, comm: MPI.Intracomm) -> None:
        """Tell the ranks that touch a node what its reader says of it, if that has changed; on the host. Collective.

        Parameters
        ----------
        values, known : (places, n) any type
            Now, and at the end of the exchange before. Both are changed in place.
        join : bool
            Before, the reader adds the bits that others have set; else, others are not heard.
        """
        at = changed_rows(values, known)
        own, foreign = np.split(at, [np.searchsorted(at, self.rows)])
        changed, firsts = np.zeros(self.rows, np.bool_), self.rows + self.starts
        changed[own] = True
        if join:
            which = np.split(foreign, np.searchsorted(foreign, firsts[1:-1]))
            told = _tell(values, [(some, some - first) for some, first in zip(which, firsts)], comm)
            for rows, (numbers, bits) in zip(self.requested, told, strict=True):
                values[rows[numbers]] |= bits
                changed[rows[numbers]] = True
        else:
            values[foreign] = known[foreign]
        wanted = (np.flatnonzero(changed[rows]) for rows in self.requested)
        told = _tell(values, [(rows[numbers], numbers) for rows, numbers in zip(self.requested, wanted)], comm)
        for first, (numbers, said) in zip(firsts, told):
            values[first + numbers] = known[first + numbers] = said
        own = np.flatnonzero(changed)
        known[own] = values[own]


def find_neighbors(edges: EdgeSlice, comm: MPI.Intracomm, sources: np.ndarray | None = None) -> Neighbors:
    """Ask every reader for the nodes of its slice that this one points to; and for ``sources``. Collective."""
    build = backend(Build, edges.device)
    index = build.xp.zeros(2 * (-(-edges.num_nodes // 64)), np.uint64)
    for part in edges.storage.parts(edges.targets.size):
        build.mark(index, edges.targets[part])
    if sources is not None:
        build.mark(index, sources)
    build.clear_range(index, edges.first_node, edges.first_node + edges.indptr.size - 1)
    gids = build.xp.empty(build.count_below(index), np.int64)
    build.list_marked(index, gids)
    starts = _places_of(edges.bounds, gids)
    needed = pieces(gids, starts[1:])
    requested = [nodes - edges.first_node for nodes in build.all_to_all(comm, needed)]
    return Neighbors(index, starts, requested, edges.indptr.size - 1)


def exchange_neighbors(neighbors: Neighbors, values: np.ndarray, bounds: np.ndarray, comm: MPI.Intracomm) -> np.ndarray:
    """(neighbours,): values of all neighbours, of which each rank has those of its slice. Collective.

    ``bounds`` are those of :class:`~cusp.input.edge_slice.EdgeSlice`.
    """
    table = xp_of(device_of(values)).empty(neighbors.size, values.dtype)
    exchange_block(neighbors, values, table, np.stack([bounds[:-1], bounds[1:]], axis=1), 0, comm)
    return table


def exchange_block(
    neighbors: Neighbors, values: np.ndarray, table: np.ndarray, blocks: np.ndarray, block: int, comm: MPI.Intracomm
) -> None:
    """Send the values of one block of rows to the ranks that need them; store what arrives in ``table``. Collective.

    Both sides know which nodes were requested and where the blocks of each slice begin, so nothing but
    values travels.

    Parameters
    ----------
    values : (nodes of the slice,) any type
    table : (neighbours,) of the same type
        Changed in place.
    blocks : (ranks, blocks + 1) int64
        First node of each block of each rank's slice, global ids; the last entry ends the slice.
    """
    build = backend(Build, device_of(values))
    own = blocks[comm.rank, block : block + 2] - blocks[comm.rank, 0]
    send = [values[rows[slice(*_places_of(own, rows))]] for rows in neighbors.requested]
    for rank, arrived in enumerate(build.all_to_all(comm, send)):
        if arrived.size:
            at = int(build.rank_of(neighbors.index, blocks[rank, block]))
            table[at : at + arrived.size] = arrived


def _tell(
    values: np.ndarray, places: list[tuple[np.ndarray, np.ndarray]], comm: MPI.Intracomm
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Send each rank the values of some places, and their numbers among those that concern it. Collective."""
    told = all_to_all(comm, [values[at].reshape(-1) for at, _ in places])
    numbers = all_to_all(comm, [numbers for _, numbers in places])
    return [(which, said.reshape(-1, values.shape[1])) for which, said in zip(numbers, told, strict=True)]


def both_directions(edges: EdgeSlice, comm: MPI.Intracomm) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the neighbours of each node of the slice along edges in both directions; on the host. Collective.

    Returns
    -------
    (nodes + 1,) int64, (entries,)
        Those of the slice if the graph is symmetric; else out-neighbours and in-neighbours, one for each edge.
    """
    if edges.symmetric:
        return edges.indptr, edges.targets
    build, own, dtype = backend(Build, "cpu"), np.diff(edges.indptr), edges.targets.dtype
    readers = np.searchsorted(edges.bounds[1:-1], edges.targets, side="right")
    readers = readers.astype(np.uint8 if comm.size <= 256 else np.uint16)
    counts = build.count_owners(readers, comm.size)
    arrived = []
    for ends in (edges.targets, np.repeat(np.arange(own.size) + edges.first_node, own).astype(dtype)):
        grouped = np.empty(ends.size, dtype)
        build.group_by_owner(ends, readers, counts, grouped)
        arrived.append(all_to_all(comm, pieces(grouped, np.cumsum(counts))))
    rows = [np.repeat(np.arange(own.size), own), *(ends.astype(np.int64) - edges.first_node for ends in arrived[0])]
    indptr = np.zeros(own.size + 1, np.int64)
    for some in rows:
        indptr[1:] += np.bincount(some, minlength=own.size)
    np.cumsum(indptr, out=indptr)
    both, free = np.empty(int(indptr[-1]), dtype), indptr[:-1].copy()
    for some, others in zip(rows, [edges.targets, *arrived[1]]):
        _fill(some, others, free, both)
    return indptr, both


def fetch_from_readers(gids: np.ndarray, bounds: np.ndarray, values: np.ndarray, comm: MPI.Intracomm) -> np.ndarray:
    """(n,): values of any nodes, ``gids`` (n,) int64, which ascend, of which each rank has those of its slice.

    ``bounds`` are those of :class:`~cusp.input.edge_slice.EdgeSlice`. Collective.
    """
    build = backend(Build, device_of(values))
    requested = build.all_to_all(comm, pieces(gids, _places_of(bounds[1:], gids)))
    first = int(bounds[comm.rank])
    return build.xp.concatenate(build.all_to_all(comm, [values[rows - first] for rows in requested]))


def in_degrees_of(edges: EdgeSlice, comm: MPI.Intracomm) -> np.ndarray:
    """(nodes of the slice,) int64: in-degrees, counted unless they have been read. Collective.

    While they are counted, each rank holds a number of 8 bytes for each node of the graph.
    """
    if edges.in_degrees is not None:
        return edges.in_degrees
    build = backend(Build, edges.device)
    if edges.symmetric:
        return build.xp.diff(edges.indptr)
    counts = build.xp.zeros(edges.num_nodes + 1, np.int64)
    for part in edges.storage.parts(edges.targets.size):
        targets = edges.targets[part]
        build.count_in_edges(targets.view(np.int64) if targets.dtype == np.uint64 else targets, counts)
    in_degrees = build.xp.zeros(edges.indptr.size - 1, np.int64)
    for arrived in build.all_to_all(comm, pieces(counts[1:], edges.bounds[1:])):
        in_degrees += arrived
    return in_degrees


def _places_of(nodes: np.ndarray, ascending: Array) -> np.ndarray:
    """On the host: how many entries of an ascending list are below each of a few nodes."""
    xp = xp_of(device_of(ascending))
    return to_host(xp.searchsorted(ascending, xp.asarray(nodes)))


@njit(cache=True, nogil=True)
def _fill(rows, others, free, both):  # type: ignore[no-untyped-def]
    for i in range(rows.size):
        both[free[rows[i]]] = others[i]
        free[rows[i]] += 1
