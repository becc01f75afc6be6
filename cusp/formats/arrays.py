"""Edges as arrays: raw pairs, NumPy ``.npy`` and ``.npz``, SciPy's sparse ``.npz``."""

import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from cusp.errors import GraphFileError
from cusp.formats.binary import check_ids, check_offsets, expand, mapped, open_binary, size_of
from cusp.formats.source import CHUNK_EDGES, Asked, Chunk, EdgeSource, share
from cusp.input.hdf5 import believable, explained

_PAIR_NAMES = [("sources", "targets"), ("src", "dst"), ("row", "col")]
_WEIGHT_NAMES = ["weights", "weight", "data"]
PAIRS: dict[str, np.dtype] = {"pairs32": np.dtype("<i4"), "pairs64": np.dtype("<i8")}


@dataclass
class ColumnSource(EdgeSource):
    """Arrays of sources, targets and perhaps weights, in memory or mapped: each rank reads an equal share."""

    columns: tuple[np.ndarray, ...] = field(default=(), repr=False)

    def read(self, rank: int, size: int) -> Iterator[Chunk]:
        begin, last = share(self.columns[0].size, rank, size)
        for first in range(begin, last, CHUNK_EDGES):
            part = slice(first, min(first + CHUNK_EDGES, last))
            sources, targets = (self._ids(column[part]) for column in self.columns[:2])
            yield sources, targets, np.array(self.columns[2][part]) if len(self.columns) > 2 else None

    def _ids(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            ids = values.astype(np.int64) if values.dtype.kind == "f" else np.array(values)
        if values.dtype.kind == "f" and not np.array_equal(ids, values):
            raise GraphFileError(f"{self.path}: a node id is not a whole number: {values[ids != values][0]}")
        if self.num_nodes is not None or self.format in PAIRS:  # which would be another format
            check_ids(self.path, ids, self.num_nodes)
        return ids


def open_pairs(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open little-endian ``source target source target ...`` without a header."""
    file, width = open_binary(path), PAIRS[format].itemsize
    edges, rest = divmod(size_of(file), 2 * width)
    if rest:
        raise GraphFileError(
            f"{path}: {size_of(file):,} bytes are not a whole number of {format} edges ({2 * width} bytes "
            "each); it was cut short or is another format"
        )
    return _from_columns(path, format, tuple(mapped(path, file, 0, (edges, 2), PAIRS[format]).T), None)


def open_npy(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open an array of shape (edges, 2), or (edges, 3) with weights last; it is mapped, not loaded."""
    with explained(path, "the NumPy array"):
        table = _mapped(path)
    if table.ndim != 2 or table.shape[1] not in (2, 3) or table.dtype.kind not in "iuf":
        raise GraphFileError(f"{path}: expected numbers of shape (edges, 2 or 3), found {table.dtype} {table.shape}")
    return _from_columns(path, format, tuple(table.T), None)


def _mapped(path: Path) -> np.ndarray:
    file = open_binary(path)
    shape, fortran, dtype = _npy_header(file)
    _check_bytes(path, shape, dtype, size_of(file) - file.tell())
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.memmap(file, dtype, "r", file.tell(), shape, "F" if fortran else "C")


def _npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read_header(file)


def _check_bytes(path: Path, shape: tuple[int, ...], dtype: np.dtype, size: int) -> None:
    """Refuse a header that states more than the bytes after it, before anything is allocated."""
    if dtype.hasobject:
        raise GraphFileError(f"{path}: an array holds Python objects, which are never unpacked; save numbers")
    needed = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or needed > size:
        raise GraphFileError(
            f"{path}: an array of {dtype} and shape {shape} takes {needed:,} bytes, but {size:,} follow; it was cut "
            "short or is damaged"
        )


def _check_members(path: Path, file: zipfile.ZipFile) -> None:
    """The same for each array of a .npz file, and that the packed bytes can be so many."""
    packed = path.stat().st_size
    for member in file.infolist():
        if not believable(member.file_size, packed):
            raise GraphFileError(f"{path}: {member.filename} claims {member.file_size:,} bytes in a file of {packed:,}")
        with file.open(member) as array:
            shape, _, dtype = _npy_header(array)
            _check_bytes(path, shape, dtype, member.file_size - array.tell())


def _from_columns(path: Path, format: str, columns: tuple[np.ndarray, ...], num_nodes: int | None) -> EdgeSource:
    weight_dtype = columns[2].dtype if len(columns) > 2 else None
    sizes = {column.size for column in columns}
    if len(sizes) != 1 or any(column.ndim != 1 for column in columns):
        raise GraphFileError(f"{path}: sources, targets and weights have {[c.shape for c in columns]} entries")
    if any(column.dtype.kind not in "iuf" for column in columns):
        raise GraphFileError(f"{path}: sources, targets and weights are {[str(c.dtype) for c in columns]}, not numbers")
    return ColumnSource(path, format, num_nodes, stored_edges=sizes.pop(), weight_dtype=weight_dtype, columns=columns)


def open_npz(path: Path, format: str, asked: Asked) -> EdgeSource:
    """Open ``scipy.sparse.save_npz`` (csr, csc, coo: entry (i, j) is the edge i -> j), or arrays ``sources``
    and ``targets`` with optional ``weights`` and ``num_nodes``. The file is read whole: it may be compressed.
    """
    file = open_binary(path)
    with explained(path, "the .npz file"):
        with zipfile.ZipFile(file) as packed:
            _check_members(path, packed)
        file.seek(0)
        with np.load(file, allow_pickle=False) as unpacked:
            arrays = {name: unpacked[name] for name in unpacked.files}
    if asked.columns is not None:
        missing = [name for name in asked.columns if name not in arrays]
        if missing:
            raise GraphFileError(f"{path}: no array {missing[0]!r}; it has {', '.join(arrays)}")
        return _from_columns(path, format, tuple(arrays[name] for name in asked.columns), None)
    with explained(path, "the number of nodes"):
        num_nodes = _num_nodes(path, arrays)
    weights = tuple(arrays[name] for name in _WEIGHT_NAMES if name in arrays)[:1]
    if weights and weights[0].dtype == bool:  # the pattern of a matrix
        weights = ()
    if "indptr" in arrays and "indices" in arrays:
        with explained(path, "the matrix"):
            ends = _compressed(path, arrays, num_nodes)
        return _from_columns(path, format, ends + weights, num_nodes)
    for source, target in _PAIR_NAMES:
        if source in arrays and target in arrays:
            return _from_columns(path, format, (arrays[source], arrays[target], *weights), num_nodes)
    raise GraphFileError(
        f"{path}: has the arrays {', '.join(arrays)}; expected a matrix of "
        "scipy.sparse.save_npz, or sources and targets (and weights, num_nodes)"
    )


def _num_nodes(path: Path, arrays: dict[str, np.ndarray]) -> int | None:
    if "shape" in arrays:
        shape = arrays["shape"].tolist()
        if not isinstance(shape, list) or len(shape) != 2 or shape[0] != shape[1]:
            raise GraphFileError(f"{path}: a graph is a square matrix, this one has the shape {shape}")
        return int(shape[0])
    if "num_nodes" not in arrays:
        return None
    stated = arrays["num_nodes"]
    if stated.size != 1 or stated.dtype.kind not in "iu" or stated.item() < 0:
        raise GraphFileError(f"{path}: num_nodes is {stated}, expected a whole number from 0 on")
    return int(stated.item())


def _compressed(path: Path, arrays: dict[str, np.ndarray], num_nodes: int | None) -> tuple[np.ndarray, ...]:
    """Sources and targets of a csr or csc matrix."""
    kind = bytes(arrays["format"].tobytes()).replace(b"\0", b"").decode() if "format" in arrays else "csr"
    if kind not in ("csr", "csc"):
        raise GraphFileError(f"{path}: a {kind} matrix cannot be read; save it as csr, csc or coo")
    indptr, indices = arrays["indptr"], arrays["indices"]
    if indptr.ndim != 1 or indptr.dtype.kind not in "iu" or indptr.size < 1:
        raise GraphFileError(f"{path}: indptr holds {indptr.dtype} of the shape {indptr.shape}, expected integers")
    check_offsets(path, indptr, indptr.size - 1 if num_nodes is None else num_nodes, indices.size)
    ends = (expand(indptr, 0, indices.size), indices)
    return ends if kind == "csr" else ends[::-1]
