"""The graph file (HDF5, CSR): its layout, its header, and access to its entries.

Layout, with SciPy's names, so that ``scipy.sparse.csr_matrix((data, indices, indptr))`` reads it too::

    /indptr    (N + 1,) int64              out-edges of node v: indices[indptr[v] : indptr[v + 1]]
    /indices   (E,)     uint32 or int64    target of each edge
    /data      (E,)     optional           edge weights: int8 ... int64, uint8 ... uint64, float32, float64
    /csc/...   the same three datasets for the transpose, optional
    /names/offsets (N + 1,) int64, /names/bytes uint8    optional: the name of node v, in UTF-8, is
                                       bytes[offsets[v] : offsets[v + 1]]; the names are sorted by their bytes
    attributes  num_nodes, num_edges, symmetric, format_version; 'checksum' on each dataset

Only ``indptr`` and ``indices`` are required: a file that anyone wrote with h5py is accepted as it is.
This module checks what it can without reading them all; :mod:`cusp.input.edge_slice` checks the rest.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import h5py
import numpy as np

from cusp.errors import GraphFileError
from cusp.input.hdf5 import explained, find, find_dataset, open_hdf5, stored_checksum, whole_number
from cusp.runtime.files import Stamp, open_input, read_at, stamp
from cusp.runtime.storage import Storage

FORMAT_VERSION = 1

NARROW_NODES = 2**32  # up to this many nodes, ids fit into the uint32 of /indices

Fetch = Callable[[np.ndarray, int], None]


def index_dtype(num_nodes: int) -> np.dtype:
    """Type of ``indices`` in a graph with this many nodes: uint32 if the ids fit, else int64."""
    return np.dtype(np.uint32 if num_nodes <= NARROW_NODES else np.int64)


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
    stamp: Stamp | None = field(default=None, repr=False, compare=False)  # of the file

    @property
    def weight_bytes(self) -> int:
        """Of an edge."""
        return self.weight_dtype.itemsize if self.weight_dtype else 0


def read_header(path: str) -> GraphHeader:
    """Open a graph file and check all that can be checked without reading its edges.

    Raises
    ------
    GraphFileError
        The file is missing, cut short, not HDF5 or not a CSR graph.
    """
    with explained(path, "the graph"), open_hdf5(path) as file:
        before = stamp(path)
        indptr, indices = find_dataset(file, path, "indptr", "iu"), find_dataset(file, path, "indices", "iu")
        if indptr.size < 2:
            raise GraphFileError(f"{path}: /indptr has {indptr.size} entries, so the graph has no nodes")
        has_transpose = find(file, path, "csc") is not None
        _check_attributes(path, file, indptr.size - 1, indices.size)
        weights = _check_group(path, file, "", indptr.size - 1, indices.size)
        if has_transpose:
            _check_group(path, file, "csc/", indptr.size - 1, indices.size)
        return GraphHeader(
            path,
            indptr.size - 1,
            indices.size,
            whole_number(path, file, "symmetric", 0) == 1,
            _native(indices.dtype),
            None if weights is None else _native(weights.dtype),
            has_transpose,
            before,
        )


def stored_checksums(path: str) -> dict[str, int]:
    """The checksums that a graph file stores of its datasets, by name."""
    with explained(path, "a checksum"), open_hdf5(path) as file:
        found = {name: find(file, path, name) for name in ("indptr", "indices", "data")}
        sums = {name: stored_checksum(path, dataset) for name, dataset in found.items() if dataset is not None}
        return {name: value for name, value in sums.items() if value is not None}


def _native(dtype: np.dtype) -> np.dtype:
    return dtype.newbyteorder("=")


def _check_group(path: str, file: h5py.File, group: str, num_nodes: int, num_edges: int) -> h5py.Dataset | None:
    """Check that the datasets of the graph, or of its transpose, fit together; returns the weights, if any."""
    indptr, indices = (find_dataset(file, path, group + name, "iu") for name in ("indptr", "indices"))
    weights = find_dataset(file, path, group + "data", "iuf") if find(file, path, group + "data") is not None else None
    if (indptr.size, indices.size) != (num_nodes + 1, num_edges):
        raise GraphFileError(
            f"{path}: /{group}indptr has {indptr.size:,} and /{group}indices {indices.size:,} entries, but the graph "
            f"has {num_nodes:,} nodes and {num_edges:,} edges; convert it again"
        )
    if weights is not None and weights.size != num_edges:
        raise GraphFileError(
            f"{path}: /{group}data has {weights.size:,} weights for {num_edges:,} edges in /{group}indices"
        )
    for dataset in (indptr, indices, weights):
        if dataset is not None:
            stored_checksum(path, dataset)  # refuses one that is no number
    _check_ends(path, indptr, num_edges)
    return weights


def _check_ends(path: str, indptr: h5py.Dataset, num_edges: int) -> None:
    begin, end = int(indptr[0]), int(indptr[-1])
    name = indptr.name.strip("/")
    if begin != 0:
        raise GraphFileError(f"{path}: /{name} starts at {begin:,}, expected 0")
    if end != num_edges:
        indices = name.replace("indptr", "indices")
        raise GraphFileError(
            f"{path}: /{name} ends at {end:,} but /{indices} has {num_edges:,} entries; "
            "the file was cut short or not written by cusp convert"
        )


def _check_attributes(path: str, file: h5py.File, num_nodes: int, num_edges: int) -> None:
    for name, actual in (("num_nodes", num_nodes), ("num_edges", num_edges)):
        stated = whole_number(path, file, name, actual)
        if stated != actual:
            raise GraphFileError(f"{path}: attribute {name} says {stated:,} but the datasets have {actual:,}")
    if whole_number(path, file, "symmetric", 0) not in (0, 1):
        raise GraphFileError(f"{path}: attribute symmetric is {file.attrs['symmetric']}, expected 0 or 1")
    version = whole_number(path, file, "format_version", FORMAT_VERSION)
    if version > FORMAT_VERSION:
        raise GraphFileError(f"{path}: format version {version}, this program reads up to {FORMAT_VERSION}; update it")


def read_direct(dataset: h5py.Dataset, into: np.ndarray, begin: int) -> None:
    """Fill an array with the entries of a dataset from ``begin`` on."""
    if into.size == 0:
        return
    with explained(dataset.file.filename, dataset.name):
        dataset.read_direct(into, np.s_[begin : begin + into.size])


@contextmanager
def fetching(dataset: h5py.Dataset, dtype: np.dtype) -> Iterator[tuple[Fetch, bool]]:
    """A function that fills an array with the entries from a place on, and whether it reads past HDF5.

    Then it is faster, and several threads may call it. It does where the file has the values as memory would.
    """
    offset = offset_in_file(dataset, dtype)
    if offset is None:
        yield lambda into, begin: read_direct(dataset, into, begin), False
        return
    path, name = dataset.file.filename, dataset.name
    with open_input(path) as file:

        def fetch(into: np.ndarray, begin: int) -> None:
            try:
                read_at(file.fileno(), offset + begin * dtype.itemsize, into)
            except OSError as error:
                raise GraphFileError(f"{path}: {name} cannot be read: {error}") from None

        yield fetch, True


def read_ahead(dataset: h5py.Dataset, begin: int, end: int) -> None:
    """Ask the operating system to fetch the entries ``begin`` to ``end`` (exclusive) in the background."""
    offset = dataset.id.get_offset()
    if offset is None or end == begin or not hasattr(os, "posix_fadvise"):
        return
    with open_input(dataset.file.filename) as file:
        width = dataset.dtype.itemsize
        os.posix_fadvise(file.fileno(), offset + begin * width, (end - begin) * width, os.POSIX_FADV_WILLNEED)


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
