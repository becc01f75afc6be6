"""Phase 3: every rank receives the list of the rows that it will store, with their lengths."""

from dataclasses import dataclass

import numpy as np

from cusp.errors import GraphFileError, together
from cusp.input.edge_slice import EdgeSlice
from cusp.kernels.arrays import compress, filled_rows, numbers, offsets_of, sizes_of
from cusp.kernels.interfaces import Build
from cusp.runtime.devices import backend
from cusp.runtime.exchange import pieces
from cusp.runtime.mpi import MPI

LONGEST_ROW = 2**32 - 1  # edges: places in a row are 32-bit numbers on GPUs and in messages


@dataclass(frozen=True)
class Layout:
    """The rows that this rank will store, in ascending order of their sources.

    Attributes
    ----------
    row_gids : (rows,) uint32 or uint64
        Sources with at least one edge here.
    row_offsets : (rows + 1,) int64
        Edges of row i: ``row_offsets[i] : row_offsets[i + 1]``.
    arrivals : (ranks + 1,) int64
        The edges that rank r read will be at ``arrivals[r] : arrivals[r + 1]``: readers have
        ascending ranges of nodes, so what comes from each is one piece and needs no sorting.
    """

    row_gids: np.ndarray
    row_offsets: np.ndarray
    arrivals: np.ndarray


def allocate(edges: EdgeSlice, owners: np.ndarray | None, comm: MPI.Intracomm) -> Layout:
    """Send every owner the list of the rows that it gets from here, with the number of edges of each. Collective.

    Parameters
    ----------
    owners : (edges,) uint8 or uint16, or None
        None if every edge stays where it was read, see :func:`~cusp.assign_edges.assign_edges`.

    Raises
    ------
    GraphFileError
        On every rank: a node has more than ``LONGEST_ROW`` out-edges.
    """
    build, sizes = backend(Build, edges.device), sizes_of(edges.indptr)
    xp = build.xp
    with together(comm):
        if sizes.size and int(sizes.max()) > LONGEST_ROW:
            row = int(sizes.argmax())
            raise GraphFileError(
                f"node {edges.first_node + row:,} has {int(sizes[row]):,} out-edges, but a node may have "
                f"{LONGEST_ROW:,}: keep one of parallel edges"
            )
    del sizes
    if owners is None:
        filled = filled_rows(edges.indptr)
        nodes = numbers(edges.first_node, edges.first_node + filled.size, edges.targets.dtype, edges.device)
        arrivals = np.zeros(comm.size + 1, np.int64)
        arrivals[comm.rank + 1 :] = edges.targets.size
        return Layout(compress(filled, nodes), compress(filled, edges.indptr), arrivals)
    rows_for = np.zeros(comm.size, np.int64)
    for row, end in edges.storage.rows(edges.indptr):
        rows_for += build.count_rows(edges.indptr[row : end + 1], owners, comm.size)
    row_gids = xp.empty(int(rows_for.sum()), edges.targets.dtype)
    row_sizes = xp.empty_like(row_gids)
    ends = np.cumsum(rows_for)
    entry = ends - rows_for - 1
    for row, end in edges.storage.rows(edges.indptr):
        build.list_rows(edges.first_node + row, edges.indptr[row : end + 1], owners, entry, row_gids, row_sizes)
    gids = xp.concatenate(build.all_to_all(comm, pieces(row_gids, ends)))
    del row_gids
    sizes = build.all_to_all(comm, pieces(row_sizes, ends))
    arrivals = np.cumsum([0] + [int(part.sum(dtype=np.int64)) for part in sizes])
    sizes = xp.concatenate(sizes)
    return Layout(gids, offsets_of(sizes), arrivals)
