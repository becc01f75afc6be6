"""The graph file (HDF5, CSR): its layout, its header, and access to its entries.

Layout, with SciPy's names, so that ``scipy.sparse.csr_matrix((data, indices, indptr))`` reads it too::

    /indptr    (N + 1,) int64              out-edges of node v: indices[indptr[v] : indptr[v + 1]]
    /indices   (E,)     uint32 or int64    target of each edge
    /data      (E,)     optional           edge weights: int8 ... int64, uint8 ... uint64, float32, float64
    /csc/...   the same three datasets for the transpose, optional
    attributes  num_nodes, num_edges, symmetric, format_version; 'checksum' on each dataset

Only ``indptr`` and ``indices`` are required: a file that anyone wrote with h5py is accepted as it is.
This module checks what it can without reading them all; :mod:`cusp.input.edge_slice` checks the rest.
"""

import os
from dataclasses import dataclass

import h5py
import numpy as np

from cusp.errors import GraphFileError
from cusp.runtime.storage import Storage

FORMAT_VERSION = 1


@dataclass(frozen=True)
class GraphHeader:
    """What is known of a graph file before anything large is read."""

    path: str
    num_nodes: int
    num_edges: int
    symmetric: bool
    index_dtype: np.dtype
    weight_dtype: np.dtype | None
    has_transpose: bool


def read_header(path: str) -> GraphHeader:
    """Open a graph file and check all that can be checked without reading its edges.

    Raises
    ------
    GraphFileError
        The file is missing, cut short, not HDF5 or not a CSR graph.
    """
    with open_graph(path) as file:
        indptr, indices = _dataset(file, path, "indptr"), _dataset(file, path, "indices")
        weights = _dataset(file, path, "data") if "data" in file else None
        for name, dataset, kinds in (("indptr", indptr, "iu"), ("indices", indices, "iu"), ("data", weights, "iuf")):
            if dataset is not None and (dataset.dtype.kind not in kinds or dataset.ndim != 1):
                expected = "integers or floats" if "f" in kinds else "integers"
                raise GraphFileError(
                    f"{path}: /{name} has {dataset.ndim} dimension(s) of {dataset.dtype}, expected one of {expected}; "
                    "write it with scripts.convert or correct its type"
                )
        num_nodes, num_edges = indptr.size - 1, indices.size
        if num_nodes < 1:
            raise GraphFileError(f"{path}: /indptr has {indptr.size} entries, so the graph has no nodes")
        if weights is not None and weights.size != num_edges:
            raise GraphFileError(f"{path}: /data has {weights.size:,} weights for {num_edges:,} edges in /indices")
        _check_ends(path, indptr, num_edges)
        _check_attributes(path, file, num_nodes, num_edges)
        return GraphHeader(
            path,
            num_nodes,
            num_edges,
            bool(file.attrs.get("symmetric", False)),
            _native(indices.dtype),
            None if weights is None else _native(weights.dtype),
            "csc" in file,
        )


def stored_checksums(path: str) -> dict[str, int]:
    """The checksums that a graph file stores of its datasets, by name."""
    with open_graph(path) as file:
        return {
            name: int(file[name].attrs["checksum"])
            for name in ("indptr", "indices", "data")
            if name in file and "checksum" in file[name].attrs
        }


def open_graph(path: str) -> h5py.File:
    """Open a graph file for reading; GraphFileError says why it cannot be."""
    try:
        return h5py.File(path, "r")
    except FileNotFoundError:
        raise GraphFileError(f"{path}: no such file (looked in {os.getcwd()})") from None
    except IsADirectoryError:
        raise GraphFileError(f"{path}: is a folder, not a graph file") from None
    except OSError as error:
        text = str(error)
        if "truncated file" in text:
            raise GraphFileError(f"{path}: the file was cut short ({text}); copy or convert it again") from None
        if "signature not found" in text:
            size = os.path.getsize(path)
            raise GraphFileError(f"{path}: not an HDF5 file ({size:,} bytes); scripts.convert makes one") from None
        raise GraphFileError(f"{path}: cannot be opened: {text}") from None


def _dataset(file: h5py.File, path: str, name: str) -> h5py.Dataset:
    dataset = file.get(name)
    if not isinstance(dataset, h5py.Dataset):
        contents = ", ".join("/" + key for key in file) or "nothing"
        raise GraphFileError(f"{path}: no dataset /{name} (the file has {contents}); scripts.convert makes graph files")
    return dataset


def _native(dtype: np.dtype) -> np.dtype:
    return dtype.newbyteorder("=")


def _check_ends(path: str, indptr: h5py.Dataset, num_edges: int) -> None:
    try:
        begin, end = int(indptr[0]), int(indptr[-1])
    except OSError as error:
        raise GraphFileError(f"{path}: /indptr cannot be read: {error}") from None
    if begin != 0:
        raise GraphFileError(f"{path}: /indptr starts at {begin:,}, expected 0")
    if end != num_edges:
        raise GraphFileError(
            f"{path}: /indptr ends at {end:,} but /indices has {num_edges:,} entries; "
            "the file was cut short or not written by scripts.convert"
        )


def _check_attributes(path: str, file: h5py.File, num_nodes: int, num_edges: int) -> None:
    for name, actual in (("num_nodes", num_nodes), ("num_edges", num_edges)):
        stated = _whole_number(path, file, name, actual)
        if stated != actual:
            raise GraphFileError(f"{path}: attribute {name} says {stated:,} but the datasets have {actual:,}")
    version = _whole_number(path, file, "format_version", FORMAT_VERSION)
    if version > FORMAT_VERSION:
        raise GraphFileError(f"{path}: format version {version}, this program reads up to {FORMAT_VERSION}; update it")


def _whole_number(path: str, file: h5py.File, name: str, default: int) -> int:
    value = file.attrs.get(name, default)
    try:
        return int(value)
    except (TypeError, ValueError):
        raise GraphFileError(f"{path}: attribute {name} is {value!r}, expected a whole number") from None


def read_direct(dataset: h5py.Dataset, into: np.ndarray, begin: int) -> None:
    """Fill an array with the entries of a dataset from ``begin`` on."""
    if into.size == 0:
        return
    try:
        dataset.read_direct(into, np.s_[begin : begin + into.size])
    except OSError as error:
        raise GraphFileError(f"{dataset.file.filename}: {dataset.name} cannot be read: {error}") from None


def read_ahead(dataset: h5py.Dataset, begin: int, end: int) -> None:
    """Ask the operating system to fetch the entries ``begin`` to ``end`` (exclusive) in the background."""
    offset = dataset.id.get_offset()
    if offset is None or end == begin or not hasattr(os, "posix_fadvise"):
        return
    descriptor = os.open(dataset.file.filename, os.O_RDONLY)
    try:
        width = dataset.dtype.itemsize
        os.posix_fadvise(descriptor, offset + begin * width, (end - begin) * width, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(descriptor)


def map_entries(dataset: h5py.Dataset, begin: int, end: int, storage: Storage) -> np.ndarray | None:
    """The entries ``begin`` to ``end`` (exclusive), mapped from the file; None if they have to be read.

    They have to be if ``storage`` keeps its arrays in memory, or if the dataset does not look in the file as it
    would in memory: if it is in chunks, compressed, in another file, or of another byte order.
    """
    dtype = _native(dataset.dtype)
    offset = offset_in_file(dataset, dtype)
    if offset is None:
        return None
    return storage.map_file(dataset.file.filename, offset + begin * dtype.itemsize, end - begin, dtype)


def offset_in_file(dataset: h5py.Dataset, dtype: np.dtype) -> int | None:
    """The byte at which a dataset begins, if the file has it as memory would, contiguous and of this type."""
    offset, created = dataset.id.get_offset(), dataset.id.get_create_plist()
    as_it_is = created.get_layout() == h5py.h5d.CONTIGUOUS and created.get_external_count() == 0
    if offset is None or not as_it_is or not dataset.id.get_type().equal(h5py.h5t.py_create(dtype)):
        return None
    return offset
