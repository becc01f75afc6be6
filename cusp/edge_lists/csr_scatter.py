"""Send every edge, packed into a record, to the rank that sorts it.

Each rank scatters its chunks of edges into the buckets of all ranks, one chunk per round, and sends every bucket
to its rank. What arrives from a rank in a round is grouped by bucket; a bucket is the concatenation of its
pieces from all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cusp.edge_lists import csr_kernels
from cusp.edge_lists.csr_plan import Plan
from cusp.edge_lists.edge_store import Chunk
from cusp.edge_lists.spool import Spool, Stored
from cusp.errors import together
from cusp.runtime.exchange import all_to_all, pieces
from cusp.runtime.mpi import MPI
from cusp.runtime.threads import ordered_map

NO_CODES = np.empty(0, np.uint64)


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
