"""What binary formats share: numbers at known positions in a file, and edges grouped by source behind offsets."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from cusp.errors import GraphFileError
from cusp.formats.source import CHUNK_EDGES, Chunk, EdgeSource, ahead, is_gzip, readable, share
from cusp.runtime.files import read_at


class BinaryFile:
    """A file that can be read at any position; it is closed with its last reference.

    Attributes
    ----------
    path : Path
    file : BinaryIO
    size : int
        Bytes, unpacked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = open_binary(path)
        self.size = os.fstat(self.file.fileno()).st_size

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()

    def array(self, offset: int, count: int, dtype: str) -> np.ndarray:
        """Read the ``count`` numbers that begin at byte ``offset``, aligned or not.

        Raises
        ------
        GraphFileError
            The file ends too early.
        """
        needed = offset + count * np.dtype(dtype).itemsize
        if count < 0 or needed > self.size:
            raise GraphFileError(
                f"{self.path}: has {self.size:,} bytes where its header needs {needed:,}; "
                "it was cut short or is another format"
            )
        values = np.empty(count, dtype)
        try:
            read_at(self.file.fileno(), offset, values)
        except OSError as error:
            raise GraphFileError(f"{self.path}: cannot be read: {error}") from None
        return values


def open_binary(path: Path) -> BinaryIO:
    """Open a file at its start, to be read at any position: of a gzip file, a temporary unpacked copy."""
    if not is_gzip(path):
        return cast(BinaryIO, open(path, "rb", buffering=0))
    plain = tempfile.TemporaryFile()
    with readable(path) as packed:
        while part := packed.read(1 << 22):
            plain.write(part)
    plain.seek(0)
    return cast(BinaryIO, plain)


@dataclass
class CsrSource(EdgeSource):
    """Out-edges of node v: ``offsets[v] : offsets[v + 1]``; subclasses say how to read both."""

    def offsets(self) -> np.ndarray:
        """All ``num_nodes + 1`` offsets."""
        raise NotImplementedError

    def edges(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and weights of the stored edges ``first : end``."""
        raise NotImplementedError

    def chunks(self, rank: int = 0, size: int = 1) -> Iterator[Chunk]:
        """See :meth:`EdgeSource.chunks`; the ranks read equal shares."""
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
    """Raise GraphFileError unless the offsets increase from 0 to ``num_edges``."""
    if offsets.size != num_nodes + 1 or offsets[0] != 0 or offsets[-1] != num_edges:
        raise GraphFileError(
            f"{path}: {offsets.size:,} offsets from {int(offsets[0]):,} to {int(offsets[-1]):,} for "
            f"{num_nodes:,} nodes and {num_edges:,} edges; the file is damaged"
        )
    wrong = np.flatnonzero(offsets[1:] < offsets[:-1])
    if wrong.size:
        raise GraphFileError(f"{path}: the offset after node {wrong[0]:,} is too low; the file is damaged")


def check_ids(path: Path, ids: np.ndarray, num_nodes: int | None) -> None:
    """Raise GraphFileError if an id is negative or not below ``num_nodes``."""
    if ids.size == 0:
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or (num_nodes is not None and high >= num_nodes):
        known = " and above" if num_nodes is None else f" to {num_nodes - 1:,}"
        raise GraphFileError(f"{path}: node ids run from {low:,} to {high:,}, expected 0{known}")
