"""How a rank reads its slice of a graph file: which nodes are its own, their edges, and whether these are right.

What stands in the file is checked while it is read: HDF5 itself reads flipped bytes without a word.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cusp.errors import GraphFileError, OptionError, together
from cusp.input.checksum import as_bits, combine
from cusp.input.graph_file import GraphHeader, open_graph, read_direct, read_header
from cusp.input.interfaces import Read
from cusp.runtime.devices import backend, move
from cusp.runtime.storage import IN_MEMORY, Storage, memory_of, storage_for

if TYPE_CHECKING:
    import h5py
    from mpi4py.MPI import Intracomm


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
    storage : Storage
        Where ``targets``, ``weights`` and what the partitioner makes of them live, and how much of it is
        worked on at a time.
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

    @property
    def device(self) -> str:
        """Where the arrays are, all but ``bounds``: cpu or gpu."""
        return self.storage.device

    def on(self, device: str) -> "EdgeSlice":
        """The same with its arrays on another device."""
        if device == self.device:
            return self
        names = ("indptr", "targets", "weights", "in_degrees")
        moved = {name: move(getattr(self, name), device) for name in names}
        return replace(self, **moved, storage=memory_of(device))

    def without_edges(self) -> "EdgeSlice":
        """The same slice with no edges, so that their memory can go."""
        return replace(self, indptr=self.indptr[:1].copy(), targets=self.targets[:0].copy(), weights=None)


def read_slice(
    path: str,
    comm: "Intracomm",
    split: str = "edges",
    weights: bool = True,
    in_degrees: bool = False,
    memory_limit: int | None = None,
    device: str = "cpu",
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
    memory_limit : int, optional
        Bytes that each rank may use for the graph; its edges are then read again whenever they are needed.
    device : {'cpu', 'gpu'}
        Into whose memory.

    Raises
    ------
    GraphFileError, OptionError
        On every rank, for the first thing that is wrong on any of them.
    """
    with together(comm):
        header = read_header(path)
        if in_degrees and not (header.has_transpose or header.symmetric):
            raise GraphFileError(
                f"{path}: a rule asks for in-degrees, but the file has no group /csc (the transpose); "
                "write it with scripts.convert --transpose"
            )
        file = open_graph(path)
    with file:
        bounds = _share_nodes(file["indptr"], header, comm, split)
        first, last = int(bounds[comm.rank]), int(bounds[comm.rank + 1])
        with together(comm):
            in_memory = memory_of(device)
            storage = in_memory if memory_limit is None else storage_for(memory_limit, header.num_nodes, last - first)
        with together(comm):
            at_end = comm.rank == comm.size - 1
            indptr, sum_indptr = _read_indptr(file["indptr"], first, last, header, device, at_end)
            storage.check_rows(indptr)
            begin, end = int(indptr[0]), int(indptr[-1])
            read_checked = partial(backend(Read, device).read_checked, begin=begin, end=end, storage=storage)
            targets, sum_indices = read_checked(
                file["indices"], check=partial(_check_targets, header), most=header.num_nodes - 1
            )
            targets = as_bits(targets)
            values, sum_data = None, 0
            if weights and header.weight_dtype is not None:
                values, sum_data = read_checked(file["data"], check=partial(_check_weights, header), most=None)
            indptr -= begin
            degrees = _read_in_degrees(file, header, first, last, indptr, device) if in_degrees else None
        sums = {"indptr": sum_indptr, "indices": sum_indices} | ({} if values is None else {"data": sum_data})
        _check_sums(file, path, sums, comm)
    if header.symmetric:
        _check_symmetric(path, comm, first, indptr, targets, storage)
    graph = (header.num_nodes, header.num_edges, header.symmetric)
    return EdgeSlice(*graph, bounds, first, indptr, targets, values, degrees, storage)


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


def _share_nodes(indptr: "h5py.Dataset", header: GraphHeader, comm: "Intracomm", split: str) -> np.ndarray:
    def prefix_at(node: int) -> int:
        entry = np.empty(1, np.int64)
        read_direct(indptr, entry, node)
        return int(entry[0])

    with together(comm):
        first = share_nodes(prefix_at, header.num_nodes, header.num_edges, comm.rank, comm.size, split)
    bounds = np.empty(comm.size + 1, np.int64)
    bounds[:-1] = comm.allgather(first)
    bounds[-1] = header.num_nodes
    return np.maximum.accumulate(bounds)  # a damaged indptr could send the search anywhere


def _read_indptr(
    dataset: "h5py.Dataset", first: int, last: int, header: GraphHeader, device: str, at_end: bool = False
) -> tuple[np.ndarray, int]:
    """Entries ``first`` to ``last`` inclusive, and the checksum of those that no other rank reads."""
    reader = backend(Read, device)
    indptr = reader.read_offsets(dataset, first, last + 1)
    wrong = reader.first_descent(indptr, header.num_edges)
    if wrong >= 0:
        before, after = int(indptr[max(wrong - 1, 0)]), int(indptr[wrong])
        raise GraphFileError(
            f"{header.path}: /{dataset.name.strip('/')} goes from {before:,} to {after:,} at entry {first + wrong:,}; "
            f"it must rise from 0 to the number of edges, {header.num_edges:,}"
        )
    own = indptr if at_end else indptr[:-1]
    return indptr, reader.checksum(own, first) if dataset.dtype.itemsize == 8 else 0


def _read_in_degrees(
    file: "h5py.File", header: GraphHeader, first: int, last: int, indptr: np.ndarray, device: str
) -> np.ndarray:
    """Number of in-edges of each node of a slice; those of a symmetric graph are its out-edges."""
    begins = indptr if header.symmetric else _read_indptr(file["csc/indptr"], first, last, header, device)[0]
    return begins[1:] - begins[:-1]


def _check_targets(header: GraphHeader, chunk: np.ndarray, begin: int) -> None:
    targets = as_bits(chunk)
    if int(targets.max()) >= header.num_nodes:
        at = int(np.argmax(targets >= header.num_nodes))
        raise GraphFileError(
            f"{header.path}: /indices[{begin + at:,}] is {int(chunk[at]):,}, "
            f"but the graph has the nodes 0 to {header.num_nodes - 1:,}"
        )


def _check_weights(header: GraphHeader, chunk: np.ndarray, begin: int) -> None:
    if chunk.dtype.kind == "f" and np.isnan(chunk.min()):
        at = int(np.argmax(np.isnan(chunk)))
        raise GraphFileError(f"{header.path}: /data[{begin + at:,}] is not a number (NaN)")


def _check_sums(file: "h5py.File", path: str, sums: dict[str, int], comm: "Intracomm") -> None:
    for name, part in sums.items():
        dataset = file[name]
        stored = dataset.attrs.get("checksum")
        found = combine(comm.allgather(part))
        if stored is not None and int(stored) != found and _stored_as_read(dataset):
            raise GraphFileError(
                f"{path}: checksum of /{name} is {found:016x}, but {int(stored):016x} was stored when it was "
                "written; the file is damaged: copy or convert it again"
            )


def _stored_as_read(dataset: "h5py.Dataset") -> bool:
    return dataset.name.strip("/").split("/")[-1] != "indptr" or dataset.dtype.itemsize == 8


def _check_symmetric(
    path: str, comm: "Intracomm", first: int, indptr: np.ndarray, targets: np.ndarray, storage: Storage
) -> None:
    asymmetry = backend(Read, storage.device).asymmetry
    sums = [int(asymmetry(first + row, indptr[row : end + 1], targets)) for row, end in storage.rows(indptr)]
    if combine(comm.allgather(combine(sums))) != 0:
        raise GraphFileError(
            f"{path}: the attribute 'symmetric' is set, but not every edge stands in the file in both directions; "
            "convert it with --symmetrize or take the attribute away"
        )
