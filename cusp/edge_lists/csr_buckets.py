"""Sort the edges of a graph bucket by bucket: scatter, exchange between ranks, sort, drop doubles.

Every rank scatters its chunks of edges into the buckets of all ranks and sends each bucket to the rank
that sorts it. What a rank receives in one round is a *run*: ordered by sender and bucket. A bucket is
then the concatenation of its pieces of all runs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cusp.edge_lists import csr_kernels
from cusp.edge_lists.csr_kernels import FAN_BITS
from cusp.edge_lists.csr_plan import Plan
from cusp.edge_lists.csr_rows import Part, Rows
from cusp.edge_lists.spool import Spool, Stored
from cusp.edge_lists.threads import ordered_map
from cusp.edge_lists.weight_codes import decode
from cusp.errors import raise_together, together
from cusp.output.graph_writer import index_dtype

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

_NO_CODES = np.empty(0, np.uint64)


@dataclass(frozen=True)
class Chunk:
    """Edges as they came: ids of uint32 or int64, and the codes of their weights if there are any."""

    sources: np.ndarray
    targets: np.ndarray
    codes: np.ndarray | None


@dataclass(frozen=True)
class Run:
    """Grouped records: bucket b of sender p (or child b of a split bucket) starts at ``starts[p, b]``."""

    keys: Stored
    extra: Stored | None
    starts: np.ndarray

    def pieces(self, bucket: int) -> "list[Piece]":
        """The places of a bucket in this run, one for each sender."""
        bounds = self.starts[:, bucket : bucket + 2].tolist()
        return [Piece(self.keys, self.extra, first, last) for first, last in bounds if last > first]


@dataclass(frozen=True)
class Piece:
    """Records ``first`` to ``last`` of a run."""

    keys: Stored
    extra: Stored | None
    first: int
    last: int


@dataclass(frozen=True)
class Rules:
    """What becomes of the edges, and in how much memory."""

    symmetrize: bool
    drop_loops: bool
    dedup: bool
    weight_dtype: np.dtype | None
    capacity: int  # records that one thread may sort at once


class BucketSort:
    """The records of this rank's buckets, from their arrival to finished rows.

    Parameters
    ----------
    comm : Intracomm
    plan : Plan
    rules : Rules
    runs, rows : Spool
        For the unsorted records and for the finished rows.
    """

    def __init__(self, comm: "Intracomm", plan: Plan, rules: Rules, runs: Spool, rows: Spool) -> None:
        self._comm = comm
        self._plan = plan
        self._rules = rules
        self._spool = runs
        self._rows = rows
        self._runs: list[Run] = []

    def scatter(self, chunks: Iterable[Chunk], rounds: int) -> None:
        """Send the edges of ``chunks``, one chunk a round, to the ranks that sort them. Collective.

        ``rounds`` is the number of chunks of the rank that has most.
        """
        scattered = ordered_map(self._scatter_chunk, chunks)
        for _ in range(rounds):
            error: BaseException | None = None
            records = None
            try:
                records = next(scattered, None)
            except Exception as caught:  # noqa: BLE001 - raised on every rank
                error = caught
            raise_together(self._comm, error)
            if records is None:
                records = _NO_CODES, _NO_CODES, np.zeros(self._plan.num_buckets + 1, np.int64)
            others = self._exchange(*records)
            with together(self._comm):
                self._keep(self._runs, *self._own(*records))
                self._keep(self._runs, *others)

    def sort(self) -> list[Rows]:
        """Sort and finish this rank's buckets, in order; the unsorted records are dropped. Collective."""
        first, last = self._plan.first_bucket[self._comm.rank : self._comm.rank + 2].tolist()
        with together(self._comm):
            rows = list(ordered_map(lambda bucket: self._finish(bucket, bucket - first), range(first, last)))
            self._forget(self._runs)
        return rows

    def _scatter_chunk(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Keys, extra codes and the (B + 1) starts of the buckets."""
        plan, rules = self._plan, self._rules
        counts = np.zeros(plan.bucket_of_cell.size, np.int64)
        edges = chunk.sources, chunk.targets
        csr_kernels.count_cells(*edges, plan.cell_shift, rules.symmetrize, rules.drop_loops, counts)
        in_bucket = np.bincount(plan.bucket_of_cell, counts, plan.num_buckets).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(in_bucket)])
        codes = _NO_CODES
        if chunk.codes is not None:
            codes = chunk.codes.astype(np.uint64)
            codes -= np.uint64(plan.code_min)
        keys = np.empty(starts[-1], np.uint64)
        extra = np.empty_like(keys) if plan.separate else _NO_CODES
        csr_kernels.scatter(
            *edges, codes, np.uint64(plan.cell_shift), plan.bucket_of_cell, plan.first_node.view(np.uint64),
            plan.bits, (rules.symmetrize, rules.drop_loops), starts[:-1].astype(np.uint64), keys, extra,
        )  # fmt: skip
        return keys, extra, starts

    def _own(
        self, keys: np.ndarray, extra: np.ndarray, starts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The records of this rank's own buckets: copied only if there are others."""
        first, last = self._plan.first_bucket[self._comm.rank : self._comm.rank + 2]
        own = slice(starts[first], starts[last])
        kept = starts[None, first : last + 1] - starts[first]
        if own == slice(0, keys.size):
            return keys, extra, kept
        return keys[own].copy(), extra[own].copy(), kept

    def _exchange(
        self, keys: np.ndarray, extra: np.ndarray, starts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Exchange one round's records; returns what the other ranks have for this one. Collective."""
        comm, cuts = self._comm, self._plan.first_bucket
        mine = int(cuts[comm.rank + 1] - cuts[comm.rank])
        counts = np.diff(starts)
        counts[cuts[comm.rank] : cuts[comm.rank + 1]] = 0
        sizes = np.empty((comm.size, mine), np.int64)
        comm.Alltoallv([counts, np.diff(cuts)], [sizes, np.full(comm.size, mine)])
        to_send, to_get = np.diff(starts[cuts]), sizes.sum(axis=1)
        to_send[comm.rank] = 0
        received = np.zeros((comm.size, mine + 1), np.int64)
        np.cumsum(sizes, axis=1, out=received[:, 1:])
        received += (np.cumsum(to_get) - to_get)[:, None]
        got_keys = np.empty(to_get.sum(), np.uint64)
        comm.Alltoallv([keys, (to_send, starts[cuts[:-1]])], [got_keys, to_get])
        got_extra = np.empty(to_get.sum() if self._plan.separate else 0, np.uint64)
        if self._plan.separate:
            comm.Alltoallv([extra, (to_send, starts[cuts[:-1]])], [got_extra, to_get])
        return got_keys, got_extra, received

    def _keep(self, runs: list[Run], keys: np.ndarray, extra: np.ndarray, starts: np.ndarray) -> None:
        if keys.size:
            stored = self._spool.put(extra) if extra.size else None
            runs.append(Run(self._spool.put(keys), stored, starts))

    def _forget(self, runs: list[Run]) -> None:
        for run in runs:
            self._spool.drop(run.keys)
            if run.extra is not None:
                self._spool.drop(run.extra)
        runs.clear()

    def _finish(self, bucket: int, column: int) -> Rows:
        """Sort one bucket, which is the given column of this rank's runs."""
        first, last = self._plan.first_node[bucket : bucket + 2].tolist()
        degrees = np.zeros(last - first, np.int64)
        pieces = [piece for run in self._runs for piece in run.pieces(column)]
        parts = list(self._sorted_parts(pieces, self._plan.key_bits, degrees))
        num_edges = sum(part.indices.size for part in parts)
        return Rows(first, num_edges, self._rows.put(degrees), parts)

    def _sorted_parts(self, pieces: list[Piece], top: int, degrees: np.ndarray) -> Iterator[Part]:
        """Finish records that differ only in the ``top`` low bits of their keys.

        Too many for the memory are split by the highest of these bits, and then child by child.
        Equal edges must meet to lose their doubles, so the weight's bits never split.
        """
        size = sum(piece.last - piece.first for piece in pieces)
        if size == 0:
            return
        if size <= self._rules.capacity or top <= self._plan.weight_bits:
            yield self._sorted_part(*self._load(pieces), degrees)
            return
        shift = max(top - FAN_BITS, self._plan.weight_bits)
        runs: list[Run] = []
        for batch in _batches(pieces, self._rules.capacity // 2):
            self._split(runs, *self._load(batch), shift)
        for child in range(1 << FAN_BITS):
            below = [piece for run in runs for piece in run.pieces(child)]
            yield from self._sorted_parts(below, shift, degrees)
        self._forget(runs)

    def _split(self, runs: list[Run], keys: np.ndarray, extra: np.ndarray, shift: int) -> None:
        starts = np.empty((1 << FAN_BITS) + 1, np.int64)
        out_keys, out_extra = np.empty_like(keys), np.empty_like(extra)
        csr_kernels.split(keys, extra, np.uint64(shift), starts, out_keys, out_extra)
        self._keep(runs, out_keys, out_extra, starts[None, :])

    def _load(self, pieces: list[Piece]) -> tuple[np.ndarray, np.ndarray]:
        """A new array of the pieces' keys, and one of their extra codes."""
        get = self._spool.get
        keys = np.concatenate([get(piece.keys, piece.first, piece.last) for piece in pieces])
        if not self._plan.separate:
            return keys, _NO_CODES
        return keys, np.concatenate([get(p.extra, p.first, p.last) for p in pieces if p.extra is not None])

    def _sorted_part(self, keys: np.ndarray, extra: np.ndarray, degrees: np.ndarray) -> Part:
        plan = self._plan
        if extra.size:
            extra, keys = csr_kernels.radix_sort(extra, keys, plan.code_bits)
        keys, extra = csr_kernels.radix_sort(keys, extra, plan.key_bits)
        dtype = self._rules.weight_dtype
        indices = np.empty(keys.size, index_dtype(plan.num_nodes))
        codes = np.empty(0 if dtype is None else keys.size, np.uint64)
        count = csr_kernels.unpack(keys, extra, plan.bits, self._rules.dedup, degrees, indices, codes)
        indices.resize(count, refcheck=False)
        if dtype is None:
            return Part(self._rows.put(indices), None)
        weights = decode(codes[:count] + np.uint64(plan.code_min), dtype)
        return Part(self._rows.put(indices), self._rows.put(weights))


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
