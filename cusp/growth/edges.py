"""A graph file with more edges: those of another file as a slice of the graph, with the nodes that only they name."""

from dataclasses import dataclass, replace

import numpy as np

from cusp.convert.conversion import Request, read_slice
from cusp.edge_lists.csr_builder import CsrBuilder
from cusp.errors import GraphFileError, OptionError, together
from cusp.formats import is_graph_file, open_edges
from cusp.formats.source import Asked, share
from cusp.input.checksum import as_bits
from cusp.input.edge_slice import EdgeSlice
from cusp.input.graph_file import GraphHeader, index_dtype
from cusp.names.names import SortedNames
from cusp.names.numbering import slab_of
from cusp.names.packed import unite
from cusp.runtime.files import check_unchanged
from cusp.runtime.mpi import MPI


@dataclass(frozen=True)
class AddedEdges:
    """What is added to a graph.

    Attributes
    ----------
    edges : EdgeSlice
        The added edges alone, between all nodes that there are then.
    names : SortedNames or None
        What these are called.
    numbers : (nodes before,) int64, or None
        Which of them the nodes are that were there, ascending; None if they keep their numbers.
    notes : list of str
        See :class:`cusp.formats.source.EdgeSource`.
    """

    edges: EdgeSlice
    names: SortedNames | None
    numbers: np.ndarray | None
    notes: list[str]


def read_added(comm: MPI.Intracomm, request: Request, graph: GraphHeader, names: SortedNames | None) -> AddedEdges:
    """Read a file of any format; its edges are held in memory. Collective.

    Parameters
    ----------
    graph, names
        Of the graph to which the edges are added. With names, what the file calls nodes are names.

    Raises
    ------
    InputError
        On every rank: a file that cannot be read; edges with weights for a graph without, or the other way round;
        weights that the type of those of the graph cannot hold.
    """
    with together(comm):
        ids = "auto" if is_graph_file(request.input) else "numbers" if names is None else "names"
        insist = graph.weight_dtype is not None
    found = read_slice(comm, replace(request, ids=ids, insist=insist))
    edges = found.edges
    with together(comm):
        if (names is None) != (found.names is None):
            has, lacks = (request.input, graph.path) if names is None else (graph.path, request.input)
            raise OptionError(f"{request.input}: the nodes of {has} have names, and those of {lacks} have none")
        edges = replace(edges, weights=_fitting(edges.weights, request.input, graph))
        if names is None:
            size = max(graph.num_nodes, edges.num_nodes)
            return AddedEdges(_among(edges, comm.rank, np.arange(edges.num_nodes), size), None, None, found.notes)
        assert isinstance(found.names, SortedNames)
        united, before, added = unite(names.packed(), found.names.packed())
        all_names = SortedNames(united, names.whole and found.names.whole)
        moved = before if len(united) > graph.num_nodes else None
        return AddedEdges(_among(edges, comm.rank, added, len(united)), all_names, moved, found.notes)


def _fitting(weights: np.ndarray | None, path: str, graph: GraphHeader) -> np.ndarray | None:
    """The weights in the type of those of a graph."""
    dtype = graph.weight_dtype
    if dtype is None:
        if weights is not None:
            raise OptionError(f"{path}: has weights, and {graph.path} has none; --weights none leaves them out")
        return None
    if weights is None:
        raise OptionError(
            f"{path}: has no weights, and {graph.path} has some; name their column with --weights, or make random ones "
            "with --weights LOW:HIGH"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        fitting = weights.astype(dtype)
    wrong = fitting != weights if dtype.kind != "f" else np.isinf(fitting) & np.isfinite(weights)
    if wrong.any():
        raise GraphFileError(
            f"{path}: the weight {weights[wrong.argmax()]} does not fit into the {dtype} of {graph.path}"
        )
    return fitting


def _among(edges: EdgeSlice, rank: int, numbers: np.ndarray, num_nodes: int) -> EdgeSlice:
    """The slice of a rank, between more nodes, of which node i is ``numbers[i]``; these ascend."""
    bounds = np.append(numbers, num_nodes)[edges.bounds]
    bounds[0], bounds[-1] = 0, num_nodes
    first, last = bounds[rank : rank + 2].tolist()
    sizes = np.zeros(last - first + 1, np.int64)
    rows = numbers[edges.first_node : edges.first_node + edges.indptr.size - 1] - first
    sizes[1 + rows] = np.diff(edges.indptr)
    targets = as_bits(numbers[edges.targets].astype(index_dtype(num_nodes)))
    return replace(
        edges,
        num_nodes=num_nodes,
        bounds=bounds,
        first_node=first,
        indptr=np.cumsum(sizes),
        targets=targets,
        names=None,
    )


def grow_file(
    comm: MPI.Intracomm, graph: GraphHeader, added: AddedEdges, output: str, memory_limit: int | None = None,
    scratch: str | None = None,
) -> tuple[int, int]:  # fmt: skip
    """Write a graph file, which may replace that of the graph; returns the numbers of nodes and edges. Collective.

    It has a transpose if the graph has one, and is symmetric if the graph and the added edges are.

    Raises
    ------
    InputError
        On every rank; what ``output`` was is still there.
    """
    edges, numbers = added.edges, added.numbers
    with together(comm):
        source = open_edges(graph.path, "hdf5", Asked())
        builder = CsrBuilder(
            comm, num_nodes=edges.num_nodes, weight_dtype=graph.weight_dtype, memory_limit=memory_limit,
            scratch=scratch, symmetric=graph.symmetric and edges.symmetric,
        )  # fmt: skip
        for sources, targets, weights in source.chunks(comm.rank, comm.size):
            if numbers is not None:
                sources, targets = numbers[sources], numbers[targets]
            builder.add(sources, targets, weights)
        sources = edges.first_node + np.repeat(np.arange(edges.indptr.size - 1), np.diff(edges.indptr))
        builder.add(sources, edges.targets, edges.weights)
        check_unchanged(graph.path, graph.stamp)
    edges_read, sums = comm.allreduce(source.edges_read), comm.allgather(source.sums)
    with together(comm):
        source.check_complete(edges_read, sums)
    slab, names = None, added.names
    if names is not None:
        own = names.packed(*share(edges.num_nodes, comm.rank, comm.size))
        slab = replace(slab_of(own, comm), whole=names.whole)
    return builder.write(output, graph.has_transpose, slab)
