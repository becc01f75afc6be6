"""Binary graphs of other systems, Galois ``.gr`` and GAP ``.sg``/``.wsg``; and what all binary formats share.

That is numbers at known positions in a file, which is mapped, and edges grouped by source behind offsets.
"""

import math
import os
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import DTypeLike

from cusp.errors import GraphFileError
from cusp.formats.source import CHUNK_EDGES, Asked, Chunk, EdgeSource, is_gzip, readable, share
from cusp.runtime.files import open_input


def open_binary(path: Path) -> BinaryIO:
    """Open a file at its start, to be read at any position: of a gzip file, a temporary unpacked copy."""
    if not is_gzip(path):
        return cast(BinaryIO, open_input(path))
    plain = tempfile.TemporaryFile()
    with readable(path) as packed:
        while part := packed.read(1 << 22):
            plain.write(part)
    plain.seek(0)
    return cast(BinaryIO, plain)


def size_of(file: BinaryIO) -> int:
    """Bytes of an open file."""
    return os.fstat(file.fileno()).st_size


def mapped(path: Path, file: BinaryIO, offset: int, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """The numbers that begin at a byte of an open file, aligned or not; pages are read when they are looked at.

    Raises
    ------
    GraphFileError
        The file ends too early.
    """
    needed = offset + math.prod(shape) * np.dtype(dtype).itemsize
    if size_of(file) < needed:
        raise GraphFileError(
            f"{path}: has {size_of(file):,} bytes where its header needs {needed:,}; "
            "it was cut short or is another format"
        )
    return np.memmap(file, dtype, "r", offset, shape).view(np.ndarray) if 0 not in shape else np.empty(shape, dtype)


@dataclass
class CsrSource(EdgeSource):
    """Out-edges of node v: ``starts[v] : starts[v + 1]`` of ``targets`` and ``weights``.

    A file may leave out the first start, which is 0.
    """

    starts: np.ndarray = field(default_factory=partial(np.empty, 0, np.int64), repr=False)
    targets: np.ndarray = field(default_factory=partial(np.empty, 0, np.int64), repr=False)
    weights: np.ndarray | None = field(default=None, repr=False)

    def offsets(self) -> np.ndarray:
        """All ``num_nodes + 1`` offsets."""
        return np.concatenate([np.zeros((self.num_nodes or 0) + 1 - self.starts.size, np.int64), self.starts])

    def edges(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and weights of the stored edges ``first : end``."""
        return np.array(self.targets[first:end]), None if self.weights is None else np.array(self.weights[first:end])

    def read(self, rank: int, size: int) -> Iterator[Chunk]:
        """See :meth:`EdgeSource.read`; the ranks read equal shares."""
        assert self.num_nodes is not None and self.stored_edges is not None
        offsets = self.offsets()
        check_offsets(self.path, offsets, self.num_nodes, self.stored_edges)
        begin, last = share(self.stored_edges, rank, size)
        for first in range(begin, last, CHUNK_EDGES):
            end = min(first + CHUNK_EDGES, last)
            targets, weights = self.edges(first, end)
            check_ids(self.path, targets, self.num_nodes)
            yield expand(offsets, first, end), targets, weights


def open_galois(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open a Galois graph, version 1 (32-bit targets) or 2 (64-bit).

    A header of four u64, the ends of the nodes' edges (u64), targets, padding to 8 bytes, edge data. The file states
    only how wide these are: they are read as unsigned integers, with the format ``galois-real`` as floats.
    """
    file = open_binary(path)
    version, width, nodes, edges = (int(word) for word in mapped(path, file, 0, (4,), "<u8"))
    kind = "f" if format == "galois-real" else "u"
    widths = (0, 4, 8) if kind == "f" else (0, 1, 2, 4, 8)
    if version not in (1, 2) or width not in widths:
        raise GraphFileError(
            f"{path}: Galois version {version} with {width} bytes of data per edge; versions 1 and 2 "
            f"with {', '.join(map(str, widths))} bytes can be read as {format}"
        )
    targets_at = 32 + 8 * nodes
    data_at = -(-(targets_at + 4 * version * edges) // 8) * 8
    padding = 4 if version == 1 and width == 0 and edges % 2 else 0  # not all writers add it
    _check_size(path, file, nodes, edges, data_at + width * edges, padding)
    return CsrSource(
        path, format, nodes, stored_edges=edges,
        weight_dtype=np.dtype(f"<{kind}{width}") if width else None,
        starts=mapped(path, file, 32, (nodes,), "<i8"),
        targets=mapped(path, file, targets_at, (edges,), f"<u{4 * version}"),
        weights=mapped(path, file, data_at, (edges,), f"<{kind}{width}") if width else None,
    )  # fmt: skip


def open_gap(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open a GAP ``.sg`` or, with ``format`` wsg, ``.wsg`` graph.

    A directed flag (1 byte), edges and nodes (i64), offsets (i64), targets (i32, with i32 weights). An undirected one
    stores both directions; a directed one is followed by its transpose, which is not read.
    """
    file = open_binary(path)
    directed, edges, nodes = struct.unpack("<Bqq", mapped(path, file, 0, (17,), "u1").tobytes())
    if directed > 1 or edges < 0 or nodes < 0:
        raise GraphFileError(f"{path}: not a GAP graph: directed = {directed}, {edges:,} edges, {nodes:,} nodes")
    columns = 2 if format == "wsg" else 1
    edges_at = 17 + 8 * (nodes + 1)
    _check_size(path, file, nodes, edges, 17 + (1 + directed) * (8 * (nodes + 1) + 4 * columns * edges))
    stored = mapped(path, file, edges_at, (edges, columns), "<i4")
    return CsrSource(
        path, format, nodes, stored_edges=edges,
        weight_dtype=np.dtype("<i4") if columns == 2 else None, symmetric=not directed, reverse_stored=not directed,
        starts=mapped(path, file, 17, (nodes + 1,), "<i8"),
        targets=stored[:, 0], weights=stored[:, 1] if columns == 2 else None,
    )  # fmt: skip


def _check_size(path: Path, file: BinaryIO, nodes: int, edges: int, expected: int, padding: int = 0) -> None:
    """Raise GraphFileError unless a file has as many bytes as its header needs, with or without padding."""
    if size_of(file) not in (expected, expected - padding):
        raise GraphFileError(
            f"{path}: has {size_of(file):,} bytes where its header ({nodes:,} nodes, {edges:,} edges) needs "
            f"{expected:,}; it was cut short or is another format"
        )


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
