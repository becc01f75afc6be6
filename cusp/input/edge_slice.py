"""The slice of a graph that one rank reads, and how it reads and checks it.

The contents of the file are checked while they are read: HDF5 itself reads flipped bits without noticing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import h5py
import numpy as np

from cusp.errors import GraphFileError, Intracomm, check_same, together
from cusp.input.checksum import as_bits, combine
from cusp.input.graph_file import GraphHeader, read_header
from cusp.input.hdf5 import open_hdf5, stored_checksum
from cusp.input.interfaces import Read
from cusp.input.split import share_nodes
from cusp.runtime.devices import backend, move
from cusp.runtime.files import check_unchanged, described
from cusp.runtime.storage import IN_MEMORY, Storage, memory_of, storage_for

if TYPE_CHECKING:
    from cusp.names.names import Names


@dataclass(frozen=True)
class EdgeSlice:
    """All out-edges of one contiguous range of nodes: what one rank reads.

    Attributes
    ----------
    num_nodes, num_edges : int
        Of the whole graph.
    symmetric : bool
        The graph has every edge in both directions.
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
    storage : Storage
        Where ``targets``, ``weights`` and what the partitioner makes of them are kept, and how much of them is
        worked on at a time.
    names : Names or str, or None
        What the nodes are called, or the graph file that may say so.
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
    storage: Storage = IN_MEMORY
    names: "Names | str | None" = None

    @property
    def device(self) -> str:
        """Where the arrays are, except ``bounds``: cpu or gpu."""
        return self.storage.device

    def on(self, device: str) -> "EdgeSlice":
        """The same slice with its arrays on another device."""
        if device == self.device:
            return self
        storage = memory_of(device)
        moved = {name: move(getattr(self, name), device) for name in ("indptr", "in_degrees")}
        moved |= {name: storage.take(getattr(self, name)) for name in ("targets", "weights")}
        return replace(self, **moved, storage=storage)

    def without_edges(self) -> "EdgeSlice":
        """The same slice without its edges, so that their memory can be freed."""
        return replace(self, indptr=self.indptr[:1].copy(), targets=self.targets[:0].copy(), weights=None)


def read_slice(
    path: str,
    comm: Intracomm,
    split: str = "edges",
    weights: bool = True,
    in_degrees: bool = False,
    memory_limit: int | None = None,
    device: str = "cpu",
    shares: Sequence[int] = (),
) -> EdgeSlice:
    """Read this rank's slice of the graph and check it. Collective.

    Parameters
    ----------
    split : str
        How nodes are shared out: ``edges`` (equal numbers of edges), ``nodes`` (of nodes), ``weighted`` (a node
        weighs as much as the edges that a node has on average) or ``A:B`` (a node weighs A, an edge B), as CuSP's
        reading split.
    weights : bool
        Read the edge weights, if the file has any.
    in_degrees : bool
        Read the in-degrees, if the file has them: in the stored transpose, group ``csc``, or because the graph
        is symmetric.
    memory_limit : int, optional
        Bytes that each rank may use for the graph; edges are then read again whenever they are needed.
    device : {'cpu', 'gpu'}
        Whose memory the slice is read into.
    shares : (ranks,) of int, optional
        How much each rank reads, in proportion to the others.

    Raises
    ------
    GraphFileError, OptionError
        On every rank, for what the lowest rank with an error found wrong first.
    """
    with together(comm):
        header = read_header(path)
        file = open_hdf5(path)
    with file:
        check_same(comm, "graphs", described(path))
        bounds = share_nodes(file["indptr"], header, comm, split, shares)
        first, last = bounds[comm.rank : comm.rank + 2].tolist()
        with together(comm):
            storage = memory_of(device)
            if memory_limit is not None:
                storage = storage_for(memory_limit, header.num_nodes, last - first)
        with together(comm):
            read_indptr = partial(_read_indptr, file, header, first, last, device, comm.rank == comm.size - 1)
            indptr, sums = read_indptr("indptr")
            storage.check_rows(indptr)
            begin = int(indptr[0])
            indptr -= begin
            targets, unpaired, more = _read_targets(file, header, begin, first, indptr, storage)
            sums |= more
            values, more = _read_weights(file, header, begin, begin + targets.size, storage, weights)
            sums |= more
            degrees = None
            if in_degrees and (header.symmetric or header.has_transpose):
                begins, more = (indptr, {}) if header.symmetric else read_indptr("csc/indptr")
                degrees = begins[1:] - begins[:-1]
                sums |= more
        _check_sums(file, path, sums, comm)
    with together(comm):
        check_unchanged(path, header.stamp)
    if combine(comm.allgather(unpaired)) != 0:
        raise GraphFileError(
            f"{path}: the attribute 'symmetric' is set, but the file does not have every edge in both directions; "
            "convert it with --symmetrize or remove the attribute"
        )
    graph = (header.num_nodes, header.num_edges, header.symmetric)
    return EdgeSlice(*graph, bounds, first, indptr, targets, values, degrees, storage, path)


def _read_indptr(
    file: h5py.File, header: GraphHeader, first: int, last: int, device: str, at_end: bool, name: str
) -> tuple[np.ndarray, dict[str, int]]:
    """Entries ``first`` to ``last`` (inclusive), and the checksum of those that no other rank includes."""
    reader = backend(Read, device)
    indptr = reader.read_offsets(file[name], first, last + 1)
    wrong = reader.first_descent(indptr, header.num_edges)
    if wrong >= 0:
        before, after = int(indptr[max(wrong - 1, 0)]), int(indptr[wrong])
        raise GraphFileError(
            f"{header.path}: /{name} goes from {before:,} to {after:,} at entry {first + wrong:,}; "
            f"it must rise from 0 to the number of edges, {header.num_edges:,}"
        )
    return memory_of(device).aside(indptr), {name: reader.checksum(indptr if at_end else indptr[:-1], first)}


def _read_targets(
    file: h5py.File, header: GraphHeader, begin: int, first: int, indptr: np.ndarray, storage: Storage
) -> tuple[np.ndarray, int, dict[str, int]]:
    """Targets of the rows from node ``first`` and edge ``begin`` on, their asymmetry, and their checksum."""
    most = min(header.num_nodes - 1, np.iinfo(header.index_dtype).max)  # the bits of a negative number are above
    targets, total, unpaired = backend(Read, storage.device).read_targets(
        file["indices"], begin, first, indptr, storage, partial(_check_targets, header, most), most, header.symmetric
    )
    return as_bits(targets), unpaired, {"indices": total}


def _read_weights(
    file: h5py.File, header: GraphHeader, begin: int, end: int, storage: Storage, wanted: bool
) -> tuple[np.ndarray | None, dict[str, int]]:
    """Weights of the edges ``begin`` to ``end`` (exclusive), if wanted and there are any, and their checksum."""
    if not wanted or header.weight_dtype is None:
        return None, {}
    read_checked = backend(Read, storage.device).read_checked
    values, total = read_checked(file["data"], begin, end, storage, partial(_check_weights, header), None)
    return values, {"data": total}


def _check_targets(header: GraphHeader, most: int, chunk: np.ndarray, begin: int) -> None:
    targets = as_bits(chunk)
    if int(targets.max()) > most:
        at = int(np.argmax(targets > most))
        raise GraphFileError(
            f"{header.path}: /indices[{begin + at:,}] is {int(chunk[at]):,}, "
            f"but the graph has the nodes 0 to {header.num_nodes - 1:,}"
        )


def _check_weights(header: GraphHeader, chunk: np.ndarray, begin: int) -> None:
    if chunk.dtype.kind == "f" and np.isnan(chunk.min()):
        at = int(np.argmax(np.isnan(chunk)))
        raise GraphFileError(f"{header.path}: /data[{begin + at:,}] is not a number (NaN)")


def _check_sums(file: h5py.File, path: str, sums: dict[str, int], comm: Intracomm) -> None:
    with together(comm):
        stored = {name: stored_checksum(path, file[name]) for name in sums}
    for name, part in sums.items():
        compare_sums(path, name, stored[name], combine(comm.allgather(part)))


def compare_sums(path: str, name: str, stored: int | None, actual: int) -> None:
    """Raise GraphFileError if a dataset has a stored checksum and it is not the actual one."""
    if stored not in (None, actual):
        raise GraphFileError(
            f"{path}: the checksum of /{name} is {actual:016x}, but {stored:016x} was stored when it was "
            "written; the file is damaged: copy or convert it again"
        )
