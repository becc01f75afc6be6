"""Send every edge, packed into a record, to the rank that sorts it.

Each rank scatters its chunks of edges into the buckets of all ranks, one chunk per round, and sends every bucket
to its rank. What arrives in a round is grouped by sender and bucket; a bucket is the concatenation of its
pieces from all rounds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cusp.edge_lists import csr_kernels
from cusp.edge_lists.csr_plan import Plan, SortOptions
from cusp.edge_lists.edge_store import Chunk
from cusp.edge_lists.spool import Spool, Stored
from cusp.errors import together
from cusp.runtime.threads import ordered_map

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

NO_CODES = np.empty(0, np.uint64)

Grouped = tuple[np.ndarray, np.ndarray, np.ndarray]  # keys, extra codes, starts of the groups


@dataclass(frozen=True)
class Piece:
    """Records ``first`` to ``last`` (exclusive) of stored ones."""

    keys: Stored
    extra: Stored | None
    first: int
    last: int


class RecordStore:
    """Records in a spool, grouped by bucket and, where they were received, by sender."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._stored: list[tuple[Stored, Stored | None, np.ndarray]] = []

    def add(self, keys: np.ndarray, extra: np.ndarray, starts: np.ndarray) -> None:
        """Keep records: bucket b of sender p is at ``starts[p, b]`` to ``starts[p, b + 1]``. ``extra`` may be empty."""
        if keys.size:
            codes = self._spool.put(extra) if extra.size else None
            self._stored.append((self._spool.put(keys), codes, starts))

    def pieces(self, bucket: int) -> list[Piece]:
        """Where the records of a bucket are."""
        return [
            Piece(keys, extra, first, last)
            for keys, extra, starts in self._stored
            for first, last in starts[:, bucket : bucket + 2].tolist()
            if last > first
        ]

    def load(self, pieces: list[Piece]) -> tuple[np.ndarray, np.ndarray]:
        """A new array of the keys of at least one piece, and one of their extra codes."""
        get = self._spool.get
        keys = np.concatenate([get(piece.keys, piece.first, piece.last) for piece in pieces])
        extra = [get(piece.extra, piece.first, piece.last) for piece in pieces if piece.extra is not None]
        return keys, np.concatenate(extra) if extra else NO_CODES

    def clear(self) -> None:
        """Drop all records."""
        for keys, extra, _ in self._stored:
            self._spool.drop(keys, extra)
        self._stored.clear()


def scatter(
    comm: "Intracomm", plan: Plan, options: SortOptions, chunks: Iterable[Chunk], rounds: int, records: RecordStore
) -> None:
    """Pack the edges of ``chunks`` and send them to the ranks that sort them. Collective.

    Parameters
    ----------
    comm : Intracomm
    plan : Plan
    options : SortOptions
    chunks : iterable of Chunk
        Of this rank.
    rounds : int
        The number of chunks of the rank that has most.
    records : RecordStore
        For what this rank is to sort, grouped by its own buckets.
    """
    grouped_chunks = ordered_map(lambda chunk: _group(chunk, plan, options), chunks)
    nothing = NO_CODES, NO_CODES, np.zeros(plan.num_buckets + 1, np.int64)
    for _ in range(rounds):
        with together(comm):
            grouped = next(grouped_chunks, nothing)
        received = _exchange(comm, plan, *grouped)
        with together(comm):
            records.add(*_own(comm, plan, *grouped))
            records.add(*received)


def _group(chunk: Chunk, plan: Plan, options: SortOptions) -> Grouped:
    """Keys, extra codes and (B + 1,) starts of the buckets."""
    counts = np.zeros(plan.bucket_of_cell.size, np.int64)
    edges = chunk.sources, chunk.targets
    csr_kernels.count_cells(*edges, plan.cell_shift, options.symmetrize, options.drop_loops, counts)
    in_bucket = np.bincount(plan.bucket_of_cell, counts, plan.num_buckets).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(in_bucket)])
    codes = NO_CODES
    if chunk.codes is not None:
        codes = chunk.codes.astype(np.uint64)
        codes -= np.uint64(plan.code_min)
    keys = np.empty(starts[-1], np.uint64)
    extra = np.empty_like(keys) if plan.separate else NO_CODES
    csr_kernels.scatter(
        *edges, codes, np.uint64(plan.cell_shift), plan.bucket_of_cell, plan.first_node.view(np.uint64),
        plan.bits, (options.symmetrize, options.drop_loops), starts[:-1].astype(np.uint64), keys, extra,
    )  # fmt: skip
    return keys, extra, starts


def _own(comm: "Intracomm", plan: Plan, keys: np.ndarray, extra: np.ndarray, starts: np.ndarray) -> Grouped:
    """The records of this rank's own buckets: copied only if there are others."""
    first, last = plan.first_bucket[comm.rank : comm.rank + 2]
    own = slice(starts[first], starts[last])
    kept = starts[None, first : last + 1] - starts[first]
    if own == slice(0, keys.size):
        return keys, extra, kept
    return keys[own].copy(), extra[own].copy(), kept


def _exchange(comm: "Intracomm", plan: Plan, keys: np.ndarray, extra: np.ndarray, starts: np.ndarray) -> Grouped:
    """Exchange the records of one round; returns what the other ranks have for this one. Collective."""
    cuts = plan.first_bucket
    num_own = int(cuts[comm.rank + 1] - cuts[comm.rank])
    counts = np.diff(starts)
    counts[cuts[comm.rank] : cuts[comm.rank + 1]] = 0
    sizes = np.empty((comm.size, num_own), np.int64)
    comm.Alltoallv([counts, np.diff(cuts)], [sizes, np.full(comm.size, num_own)])
    to_send, to_receive = np.diff(starts[cuts]), sizes.sum(axis=1)
    to_send[comm.rank] = 0
    received_starts = np.zeros((comm.size, num_own + 1), np.int64)
    np.cumsum(sizes, axis=1, out=received_starts[:, 1:])
    received_starts += (np.cumsum(to_receive) - to_receive)[:, None]

    def exchange(values: np.ndarray) -> np.ndarray:
        received = np.empty(to_receive.sum(), np.uint64)
        comm.Alltoallv([values, (to_send, starts[cuts[:-1]])], [received, to_receive])
        return received

    return exchange(keys), exchange(extra) if plan.separate else NO_CODES, received_starts
