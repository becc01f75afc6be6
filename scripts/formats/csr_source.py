"""Binary files whose edges stand grouped by source, behind an array of offsets."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from cusp.errors import GraphFileError
from scripts.formats.source import CHUNK_EDGES, Chunk, EdgeSource, ahead, share


@dataclass
class CsrSource(EdgeSource):
    """Out-edges of node v: ``offsets[v] : offsets[v + 1]``; subclasses say how to get at both."""

    def offsets(self) -> np.ndarray:
        """All ``num_nodes + 1`` offsets."""
        raise NotImplementedError

    def edges(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and weights of the stored edges ``first : end``."""
        raise NotImplementedError

    def chunks(self, rank: int = 0, size: int = 1) -> Iterator[Chunk]:
        """See :meth:`EdgeSource.chunks`; edges are shared evenly."""
        for chunk in ahead(partial(self._expanded, rank, size)):
            self.edges_read += len(chunk[0])
            yield chunk

    def _expanded(self, rank: int, size: int) -> Iterator[Chunk]:
        assert self.num_nodes is not None and self.stored_edges is not None
        offsets = self.offsets()
        check_offsets(self.path, offsets, self.num_nodes, self.stored_edges)
        begin, last = share(self.stored_edges, rank, size)
        for first in range(begin, last, CHUNK_EDGES):
            end = min(first + CHUNK_EDGES, last)
            targets, weights = self.edges(first, end)
            check_ids(self.path, targets, self.num_nodes)
            yield expand(offsets, first, end), targets, weights


def expand(offsets: np.ndarray, first: int, end: int) -> np.ndarray:
    """Source of each of the edges ``first : end``."""
    low = int(np.searchsorted(offsets, first, "right")) - 1
    high = int(np.searchsorted(offsets, end, "left"))
    counts = np.diff(np.clip(offsets[low : high + 1], first, end))
    return np.repeat(np.arange(low, high, dtype=np.int64), counts)


def check_offsets(path: Path, offsets: np.ndarray, num_nodes: int, num_edges: int) -> None:
    """Raise GraphFileError unless the offsets rise from 0 to ``num_edges``."""
    if offsets.size != num_nodes + 1 or offsets[0] != 0 or offsets[-1] != num_edges:
        raise GraphFileError(
            f"{path}: {offsets.size:,} offsets from {int(offsets[0]):,} to {int(offsets[-1]):,} for "
            f"{num_nodes:,} nodes and {num_edges:,} edges; the file is damaged"
        )
    wrong = np.flatnonzero(offsets[1:] < offsets[:-1])
    if wrong.size:
        raise GraphFileError(f"{path}: the offset after node {wrong[0]:,} falls; the file is damaged")


def check_ids(path: Path, ids: np.ndarray, num_nodes: int | None) -> None:
    """Raise GraphFileError if an id is negative or not below ``num_nodes``."""
    if ids.size == 0:
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or (num_nodes is not None and high >= num_nodes):
        known = "" if num_nodes is None else f" to {num_nodes - 1:,}"
        raise GraphFileError(f"{path}: node ids run from {low:,} to {high:,}, allowed are 0{known}")
