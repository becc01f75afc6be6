"""Sort the records of each bucket into finished rows, splitting buckets that are too large for the memory."""

from collections.abc import Iterator

import numpy as np

from cusp.edge_lists import csr_kernels
from cusp.edge_lists.csr_kernels import FAN_BITS
from cusp.edge_lists.csr_plan import Plan
from cusp.edge_lists.csr_rows import SortedBucket, SortedPart
from cusp.edge_lists.csr_scatter import Piece, RecordStore
from cusp.edge_lists.spool import Spool
from cusp.edge_lists.weight_codes import decode
from cusp.errors import together
from cusp.input.graph_file import index_dtype
from cusp.runtime.mpi import MPI
from cusp.runtime.threads import ordered_map


class BucketSort:
    """Sorts the buckets of one rank.

    Parameters
    ----------
    plan : Plan
    record_spool, row_spool : Spool
        For records and for finished rows.
    """

    def __init__(self, plan: Plan, record_spool: Spool, row_spool: Spool) -> None:
        self._plan, self._options = plan, plan.options
        self._record_spool, self._row_spool = record_spool, row_spool

    def sort(self, comm: MPI.Intracomm, records: RecordStore) -> list[SortedBucket]:
        """Sort this rank's buckets, in order; ``records`` is empty afterwards. Collective."""
        first, last = self._plan.first_bucket[comm.rank : comm.rank + 2].tolist()

        def sort_bucket(bucket: int) -> SortedBucket:
            first_node, last_node = self._plan.first_node[bucket : bucket + 2].tolist()
            degrees = np.zeros(last_node - first_node, np.int64)
            parts = list(self._sorted_parts(records, records.pieces(bucket - first), self._plan.key_bits, degrees))
            return SortedBucket(first_node, self._row_spool.put(degrees), parts)

        with together(comm):
            buckets = list(ordered_map(sort_bucket, range(first, last)))
            records.clear()
        return buckets

    def _sorted_parts(
        self, records: RecordStore, pieces: list[Piece], top: int, degrees: np.ndarray
    ) -> Iterator[SortedPart]:
        """Sort records that differ only in the ``top`` low bits of their keys, counting edges per source.

        Too many for the memory are split by the highest of these bits, and then sorted child by child.
        Equal edges must meet for duplicates to be found, so the bits of the weight never split.
        """
        size = sum(piece.last - piece.first for piece in pieces)
        if size == 0:
            return
        if size <= self._options.capacity or top <= self._plan.weight_bits:
            yield self._sorted_edges(*records.load(pieces), degrees)
            return
        shift = max(top - FAN_BITS, self._plan.weight_bits)
        children = RecordStore(self._record_spool)
        for batch in _batches(pieces, self._options.capacity // 2):
            children.add(*_split(*records.load(batch), shift))
        for child in range(1 << FAN_BITS):
            yield from self._sorted_parts(children, children.pieces(child), shift, degrees)
        children.clear()

    def _sorted_edges(self, keys: np.ndarray, extra: np.ndarray, degrees: np.ndarray) -> SortedPart:
        plan = self._plan
        if extra.size:
            extra, keys = csr_kernels.radix_sort(extra, keys, plan.code_bits)
        keys, extra = csr_kernels.radix_sort(keys, extra, plan.key_bits)
        dtype = self._options.weight_dtype
        indices = np.empty(keys.size, index_dtype(plan.num_nodes))
        codes = np.empty(0 if dtype is None else keys.size, np.uint64)
        count = csr_kernels.unpack(keys, extra, plan.bits, self._options.dedup, degrees, indices, codes)
        indices.resize(count, refcheck=False)
        if dtype is None:
            return self._row_spool.put(indices), None
        weights = decode(codes[:count] + np.uint64(plan.code_min), dtype)
        return self._row_spool.put(indices), self._row_spool.put(weights)


def _split(keys: np.ndarray, extra: np.ndarray, shift: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The records grouped by FAN_BITS bits of their keys from ``shift`` on, and the (256,) sizes of the groups."""
    starts = np.empty((1 << FAN_BITS) + 1, np.int64)
    out_keys, out_extra = np.empty_like(keys), np.empty_like(extra)
    csr_kernels.split(keys, extra, np.uint64(shift), starts, out_keys, out_extra)
    return out_keys, out_extra, np.diff(starts)


def _batches(pieces: list[Piece], limit: int) -> Iterator[list[Piece]]:
    """Consecutive pieces of about ``limit`` records together; larger ones are cut."""
    batch: list[Piece] = []
    size = 0
    for piece in pieces:
        for first in range(piece.first, piece.last, limit):
            batch.append(Piece(piece.keys, piece.extra, first, min(piece.last, first + limit)))
            size += batch[-1].last - first
            if size >= limit:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch
