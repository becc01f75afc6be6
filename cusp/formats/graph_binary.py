"""Binary graphs of other systems: Galois ``.gr`` and GAP ``.sg``/``.wsg``."""

import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cusp.errors import GraphFileError
from cusp.formats.binary import BinaryFile, CsrSource
from cusp.formats.source import Asked, EdgeSource


@dataclass
class BinaryGraphSource(CsrSource):
    """A CSR graph in a plain binary file."""

    file: BinaryFile = field(kw_only=True, repr=False)

    def check_size(self, expected: int, padding: int = 0) -> None:
        """Raise GraphFileError unless the file has as many bytes as its header needs, with or without padding."""
        if self.file.size not in (expected, expected - padding):
            raise GraphFileError(
                f"{self.path}: has {self.file.size:,} bytes where its header ({self.num_nodes:,} nodes, "
                f"{self.stored_edges:,} edges) needs {expected:,}; it was cut short or is another format"
            )


@dataclass
class GaloisSource(BinaryGraphSource):
    """Header of four u64, ends of the nodes' edges (u64), targets, padding to 8 bytes, edge data."""

    target_dtype: str = "<u4"

    @property
    def _targets_at(self) -> int:
        return 32 + 8 * (self.num_nodes or 0)

    @property
    def data_at(self) -> int:
        """Byte at which the edge data start; a file without any ends there."""
        end = self._targets_at + int(self.target_dtype[-1]) * (self.stored_edges or 0)
        return (end + 7) // 8 * 8

    def offsets(self) -> np.ndarray:
        """All offsets; the file leaves out the first, which is 0."""
        ends = self.file.array(32, self.num_nodes or 0, "<i8")
        return np.concatenate([np.zeros(1, np.int64), ends])

    def edges(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and weights of the stored edges ``first : end``."""
        width = int(self.target_dtype[-1])
        targets = self.file.array(self._targets_at + width * first, end - first, self.target_dtype)
        if self.weight_dtype is None:
            return targets, None
        at = self.data_at + self.weight_dtype.itemsize * first
        return targets, self.file.array(at, end - first, self.weight_dtype.str)


def open_galois(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open a Galois graph, version 1 (32-bit targets) or 2 (64-bit).

    The file states only how wide the edge data are: they are read as unsigned integers, with the
    format ``galois-real`` as floats.
    """
    file = BinaryFile(path)
    version, width, nodes, edges = (int(word) for word in file.array(0, 4, "<u8"))
    kind = "f" if format == "galois-real" else "u"
    widths = (0, 4, 8) if kind == "f" else (0, 1, 2, 4, 8)
    if version not in (1, 2) or width not in widths:
        raise GraphFileError(
            f"{path}: Galois version {version} with {width} bytes of data per edge; versions 1 and 2 "
            f"with {', '.join(map(str, widths))} bytes can be read as {format}"
        )
    source = GaloisSource(
        path,
        format,
        nodes,
        stored_edges=edges,
        weight_dtype=np.dtype(f"<{kind}{width}") if width else None,
        target_dtype="<u4" if version == 1 else "<u8",
        file=file,
    )
    padding = 4 if version == 1 and width == 0 and edges % 2 else 0  # not all writers add it
    source.check_size(source.data_at + width * edges, padding)
    return source


@dataclass
class GapSource(BinaryGraphSource):
    """Directed flag (1 byte), edges and nodes (i64), offsets (i64), targets (i32, with i32 weights)."""

    def offsets(self) -> np.ndarray:
        """All offsets."""
        return self.file.array(17, (self.num_nodes or 0) + 1, "<i8")

    def edges(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and weights of the stored edges ``first : end``."""
        at = 17 + 8 * ((self.num_nodes or 0) + 1)
        if self.weight_dtype is None:
            return self.file.array(at + 4 * first, end - first, "<i4"), None
        pairs = self.file.array(at + 8 * first, 2 * (end - first), "<i4").reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]


def open_gap(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open a GAP ``.sg`` or, with ``format`` wsg, ``.wsg`` graph.

    An undirected one stores both directions; a directed one is followed by its transpose, which is not read.
    """
    file = BinaryFile(path)
    directed, edges, nodes = struct.unpack("<Bqq", file.array(0, 17, "u1").tobytes())
    if directed > 1 or edges < 0 or nodes < 0:
        raise GraphFileError(f"{path}: not a GAP graph: directed = {directed}, {edges:,} edges, {nodes:,} nodes")
    width = 8 if format == "wsg" else 4
    source = GapSource(
        path,
        format,
        nodes,
        stored_edges=edges,
        weight_dtype=np.dtype("<i4") if format == "wsg" else None,
        symmetric=not directed,
        reverse_stored=not directed,
        file=file,
    )
    source.check_size(17 + (1 + directed) * (8 * (nodes + 1) + width * edges))
    return source
