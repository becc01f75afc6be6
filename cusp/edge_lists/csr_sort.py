"""Sort the records of each bucket into finished rows, splitting those too large for the memory; write the rows."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cusp.edge_lists import csr_kernels
from cusp.edge_lists.csr_plan import Plan
from cusp.edge_lists.csr_scatter import Piece, RecordStore
from cusp.edge_lists.spool import Spool, Stored
from cusp.edge_lists.weight_codes import decode
from cusp.errors import together
from cusp.input.graph_file import index_dtype
from cusp.kernels.build_cpu import count_owners, group_by_owner
from cusp.runtime.mpi import MPI
from cusp.runtime.threads import ordered_map

FAN_BITS = 8  # a bucket that is too large is split into 256

Write = Callable[[str, int, np.ndarray], None]
SortedPart = tuple[Stored, Stored | None]  # consecutive edges of the finished graph: indices and, if any, weights


@dataclass(frozen=True)
class SortedBucket:
    """The finished rows of one bucket: its out-degrees (int64), from ``first_node`` on, and its edges."""

    first_node: int
    degrees: Stored
    parts: list[SortedPart]

    @property
    def num_edges(self) -> int:
        """In all its rows."""
        return sum(indices.size for indices, _ in self.parts)


def sort_buckets(plan: Plan, records: RecordStore, spool: Spool, comm: MPI.Intracomm) -> list[SortedBucket]:
    """Sort this rank's buckets into ``spool``, in order; ``records`` is empty afterwards. Collective."""
    first, last = plan.first_bucket[comm.rank : comm.rank + 2].tolist()

    def sort_bucket(bucket: int) -> SortedBucket:
        first_node, last_node = plan.first_node[bucket : bucket + 2].tolist()
        degrees = np.zeros(last_node - first_node, np.int64)
        parts = list(_sorted_parts(plan, records, records.pieces(bucket - first), plan.key_bits, degrees, spool))
        return SortedBucket(first_node, spool.put(degrees), parts)

    with together(comm):
        buckets = list(ordered_map(sort_bucket, range(first, last)))
        records.clear()
    return buckets


def _sorted_parts(
    plan: Plan, records: RecordStore, pieces: list[Piece], top: int, degrees: np.ndarray, spool: Spool
) -> Iterator[SortedPart]:
    """Sort records that differ only in the ``top`` low bits of their keys, counting edges per source.

    Too many for the memory are split by the highest of these bits, and then sorted child by child.
    Equal edges must meet for duplicates to be found, so the bits of the weight never split.
    """
    size = sum(piece.last - piece.first for piece in pieces)
    if size == 0:
        return
    if size <= plan.options.capacity or top <= plan.weight_bits:
        yield _sorted_edges(plan, *records.load(pieces), degrees, spool)
        return
    shift = max(top - FAN_BITS, plan.weight_bits)
    children = RecordStore(records.spool)
    for batch in _batches(pieces, plan.options.capacity // 2):
        children.add(*_split(*records.load(batch), shift))
    for child in range(1 << FAN_BITS):
        yield from _sorted_parts(plan, children, children.pieces(child), shift, degrees, spool)
    children.clear()


def _sorted_edges(plan: Plan, keys: np.ndarray, extra: np.ndarray, degrees: np.ndarray, spool: Spool) -> SortedPart:
    if extra.size:
        extra, keys = csr_kernels.radix_sort(extra, keys, plan.code_bits)
    keys, extra = csr_kernels.radix_sort(keys, extra, plan.key_bits)
    dtype = plan.options.weight_dtype
    indices = np.empty(keys.size, index_dtype(plan.num_nodes))
    codes = np.empty(0 if dtype is None else keys.size, np.uint64)
    count = csr_kernels.unpack(keys, extra, plan.bits, plan.options.dedup, degrees, indices, codes)
    indices.resize(count, refcheck=False)
    if dtype is None:
        return spool.put(indices), None
    weights = decode(codes[:count] + np.uint64(plan.code_min), dtype)
    return spool.put(indices), spool.put(weights)


def _split(keys: np.ndarray, extra: np.ndarray, shift: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The records grouped by FAN_BITS bits of their keys from ``shift`` on, and the (256,) sizes of the groups."""
    groups = (keys >> np.uint64(shift)).astype(np.uint8)
    counts, split = count_owners(groups, 1 << FAN_BITS), (np.empty_like(keys), np.empty_like(extra))
    for values, grouped in zip((keys, extra), split):  # there may be no extra
        group_by_owner(values, groups[: values.size], counts, grouped)
    return *split, counts


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


def write_buckets(
    write: Write, groups: Sequence[str], spool: Spool, buckets: list[SortedBucket], first_node: int, first_edge: int
) -> None:
    """Write consecutive buckets with all threads, and forget each that is written.

    Parameters
    ----------
    write : function (name, first, values)
        Writes values to positions ``first``, ``first + 1`` ... of a dataset or array.
    groups : list of str
        What is put before the names of the datasets: nothing, ``csc/``, or one after the other.
    first_node, first_edge : int
        The node whose edges begin at position 0 of ``indptr``, which is not written; the first edge of all buckets.
    """

    def write_one(job: tuple[SortedBucket, int]) -> None:
        bucket, begin = job
        for group in groups:
            at, degrees = begin, spool.get(bucket.degrees)
            write(group + "indptr", bucket.first_node - first_node + 1, at + np.cumsum(degrees))
            for indices, weights in bucket.parts:
                write(group + "indices", at, spool.get(indices))
                if weights is not None:
                    write(group + "data", at, spool.get(weights))
                at += indices.size
        spool.drop(bucket.degrees, *(stored for part in bucket.parts for stored in part))

    def jobs(at: int) -> Iterator[tuple[SortedBucket, int]]:
        while waiting:
            bucket = waiting.popleft()
            at += bucket.num_edges
            yield bucket, at - bucket.num_edges

    waiting = deque(buckets)
    buckets.clear()
    for _ in ordered_map(write_one, jobs(first_edge)):
        pass
