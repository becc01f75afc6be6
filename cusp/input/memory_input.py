"""Graphs that are in memory already: SciPy matrices, NetworkX graphs, data frames and NumPy arrays, as slices.

None of these libraries is imported here: a graph is known by the methods that it has.
"""

import os
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cusp.errors import InputError, together
from cusp.input.checks import asymmetry
from cusp.input.checksum import as_bits, combine
from cusp.input.edge_slice import EdgeSlice
from cusp.runtime.devices import move, to_host, xp_of

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from cusp.edge_lists.csr_builder import CsrSlice

KINDS = (
    "a SciPy sparse matrix, a NetworkX graph, a data frame with the columns source, target and perhaps weight, or a "
    "tuple of arrays (sources, targets) or (sources, targets, weights)"
)


class GraphError(InputError):
    """A graph in memory that cannot be taken as it is."""


@dataclass(frozen=True)
class EdgeList:
    """A graph as arrays with an entry an edge.

    Attributes
    ----------
    num_nodes : int or None
        None: one more than the highest id.
    both_ways : bool
        Each edge stands for its reverse too.
    sources, targets : (edges,) any integer type
    weights : (edges,) any number type, or None
    """

    num_nodes: int | None
    both_ways: bool
    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None


def is_path(graph: Any) -> bool:
    """Whether a graph is given as the name of a file."""
    return isinstance(graph, (str, os.PathLike))


def named_everywhere(graph: Any, comm: "Intracomm") -> bool:
    """Whether the ranks give the name of a file; GraphError on every rank if only some do. Collective."""
    names = comm.allgather(is_path(graph))
    if any(names) and not all(names):
        raise GraphError(f"rank {names.index(True)} names a file, rank {names.index(False)} does not; name it on all")
    return all(names)


def slice_in_memory(
    graph: Any,
    comm: "Intracomm",
    *,
    num_nodes: int | None = None,
    symmetrize: bool = False,
    share: bool = False,
    weights: bool = True,
) -> EdgeSlice:
    """This rank's slice of a graph in memory. Collective.

    Whether the graph is symmetric is found out. Loops and parallel edges stay.

    Parameters
    ----------
    graph : matrix, NetworkX graph, data frame or tuple of arrays
        The same on every rank, or on rank 0 alone with None on the others. A SciPy sparse matrix has an edge
        row -> column for each stored entry, which weighs that much, or nothing if entries are bool. The nodes of a
        NetworkX graph are numbered in the order of ``graph.nodes``; edges weigh their attribute ``weight``, or 1
        if others have one; undirected ones stand for both directions. Data frames (pandas, Polars) have the
        columns ``source``, ``target`` and perhaps ``weight``.
    num_nodes : int, optional
        Of edge lists whose last nodes have no edges.
    symmetrize : bool
        Add the reverse, of the same weight, of every edge but loops.
    share : bool
        Every rank brings edges of its own, or None; the graph is all of them. For data frames and arrays.
    weights : bool
        Take the weights, if there are some.

    Raises
    ------
    GraphError
        On every rank: not a graph, ids that are no integers, negative or too large, weights that are not numbers or
        of another length, ranks that bring different graphs.
    """
    from cusp.edge_lists.csr_builder import CsrBuilder

    with together(comm):
        edges = None if graph is None else _checked(_edge_list(graph), num_nodes)
        if edges is not None and share and edges.num_nodes is not None and num_nodes is None:
            raise GraphError("share=True is for data frames and arrays: a matrix or NetworkX graph is whole")
        if edges is not None and not weights:
            edges = replace(edges, weights=None)
    known = comm.allgather(edges and (edges.num_nodes, edges.both_ways, edges.sources.size, _weight_type(edges)))
    with together(comm):
        given = [other for other in known if other is not None]
        _check_agreement(known, share)
        dtype = _common_type([kind for _, _, size, kind in given if size or not share])
        both_ways = symmetrize or given[0][1]
        builder = CsrBuilder(comm, num_nodes=given[0][0], weight_dtype=dtype, symmetrize=both_ways)
        if edges is not None:
            first, last = 0, edges.sources.size
            if not share and len(given) > 1:  # all have the same: each adds an even part
                first, last = last * comm.rank // comm.size, last * (comm.rank + 1) // comm.size
            values = None if dtype is None or edges.weights is None else edges.weights[first:last].astype(dtype)
            if last > first:
                builder.add(edges.sources[first:last], edges.targets[first:last], values)
    rows = slice_of_rows(builder.build(), comm)
    with together(comm):
        if rows.num_nodes == 0:
            raise GraphError("the graph has no nodes; give num_nodes, or edges")
    return rows


def node_names(graph: Any, comm: "Intracomm") -> list[Hashable] | None:
    """What a NetworkX graph calls the nodes 0, 1, 2 ...; None for other graphs. Collective."""
    names = list(graph.nodes) if _is_networkx(graph) else None
    have = comm.allgather(names is not None)
    return names if all(have) or not any(have) else comm.bcast(names, root=have.index(True))


def slice_of_rows(rows: "CsrSlice", comm: "Intracomm") -> EdgeSlice:
    """Rows that a builder has sorted, as the partitioner takes them. Collective."""
    bounds = np.array([*comm.allgather(rows.first_node), rows.num_nodes], np.int64)
    targets = as_bits(rows.indices)
    symmetric = rows.symmetric or combine(comm.allgather(int(asymmetry(rows.first_node, rows.indptr, targets)))) == 0
    graph = (rows.num_nodes, rows.num_edges, symmetric)
    return EdgeSlice(*graph, bounds, rows.first_node, rows.indptr, targets, rows.weights)


def with_in_degrees(rows: EdgeSlice, comm: "Intracomm") -> EdgeSlice:
    """The same with the in-degrees of its nodes, which no file has counted. Collective."""
    if rows.symmetric:
        return replace(rows, in_degrees=rows.indptr[1:] - rows.indptr[:-1])
    xp = xp_of(rows.device)
    mine = to_host(xp.bincount(rows.targets.astype(np.int64), minlength=rows.num_nodes))
    counted = np.empty(rows.indptr.size - 1, np.int64)
    comm.Reduce_scatter(mine, counted, np.diff(rows.bounds).tolist())
    return replace(rows, in_degrees=move(counted, rows.device))


def _is_networkx(graph: Any) -> bool:
    return hasattr(graph, "is_directed") and hasattr(graph, "nodes")


def _edge_list(graph: Any) -> EdgeList:
    """The edges of a graph of any kind that is known."""
    if hasattr(graph, "tocoo"):
        if len(graph.shape) != 2 or graph.shape[0] != graph.shape[1]:
            raise GraphError(f"the matrix has the shape {graph.shape}; that of a graph has as many columns as rows")
        entries = graph.tocoo()
        weights = None if entries.dtype == np.bool_ else entries.data
        return EdgeList(int(graph.shape[0]), False, entries.row, entries.col, weights)
    if _is_networkx(graph):
        return _networkx_edges(graph)
    if hasattr(graph, "columns"):
        missing = [name for name in ("source", "target") if name not in graph.columns]
        if missing:
            raise GraphError(
                f"the data frame has no column {missing[0]!r}, only {', '.join(map(str, graph.columns))}; "
                "name those of the ends of edges source and target, and that of weights weight"
            )
        weights = np.asarray(graph["weight"]) if "weight" in graph.columns else None
        return EdgeList(None, False, np.asarray(graph["source"]), np.asarray(graph["target"]), weights)
    if isinstance(graph, tuple) and len(graph) in (2, 3):
        arrays = [np.asarray(array) for array in graph]
        return EdgeList(None, False, arrays[0], arrays[1], arrays[2] if len(arrays) == 3 else None)
    raise GraphError(f"a graph in memory is {KINDS}; this is of type {type(graph).__name__}")


def _networkx_edges(graph: Any) -> EdgeList:
    number = {name: place for place, name in enumerate(graph.nodes)}
    edges = list(graph.edges(data="weight"))
    sources = np.fromiter((number[edge[0]] for edge in edges), np.int64, len(edges))
    targets = np.fromiter((number[edge[1]] for edge in edges), np.int64, len(edges))
    weights = [edge[2] for edge in edges]
    if all(weight is None for weight in weights):
        return EdgeList(len(number), not graph.is_directed(), sources, targets, None)
    filled = np.array([1 if weight is None else weight for weight in weights])
    return EdgeList(len(number), not graph.is_directed(), sources, targets, filled)


def _checked(edges: EdgeList, num_nodes: int | None) -> EdgeList:
    """The same with its number of nodes if it was given, once it is known that the arrays make a graph."""
    for name, ids in (("sources", edges.sources), ("targets", edges.targets)):
        if ids.ndim != 1 or (ids.dtype.kind not in "iu" and ids.size):
            raise GraphError(
                f"{name}: {ids.ndim} dimension(s) of {ids.dtype}; ids of nodes are integers in an array of one "
                "dimension, from 0 on (pandas.factorize numbers names)"
            )
    if edges.sources.size != edges.targets.size:
        raise GraphError(f"there are {edges.sources.size:,} sources, but {edges.targets.size:,} targets")
    if num_nodes is not None and edges.num_nodes not in (None, num_nodes):
        raise GraphError(f"num_nodes is {num_nodes:,}, but the graph has {edges.num_nodes:,} nodes; leave it out")
    edges = replace(edges, num_nodes=edges.num_nodes if num_nodes is None else num_nodes)
    if edges.sources.size == 0:  # an empty list has become an array of floats
        nothing = np.empty(0, np.int64)
        return replace(edges, sources=nothing, targets=nothing, weights=None if edges.weights is None else nothing)
    _check_ids(edges)
    if edges.weights is not None:
        return replace(edges, weights=_checked_weights(edges.weights, edges.sources.size))
    return edges


def _check_ids(edges: EdgeList) -> None:
    lowest = min(edges.sources.min(), edges.targets.min())
    highest = max(edges.sources.max(), edges.targets.max())
    if lowest < 0 or (edges.num_nodes is not None and highest >= edges.num_nodes):
        limit = np.inf if edges.num_nodes is None else edges.num_nodes
        wrong = [(ids < 0) | (ids >= limit) for ids in (edges.sources, edges.targets)]
        at = int(np.argmax(wrong[0] | wrong[1]))
        bound = "" if edges.num_nodes is None else f" to {edges.num_nodes - 1:,}"
        raise GraphError(
            f"edge {at:,} goes from node {edges.sources[at]} to node {edges.targets[at]}, but the ids of nodes are "
            f"0{bound or ' and above'}"
        )


def _checked_weights(weights: np.ndarray, num_edges: int) -> np.ndarray:
    """Weights of a type that graph files have too."""
    if weights.shape != (num_edges,):
        raise GraphError(f"the weights have the shape {weights.shape}, but there are {num_edges:,} edges")
    if weights.dtype == np.float16:
        weights = weights.astype(np.float32)
    if weights.dtype.kind not in "iuf" or weights.dtype.itemsize > 8:
        raise GraphError(f"weights of type {weights.dtype}; they are integers, float32 or float64")
    if weights.dtype.kind == "f" and np.isnan(weights).any():
        raise GraphError(f"the weight of edge {int(np.argmax(np.isnan(weights))):,} is not a number (NaN)")
    return weights.astype(weights.dtype.newbyteorder("="), copy=False)


def _weight_type(edges: EdgeList) -> np.dtype | None:
    return None if edges.weights is None else edges.weights.dtype


def _check_agreement(known: list[tuple | None], share: bool) -> None:
    """Raise unless the ranks that bring a graph bring the same, or may bring different ones."""
    given = {rank: other for rank, other in enumerate(known) if other is not None}
    if not given:
        raise GraphError("no rank brings a graph; give it on every rank, or on rank 0 and None on the others")
    first = min(given)
    for rank, other in given.items():
        if share and other[:2] != given[first][:2]:
            raise GraphError(f"ranks {first} and {rank} bring edges of {given[first][0]} and {other[0]} nodes")
        if not share and other != given[first]:
            raise GraphError(
                f"ranks {first} and {rank} bring different graphs ({given[first][2]:,} and {other[2]:,} edges); with "
                "share=True, each rank brings edges of its own"
            )
    if not share and len(given) not in (1, len(known)):
        raise GraphError(
            f"only the ranks {', '.join(map(str, given))} bring a graph; give it on every rank, or on one of them"
        )


def _common_type(kinds: list[np.dtype | None]) -> np.dtype | None:
    """The type that holds the weights of all ranks."""
    if len({kind is None for kind in kinds}) > 1:
        raise GraphError("some ranks bring edges with weights, others without")
    found = [kind for kind in kinds if kind is not None]
    return np.result_type(*found) if found else None
