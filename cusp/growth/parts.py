"""Added edges are partitioned like a graph of their own, but for what is known of nodes; then rows are put together."""

from dataclasses import replace

import numpy as np

from cusp.allocate import Layout
from cusp.input.checksum import as_bits
from cusp.input.edge_slice import EdgeSlice
from cusp.kernels.arrays import sizes_of
from cusp.lid_map import map_lids
from cusp.partition import Partition
from cusp.prepare_rules import Before
from cusp.runtime.compiled_code import njit
from cusp.runtime.exchange import all_to_all
from cusp.runtime.mpi import MPI
from cusp.runtime.threads import in_parallel, row_ranges


def renumbered(part: Partition, numbers: np.ndarray | None, num_nodes: int) -> Partition:
    """A partition of the same edges between more nodes, in which node i has the number ``numbers[i]``.

    These ascend, so that local ids stay as they are. None: nodes keep their numbers.
    """
    gids = part.gids if numbers is None else numbers[part.gids]
    return replace(part, num_nodes=num_nodes, gids=gids, lid_map=map_lids(num_nodes, gids))


def what_was_before(part: Partition, edges: EdgeSlice, comm: MPI.Intracomm) -> Before:
    """Masters and degrees of the nodes of a slice, told by the ranks of a partition. Collective."""
    own, size = slice(0, part.num_masters), edges.indptr.size - 1
    masters, degrees, in_degrees = np.full(size, -1, np.int16), np.zeros(size, np.int64), np.zeros(size, np.int64)
    known = part.gids[own], part.degrees
    for rank, (gids, values) in enumerate(zip(*_at_readers(known, edges.bounds, comm))):
        masters[gids - edges.first_node], degrees[gids - edges.first_node] = rank, values
    known = part.gids, np.bincount(part.targets, minlength=part.num_proxies)
    for gids, values in zip(*_at_readers(known, edges.bounds, comm)):
        in_degrees[gids - edges.first_node] += values
    return Before(masters, degrees, in_degrees)


def _at_readers(
    columns: tuple[np.ndarray, ...], bounds: np.ndarray, comm: MPI.Intracomm
) -> tuple[list[np.ndarray], ...]:
    """What each rank tells the reader of a node, in columns of which the first has the nodes. Collective."""
    reader = np.searchsorted(bounds[1:-1], columns[0], side="right")
    sent = [np.flatnonzero(reader == rank) for rank in range(comm.size)]
    return tuple(all_to_all(comm, [column[some] for some in sent]) for column in columns)


def with_rows_of(
    part: Partition, layout: Layout, targets: np.ndarray, weights: np.ndarray | None
) -> tuple[Layout, np.ndarray, np.ndarray | None]:
    """Rows that were added to a rank, each behind the row that this has of the same source, and its other rows.

    Parameters
    ----------
    layout, targets, weights
        Of the rows that were added, as :func:`~cusp.construct.exchange_edges` leaves them. The arrivals of the layout
        are no longer told apart.
    """
    sizes, lids = sizes_of(part.offsets), part.lid_map.lids(layout.row_gids)
    row = np.full(part.num_proxies + 1, -1)  # of the added ones, by local id; the last is that of strangers
    row[lids] = np.arange(lids.size)
    filled, strange = np.flatnonzero((sizes > 0) | (row[:-1] >= 0)), np.flatnonzero(lids < 0)
    pairs = (  # per row: a row of the partition and one of the added ones, or the empty row behind the last
        np.concatenate([filled, np.full(strange.size, part.num_proxies)]),
        np.concatenate([np.where(row[filled] < 0, lids.size, row[filled]), strange]),
    )
    ends = [np.append(offsets, offsets[-1]) for offsets in (part.offsets, layout.row_offsets)]
    offsets = np.zeros(pairs[0].size + 1, np.int64)
    np.cumsum(sum(sizes_of(some)[rows] for some, rows in zip(ends, pairs)), out=offsets[1:])
    gids = np.concatenate([part.gids[filled].astype(layout.row_gids.dtype), layout.row_gids[strange]])

    def join(table: np.ndarray, own: np.ndarray, added: np.ndarray) -> np.ndarray:
        joined = np.empty(own.size + added.size, added.dtype)
        in_parallel(
            lambda first, last: _join(first, last, *pairs, *ends, table, own, added, offsets, joined),
            row_ranges(offsets),
        )
        return joined

    merged = join(part.gids.astype(targets.dtype), part.targets, targets)
    if weights is not None:
        assert part.weights is not None
        bits = as_bits(weights)
        weights = join(bits[:0], as_bits(part.weights), bits).view(weights.dtype)
    return Layout(gids, offsets, layout.arrivals), merged, weights


@njit(cache=True, nogil=True)
def _join(first, last, own_rows, added_rows, own_ends, added_ends, table, own, added, offsets, joined):  # type: ignore[no-untyped-def]
    """Write the rows ``first`` to ``last - 1``: of two rows each, where ``own`` has places in a ``table``, if any."""
    for row in range(first, last):
        at = offsets[row]
        for edge in range(own_ends[own_rows[row]], own_ends[own_rows[row] + 1]):
            joined[at] = table[own[edge]] if table.size else own[edge]
            at += 1
        for edge in range(added_ends[added_rows[row]], added_ends[added_rows[row] + 1]):
            joined[at] = added[edge]
            at += 1
