"""The edges that a rank was given, checked and kept in chunks until they are sorted."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cusp.edge_lists import weight_codes
from cusp.edge_lists.csr_kernels import buckets_of, number_ends
from cusp.edge_lists.csr_plan import MAX_NODES
from cusp.edge_lists.spool import Spool, Stored
from cusp.errors import GraphFileError
from cusp.input.graph_file import index_dtype
from cusp.runtime.teams.together import together
from cusp.runtime.threads import ranges


@dataclass(frozen=True)
class Chunk:
    """Edges as they came: ids of uint32 or int64, and the codes of their weights if they have any."""

    sources: np.ndarray
    targets: np.ndarray
    codes: np.ndarray | None


class EdgeStore:
    """Checked edges in chunks of at most ``chunk_edges``, kept in a spool.

    Attributes
    ----------
    num_edges : int
        Edges added so far.
    min_id, max_id : int
        Smallest and largest node id so far; 0 and -1 without any.
    code_range : (int, int)
        Smallest and largest code of a weight so far; ``(2**64, -1)`` without any.
    """

    def __init__(
        self,
        num_nodes: int | None,
        weight_dtype: np.dtype | None,
        chunk_edges: int,
        spool: Spool,
        any_ids: bool = False,
    ) -> None:
        self._first = -(2**63) if any_ids else 0
        self._limit = 2**63 if any_ids else MAX_NODES if num_nodes is None else num_nodes
        self._weight_dtype = weight_dtype
        self._chunk_edges = chunk_edges
        self._spool = spool
        self._chunks: list[tuple[Stored, Stored, Stored | None]] = []
        self._numbers: np.ndarray | None = None
        self._ids: tuple[np.ndarray, np.ndarray, np.uint64] | None = None
        self.num_edges = 0
        self.min_id = 0
        self.max_id = -1
        self.code_range = (2**64, -1)

    @property
    def num_chunks(self) -> int:
        """Chunks kept."""
        return len(self._chunks)

    def add(self, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> None:
        """Check and keep edges; see :meth:`cusp.edge_lists.csr_builder.CsrBuilder.add`."""
        sources, targets = np.asarray(sources), np.asarray(targets)
        if sources.ndim != 1 or sources.shape != targets.shape:
            raise ValueError(f"sources have shape {sources.shape}, targets {targets.shape}")
        if sources.dtype.kind not in "iu" or targets.dtype.kind not in "iu":
            raise TypeError(f"sources and targets must be integers, not {sources.dtype} and {targets.dtype}")
        if (weights is None) != (self._weight_dtype is None):
            raise ValueError(f"weights of type {self._weight_dtype} were announced: give them with every call")
        weights = None if weights is None else np.asarray(weights)
        if weights is not None and weights.shape != sources.shape:
            raise ValueError(f"sources have shape {sources.shape}, weights {weights.shape}")
        for first in range(0, sources.size, self._chunk_edges):
            part = slice(first, first + self._chunk_edges)
            self._add_chunk(sources[part], targets[part], None if weights is None else weights[part])

    def renumber(self, numbers: np.ndarray, ids: np.ndarray | None) -> None:
        """From now on, the node that was added as ``ids[i]``, or ``i``, is ``numbers[i]``."""
        self._numbers = numbers
        self._ids = None if ids is None else (ids, *buckets_of(ids))

    def chunks(self, swap: bool, keep: bool) -> Iterator[Chunk]:
        """Yield the chunks, with sources and targets swapped if ``swap``; forget each unless ``keep``."""
        waiting = deque(self._chunks)
        if not keep:
            self._chunks.clear()
        while waiting:
            chunk = waiting.popleft()
            sources, targets = self._spool.get(chunk[0]), self._spool.get(chunk[1])
            if self._numbers is not None:
                sources, targets = (self._numbered(self._numbers, ends) for ends in (sources, targets))
            codes = None if chunk[2] is None else self._spool.get(chunk[2])
            if not keep:
                self._spool.drop(*chunk)
            del chunk
            yield Chunk(targets, sources, codes) if swap else Chunk(sources, targets, codes)

    def _numbered(self, numbers: np.ndarray, ends: np.ndarray) -> np.ndarray:
        if self._ids is None:
            return numbers[ends]
        found = np.empty(ends.size, numbers.dtype)
        together(number_ends, ranges(ends.size), *self._ids, numbers, ends, found)
        return found

    def _add_chunk(self, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> None:
        lowest, highest = self._check_ids(sources, targets)
        codes = None
        if weights is not None and self._weight_dtype is not None:
            converted = weight_codes.convert(weights, self._weight_dtype, self.num_edges)
            values = weight_codes.encode(converted)
            low, high = self.code_range
            self.code_range = min(low, int(values.min())), max(high, int(values.max()))
            codes = self._spool.put(values)
        dtype = index_dtype(highest + 1) if lowest >= 0 else np.dtype(np.int64)
        ends = self._spool.put(sources.astype(dtype)), self._spool.put(targets.astype(dtype))
        self._chunks.append((*ends, codes))
        self.min_id, self.max_id = min(self.min_id, lowest) if self.num_edges else lowest, max(self.max_id, highest)
        self.num_edges += sources.size

    def _check_ids(self, sources: np.ndarray, targets: np.ndarray) -> tuple[int, int]:
        """The smallest and the largest id; GraphFileError for the first edge with an id out of range."""
        lowest = min(int(sources.min()), int(targets.min()))
        highest = max(int(sources.max()), int(targets.max()))
        if self._first <= lowest and highest < self._limit:
            return lowest, highest
        bad = (sources < 0) | (targets < 0) | (sources >= self._limit) | (targets >= self._limit)
        at = int(bad.argmax())
        raise GraphFileError(
            f"edge {self.num_edges + at:,} goes from node {sources[at]} to node {targets[at]}, "
            f"but node ids must be at least 0 and below {self._limit:,}"
        )
