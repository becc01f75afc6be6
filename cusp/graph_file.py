"""The graph file (HDF5, CSR) and how a rank reads its slice of it.

Layout, with SciPy's names, so that ``scipy.sparse.csr_matrix((data, indices, indptr))`` reads it too::

    /indptr    (N + 1,) int64              out-edges of node v: indices[indptr[v] : indptr[v + 1]]
    /indices   (E,)     uint32 or int64    target of each edge
    /data      (E,)     optional           edge weights: int8 ... int64, uint8 ... uint64, float32, float64
    /csc/...   the same three datasets for the transpose, optional
    attributes  num_nodes, num_edges, symmetric, format_version; 'checksum' on each dataset

Only ``indptr`` and ``indices`` are needed: a file that anyone wrote with h5py is accepted as it is.
What stands in the file is checked while it is read: HDF5 itself reads flipped bytes without a word.
"""

import os
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import h5py
import numpy as np

from cusp import checks
from cusp.checksum import as_bits, checksum, combine
from cusp.errors import GraphFileError, OptionError, together

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

FORMAT_VERSION = 1
CHUNK = 1 << 21  # entries read and checked at a time: they stay in the cache in between


@dataclass(frozen=True)
class GraphHeader:
    """What a graph file says of itself before anything large is read."""

    path: str
    num_nodes: int
    num_edges: int
    symmetric: bool
    index_dtype: np.dtype
    weight_dtype: np.dtype | None
    has_transpose: bool


@dataclass(frozen=True)
class EdgeSlice:
    """All out-edges of one contiguous range of nodes: what one rank reads.

    Attributes
    ----------
    num_nodes, num_edges : int
        Of the whole graph.
    symmetric : bool
        Every edge stands in the graph in both directions.
    bounds : (ranks + 1,) int64
        Rank r reads the nodes ``bounds[r] : bounds[r + 1]``.
    first_node : int
        First node of this slice.
    indptr : (nodes + 1,) int64
        Edges of node ``first_node + i``: ``indptr[i] : indptr[i + 1]`` of ``targets``.
    targets : (edges,) uint32 or uint64
        Global ids.
    weights : (edges,) any number type, or None
    in_degrees : (nodes,) int64, or None
    """

    num_nodes: int
    num_edges: int
    symmetric: bool
    bounds: np.ndarray
    first_node: int
    indptr: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    in_degrees: np.ndarray | None = None

    def without_edges(self) -> "EdgeSlice":
        """The same slice with no edges, so that their memory can go."""
        return replace(self, indptr=self.indptr[:1].copy(), targets=self.targets[:0].copy(), weights=None)


def read_header(path: str) -> GraphHeader:
    """Open a graph file and check all that can be checked without reading its edges.

    Raises
    ------
    GraphFileError
        The file is missing, cut short, not HDF5 or not a CSR graph.
    """
    with _open(path) as file:
        indptr, indices = _dataset(file, path, "indptr"), _dataset(file, path, "indices")
        weights = _dataset(file, path, "data") if "data" in file else None
        for name, dataset, kinds in (("indptr", indptr, "iu"), ("indices", indices, "iu"), ("data", weights, "iuf")):
            if dataset is not None and (dataset.dtype.kind not in kinds or dataset.ndim != 1):
                wanted = "integers or floats" if "f" in kinds else "integers"
                raise GraphFileError(
                    f"{path}: /{name} has {dataset.ndim} dimension(s) of {dataset.dtype}, expected one of {wanted}; "
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
    """Checksums that a graph file says its datasets have, by name."""
    with _open(path) as file:
        return {
            name: int(file[name].attrs["checksum"])
            for name in ("indptr", "indices", "data")
            if name in file and "checksum" in file[name].attrs
        }


def read_slice(
    path: str, comm: "Intracomm", split: str = "edges", weights: bool = True, in_degrees: bool = False
) -> EdgeSlice:
    """Read this rank's share of the graph, checking it on the way. Collective.

    Parameters
    ----------
    path : str
    comm : Intracomm
    split : str
        How nodes are shared out: ``edges`` (equal numbers of edges), ``nodes``, ``weighted`` (a node
        weighs as much as its mean number of edges) or ``A:B`` (a node weighs A, an edge B), as
        CuSP's reading split.
    weights : bool
        Read the edge weights if the file has some.
    in_degrees : bool
        Read the in-degrees from the stored transpose, group ``csc``.

    Raises
    ------
    GraphFileError
        On every rank, for the first thing that is wrong on any of them.
    """
    with together(comm):
        header = read_header(path)
        if in_degrees and not (header.has_transpose or header.symmetric):
            raise GraphFileError(
                f"{path}: a rule asks for in-degrees, but the file has no group /csc (the transpose); "
                "write it with scripts.convert --transpose"
            )
        file = _open(path)
    with file:
        bounds = _share_nodes(file["indptr"], header, comm, split)
        first, last = int(bounds[comm.rank]), int(bounds[comm.rank + 1])
        with together(comm):
            indptr, sum_indptr = _read_indptr(file["indptr"], first, last, header, comm.rank == comm.size - 1)
            begin, end = int(indptr[0]), int(indptr[-1])
            targets, sum_indices = _read_checked(file["indices"], begin, end, path)
            targets = as_bits(targets)
            values, sum_data = None, 0
            if weights and header.weight_dtype is not None:
                values, sum_data = _read_checked(file["data"], begin, end, path)
            _check_values(header, targets, values, begin)
            indptr -= begin
            degrees = _read_in_degrees(file, header, first, last, indptr) if in_degrees else None
        sums = {"indptr": sum_indptr, "indices": sum_indices} | ({} if values is None else {"data": sum_data})
        _check_sums(file, path, sums, comm)
    if header.symmetric:
        _check_symmetric(path, comm, first, indptr, targets)
    graph = (header.num_nodes, header.num_edges, header.symmetric)
    return EdgeSlice(*graph, bounds, first, indptr, targets, values, degrees)


def share_nodes(prefix_at, num_nodes: int, num_edges: int, rank: int, ranks: int, split: str) -> int:  # type: ignore[no-untyped-def]
    """First node that ``rank`` of ``ranks`` reads; ``prefix_at(v)`` = number of edges before node v."""
    node_weight, edge_weight = split_weights(split, num_nodes, num_edges)
    total = num_nodes * node_weight + num_edges * edge_weight
    if rank in (0, ranks):
        return num_nodes if rank else 0
    wanted = -(-total * rank // ranks)
    return bisect_left(range(num_nodes), wanted, key=lambda v: v * node_weight + int(prefix_at(v)) * edge_weight)


def split_weights(split: str, num_nodes: int, num_edges: int) -> tuple[int, int]:
    """What a node and an edge weigh when nodes are shared out among the readers."""
    known = {"edges": (0, 1), "nodes": (1, 0), "weighted": (max(1, num_edges // num_nodes), 1)}
    if split == "edges" and num_edges == 0:
        return known["nodes"]
    if split in known:
        return known[split]
    try:
        node_weight, edge_weight = (int(part) for part in split.split(":"))
        if node_weight < 0 or edge_weight < 0 or node_weight + edge_weight == 0:
            raise ValueError
        return node_weight, edge_weight
    except ValueError:
        raise OptionError(f"--split {split}: expected edges, nodes, weighted or NODE:EDGE such as 10:1") from None


def _share_nodes(indptr: h5py.Dataset, header: GraphHeader, comm: "Intracomm", split: str) -> np.ndarray:
    def prefix_at(node: int) -> int:
        entry = np.empty(1, np.int64)
        _read_direct(indptr, entry, node)
        return int(entry[0])

    with together(comm):
        first = share_nodes(prefix_at, header.num_nodes, header.num_edges, comm.rank, comm.size, split)
    bounds = np.empty(comm.size + 1, np.int64)
    bounds[:-1] = comm.allgather(first)
    bounds[-1] = header.num_nodes
    return np.maximum.accumulate(bounds)  # a damaged indptr could send the search anywhere


def _open(path: str) -> h5py.File:
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
    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        there = ", ".join("/" + key for key in file) or "nothing"
        raise GraphFileError(f"{path}: no dataset /{name} (the file holds {there}); scripts.convert makes graph files")
    return found


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
    for name, found in (("num_nodes", num_nodes), ("num_edges", num_edges)):
        said = _whole_number(path, file, name, found)
        if said != found:
            raise GraphFileError(f"{path}: attribute {name} says {said:,} but the datasets hold {found:,}")
    version = _whole_number(path, file, "format_version", FORMAT_VERSION)
    if version > FORMAT_VERSION:
        raise GraphFileError(f"{path}: format version {version}, this program reads up to {FORMAT_VERSION}; update it")


def _whole_number(path: str, file: h5py.File, name: str, default: int) -> int:
    value = file.attrs.get(name, default)
    try:
        return int(value)
    except (TypeError, ValueError):
        raise GraphFileError(f"{path}: attribute {name} is {value!r}, expected a whole number") from None


def _read_indptr(
    dataset: h5py.Dataset, first: int, last: int, header: GraphHeader, at_end: bool = False
) -> tuple[np.ndarray, int]:
    """Entries ``first`` to ``last`` inclusive, and the checksum of those that no other rank reads."""
    indptr = np.empty(last - first + 1, np.int64)
    _read_direct(dataset, indptr, first)
    wrong = checks.first_descent(indptr, header.num_edges)
    if wrong >= 0:
        before, after = int(indptr[max(wrong - 1, 0)]), int(indptr[wrong])
        raise GraphFileError(
            f"{header.path}: /{dataset.name.strip('/')} goes from {before:,} to {after:,} at entry {first + wrong:,}; "
            f"it must rise from 0 to the number of edges, {header.num_edges:,}"
        )
    own = indptr if at_end else indptr[:-1]
    return indptr, checksum(own, first) if dataset.dtype.itemsize == 8 else 0


def _read_in_degrees(file: h5py.File, header: GraphHeader, first: int, last: int, indptr: np.ndarray) -> np.ndarray:
    """Number of in-edges of each node of a slice; those of a symmetric graph are its out-edges."""
    if header.symmetric:
        return np.diff(indptr)
    return np.diff(_read_indptr(file["csc/indptr"], first, last, header)[0])


def _read_checked(dataset: h5py.Dataset, begin: int, end: int, path: str) -> tuple[np.ndarray, int]:
    """Entries ``begin`` to ``end`` and their checksum; the operating system reads ahead meanwhile."""
    values = np.empty(end - begin, _native(dataset.dtype))
    _read_ahead(dataset, begin, end, path)
    sums = []
    for at in range(0, values.size, CHUNK):
        chunk = values[at : at + CHUNK]
        _read_direct(dataset, chunk, begin + at)
        sums.append(checksum(chunk, begin + at))
    return values, combine(sums)


def _read_direct(dataset: h5py.Dataset, into: np.ndarray, begin: int) -> None:
    if into.size == 0:
        return
    try:
        dataset.read_direct(into, np.s_[begin : begin + into.size])
    except OSError as error:
        raise GraphFileError(f"{dataset.file.filename}: {dataset.name} cannot be read: {error}") from None


def _read_ahead(dataset: h5py.Dataset, begin: int, end: int, path: str) -> None:
    offset = dataset.id.get_offset()
    if offset is None or end == begin or not hasattr(os, "posix_fadvise"):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        width = dataset.dtype.itemsize
        os.posix_fadvise(descriptor, offset + begin * width, (end - begin) * width, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(descriptor)


def _check_values(header: GraphHeader, targets: np.ndarray, weights: np.ndarray | None, begin: int) -> None:
    if targets.size and int(targets.max()) >= header.num_nodes:
        at = int(np.argmax(targets >= header.num_nodes))
        found = int(targets[at : at + 1].view(header.index_dtype)[0])
        raise GraphFileError(
            f"{header.path}: /indices[{begin + at:,}] is {found:,}, "
            f"but the graph has the nodes 0 to {header.num_nodes - 1:,}"
        )
    if weights is not None and weights.dtype.kind == "f" and weights.size and np.isnan(weights.min()):
        nan = np.flatnonzero(np.isnan(weights))
        if nan.size:
            raise GraphFileError(f"{header.path}: /data[{begin + int(nan[0]):,}] is not a number (NaN)")


def _check_sums(file: h5py.File, path: str, sums: dict[str, int], comm: "Intracomm") -> None:
    for name, part in sums.items():
        dataset = file[name]
        stored = dataset.attrs.get("checksum")
        found = combine(comm.allgather(part))
        if stored is not None and int(stored) != found and _stored_as_read(dataset):
            raise GraphFileError(
                f"{path}: checksum of /{name} is {found:016x}, but {int(stored):016x} was stored when it was "
                "written; the file is damaged: copy or convert it again"
            )


def _stored_as_read(dataset: h5py.Dataset) -> bool:
    return dataset.name.strip("/").split("/")[-1] != "indptr" or dataset.dtype.itemsize == 8


def _check_symmetric(path: str, comm: "Intracomm", first: int, indptr: np.ndarray, targets: np.ndarray) -> None:
    part = int(checks.asymmetry(first, indptr, targets)) & 0xFFFFFFFFFFFFFFFF
    if combine(comm.allgather(part)) != 0:
        raise GraphFileError(
            f"{path}: the attribute 'symmetric' is set, but not every edge stands in the file in both directions; "
            "convert it with --symmetrize or take the attribute away"
        )
