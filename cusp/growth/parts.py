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
from cusp.runtime.teams.together import together
from cusp.runtime.threads import row_ranges


def renumbered(part: Partition, numbers: np.ndarray | None, num_nodes: int) -> Partition:
    """A partition of the same edges between more nodes, in which node i has the number ``numbers[i]``.

    These ascend, so that local ids stay as they are. None: nodes keep their numbers.
    """
    gids = part.gids if numbers is None else numbers[part.gids]
    return replace(part, num_nodes=num_nodes, gids=gids, lid_map=map_lids(num_nodes, gids))


def what_was_before(part: Partition, edges: EdgeSlice, in_degrees: bool, comm: MPI.Intracomm) -> Before:
    """Masters and degrees of the nodes of a slice, told by the ranks of a partition. Collective."""
    own, size = slice(0, part.num_masters), edges.indptr.size - 1
    masters, degrees = np.full(size, -1, np.int16), np.zeros(size, np.int64)
    known = part.gids[own], part.degrees
    for rank, (gids, values) in enumerate(zip(*_at_readers(known, edges.bounds, comm))):
        masters[gids - edges.first_node], degrees[gids - edges.first_node] = rank, values
    if not in_degrees:
        return Before(masters, degrees, None)
    known, into = (part.gids, np.bincount(part.targets, minlength=part.num_proxies)), np.zeros(size, np.int64)
    for gids, values in zip(*_at_readers(known, edges.bounds, comm)):
        into[gids - edges.first_node] += values
    return Before(masters, degrees, into)


def _at_readers(
    columns: tuple[np.ndarray, ...], bounds: np.ndarray, comm: MPI.Intracomm
) -> tuple[list[np.ndarray], ...]:
    """What each rank tells the reader of a node, in columns of which the first has the nodes. Collective."""
    reader = np.searchsorted(bounds[1:-1], columns[0], side="right")
    sent = [np.flatnonzero(reader == rank) for rank in range(comm.size)]
    return tuple(all_to_all(comm, [column[some] for some in sent]) for column in columns)


def with_rows_of(
    part: Partition, layout: Layout, targets: np.ndarray, weights: np.ndarray | None
) -> tuple[Layout, np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
    """Rows that were added to a rank, each behind the row that this has of the same source, and its other rows.

    Parameters
    ----------
    layout, targets, weights
        Of the rows that were added, as :func:`~cusp.construct.exchange_edges` leaves them.

    Returns
    -------
    layout : Layout
        Of which only the rows count.
    targets : (edges,) uint32 or uint64
        Places among ``gids``.
    weights : (edges,) any number type, or None
    gids : (n,) uint32 or uint64
    targeted : (m,) uint32 or uint64
        Global ids of all targets; some may be there several times.
    """
    sizes, lids, dtype = sizes_of(part.offsets), part.lid_map.lids(layout.row_gids), targets.dtype
    added_row = np.full(part.num_proxies + 1, lids.size)  # by local id; without one, the empty row behind the last
    added_row[lids] = np.arange(lids.size)
    filled, strange = np.flatnonzero((sizes > 0) | (added_row[:-1] < lids.size)), np.flatnonzero(lids < 0)
    rows = (
        np.concatenate([filled, np.full(strange.size, part.num_proxies)]),
        np.concatenate([added_row[filled], strange]),
    )
    ends = [np.append(offsets, offsets[-1]) for offsets in (part.offsets, layout.row_offsets)]
    offsets = np.zeros(rows[0].size + 1, np.int64)
    np.cumsum(sum(sizes_of(some)[row] for some, row in zip(ends, rows)), out=offsets[1:])
    own = part.gids.astype(dtype)
    places, targeted = part.lid_map.lids(targets), np.concatenate([own[part.has_in], targets])
    new = places < 0
    strangers, which = np.unique(targets[new], return_inverse=True)
    places = places.astype(dtype)
    places[new] = own.size + which

    def join(own: np.ndarray, added: np.ndarray) -> np.ndarray:
        joined = np.empty(own.size + added.size, added.dtype)
        arrays = (*rows, *ends, as_bits(own), as_bits(added), offsets, as_bits(joined))
        together(_join, row_ranges(offsets), *arrays)
        return joined

    gids = np.concatenate([own[filled], layout.row_gids[strange]])
    joined = None if weights is None or part.weights is None else join(part.weights, weights)
    layout = Layout(gids, offsets, layout.arrivals)
    return layout, join(part.targets, places), joined, np.concatenate([own, strangers]), targeted


@njit(cache=True, nogil=True)
def _join(first, last, own_rows, added_rows, own_ends, added_ends, own, added, offsets, joined):  # type: ignore[no-untyped-def]
    """Write the rows ``first`` to ``last - 1``, each of which two rows are put together to."""
    for row in range(first, last):
        at = offsets[row]
        for edge in range(own_ends[own_rows[row]], own_ends[own_rows[row] + 1]):
            joined[at] = own[edge]
            at += 1
        for edge in range(added_ends[added_rows[row]], added_ends[added_rows[row] + 1]):
            joined[at] = added[edge]
            at += 1
