"""Send every edge, packed into a record, to the rank that sorts it; sort the records into finished rows; write these.

Each rank scatters its chunks of edges into the buckets of all ranks, one chunk per round, and sends every bucket
to its rank. What arrives from a rank in a round is grouped by bucket; a bucket is the concatenation of its
pieces from all of them. One too large for the memory is split before it is sorted.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cusp.edge_lists import csr_kernels
from cusp.edge_lists.csr_plan import Plan
from cusp.edge_lists.edge_store import Chunk
from cusp.edge_lists.spool import Spool, Stored
from cusp.edge_lists.weight_codes import decode
from cusp.errors import together
from cusp.input.graph_file import index_dtype
from cusp.kernels.build_cpu import count_owners, group_by_owner
from cusp.runtime.exchange import all_to_all, pieces
from cusp.runtime.mpi import MPI
from cusp.runtime.threads import ordered_map

NO_CODES = np.empty(0, np.uint64)
FAN_BITS = 8  # a bucket that is too large is split into 256

Write = Callable[[str, int, np.ndarray], None]
SortedPart = tuple[Stored, Stored | None]  # consecutive edges of the finished graph: indices and, if any, weights


@dataclass(frozen=True)
class Piece:
    """Records ``first`` to ``last`` (exclusive) of stored ones."""

    keys: Stored
    extra: Stored | None
    first: int
    last: int


class RecordStore:
    """Records in a spool, grouped by bucket."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self._stored: list[tuple[Stored, Stored | None, np.ndarray]] = []

    def add(self, keys: np.ndarray, extra: np.ndarray, counts: np.ndarray) -> None:
        """Keep records, of which each bucket has so many, in order. ``extra`` may be empty."""
        if keys.size:
            codes = self.spool.put(extra) if extra.size else None
            self._stored.append((self.spool.put(keys), codes, np.concatenate([[0], np.cumsum(counts)])))

    def pieces(self, bucket: int) -> list[Piece]:
        """Where the records of a bucket are."""
        found = [Piece(keys, extra, *starts[bucket : bucket + 2].tolist()) for keys, extra, starts in self._stored]
        return [piece for piece in found if piece.last > piece.first]

    def load(self, pieces: list[Piece]) -> tuple[np.ndarray, np.ndarray]:
        """A new array of the keys of at least one piece, and one of their extra codes."""
        get = self.spool.get
        keys = np.concatenate([get(piece.keys, piece.first, piece.last) for piece in pieces])
        extra = [get(piece.extra, piece.first, piece.last) for piece in pieces if piece.extra is not None]
        return keys, np.concatenate(extra) if extra else NO_CODES

    def clear(self) -> None:
        """Drop all records."""
        for keys, extra, _ in self._stored:
            self.spool.drop(keys, extra)
        self._stored.clear()


def scatter(comm: MPI.Intracomm, plan: Plan, chunks: Iterable[Chunk], rounds: int, records: RecordStore) -> None:
    """Pack the edges of ``chunks`` and send them to the ranks that sort them. Collective.

    Parameters
    ----------
    chunks : iterable of Chunk
        Of this rank.
    rounds : int
        The number of chunks of the rank that has most.
    records : RecordStore
        For what this rank is to sort, grouped by its own buckets.
    """
    grouped_chunks = ordered_map(lambda chunk: _group(chunk, plan), chunks)
    nothing = NO_CODES, NO_CODES, np.zeros(plan.num_buckets, np.int64)
    last_buckets = plan.first_bucket[1:]
    for _ in range(rounds):
        with together(comm):
            keys, extra, counts = next(grouped_chunks, nothing)
            ends = np.concatenate([[0], np.cumsum(counts)])[last_buckets]
            extra_ends = ends if plan.separate else np.zeros_like(ends)
        received = [
            all_to_all(comm, pieces(values, at))
            for values, at in ((keys, ends), (extra, extra_ends), (counts, last_buckets))
        ]
        with together(comm):
            for rank, (some, codes, sizes) in enumerate(zip(*received)):
                alone = rank != comm.rank or comm.size == 1  # else a view of what goes to others, too
                records.add(some if alone else some.copy(), codes if alone else codes.copy(), sizes)


def _group(chunk: Chunk, plan: Plan) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys, extra codes, and how many each bucket has, (B,) int64."""
    cells = np.zeros(plan.bucket_of_cell.size, np.int64)
    edges, rules = (chunk.sources, chunk.targets), (plan.options.symmetrize, plan.options.drop_loops)
    csr_kernels.count_cells(*edges, plan.cell_shift, *rules, cells)
    counts = np.bincount(plan.bucket_of_cell, cells, plan.num_buckets).astype(np.int64)
    codes = NO_CODES
    if chunk.codes is not None:
        codes = chunk.codes.astype(np.uint64)
        codes -= np.uint64(plan.code_min)
    keys = np.empty(counts.sum(), np.uint64)
    extra = np.empty_like(keys) if plan.separate else NO_CODES
    csr_kernels.scatter(
        *edges, codes, np.uint64(plan.cell_shift), plan.bucket_of_cell, plan.first_node.view(np.uint64),
        plan.bits, rules, (np.cumsum(counts) - counts).astype(np.uint64), keys, extra,
    )  # fmt: skip
    return keys, extra, counts


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
