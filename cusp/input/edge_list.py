"""Graphs in memory as arrays of edges: SciPy matrices, NetworkX graphs, data frames, NumPy arrays, checked.

None of these libraries is imported here: a graph is recognized by the methods that it has.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cusp.errors import InputError
from cusp.formats.columns import choose_columns
from cusp.names.dictionary import Dictionary
from cusp.names.packed import Packed

KINDS = (
    "a SciPy sparse matrix, a NetworkX graph, a data frame or Arrow table with columns of sources, targets and perhaps "
    "weights, or a tuple of arrays (sources, targets) or (sources, targets, weights)"
)


class GraphError(InputError):
    """A graph in memory that cannot be taken as it is."""


@dataclass(frozen=True)
class EdgeList:
    """A graph as arrays with one entry per edge.

    Attributes
    ----------
    num_nodes : int or None
        None: the largest id plus one.
    both_ways : bool
        Each edge stands for its reverse too.
    sources, targets : (edges,) any integer type
    weights : (edges,) any number type, or None
    dictionary : Dictionary or None
        Ids were names, which it has numbered; other ranks may have numbered them otherwise.
    """

    num_nodes: int | None
    both_ways: bool
    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    dictionary: Dictionary | None = None

    @property
    def weight_dtype(self) -> np.dtype | None:
        """Type of the weights, if there are any."""
        return None if self.weights is None else self.weights.dtype


def edge_list_of(graph: Any, num_nodes: int | None = None, columns: list[str] | None = None) -> EdgeList:
    """The edges of a graph of any known kind, checked.

    >>> edges = edge_list_of(([0, 1], [1, 2], [0.5, 2.0]))
    >>> edges.targets, edges.weight_dtype
    (array([1, 2]), dtype('float64'))

    Raises
    ------
    GraphError
        Not a graph; ids that are not integers, negative or too large; weights that are not numbers, or more or
        fewer than edges.
    """
    edges = _arrays_of(graph, columns)
    _check_shapes(edges)
    if num_nodes is not None and edges.dictionary is not None:
        raise GraphError(f"num_nodes is {num_nodes:,}, but nodes have names, and are as many as names; leave it out")
    if num_nodes is not None and edges.num_nodes not in (None, num_nodes):
        raise GraphError(f"num_nodes is {num_nodes:,}, but the graph has {edges.num_nodes:,} nodes; leave it out")
    edges = replace(edges, num_nodes=edges.num_nodes if num_nodes is None else num_nodes)
    if edges.sources.size == 0:  # an empty list has become an array of floats
        nothing = np.empty(0, np.int64)
        edges = replace(edges, sources=nothing, targets=nothing)
    else:
        _check_ids(edges)
    if edges.weights is not None:
        return replace(edges, weights=_checked_weights(edges.weights, edges.sources.size))
    return edges


def is_networkx(graph: Any) -> bool:
    """Whether a graph is one of NetworkX, whose nodes have names."""
    return hasattr(graph, "is_directed") and hasattr(graph, "nodes")


def _arrays_of(graph: Any, columns: list[str] | None) -> EdgeList:
    if hasattr(graph, "tocoo"):
        return _matrix_edges(graph)
    if is_networkx(graph):
        return _networkx_edges(graph)
    if hasattr(graph, "collect_schema") and hasattr(graph, "collect"):  # lazy, of Polars
        return _arrays_of(graph.collect(), columns)
    if hasattr(graph, "column_names"):  # of Arrow
        return _table_edges(graph, list(graph.column_names), columns)
    if hasattr(graph, "__arrow_c_stream__") and not hasattr(graph, "to_numpy"):  # no data frame, but can become a table
        import pyarrow

        return _arrays_of(pyarrow.table(graph), columns)
    if hasattr(graph, "columns"):
        return _table_edges(graph, list(graph.columns), columns)
    if isinstance(graph, tuple) and len(graph) in (2, 3):
        return _edges_of([np.asarray(array) for array in graph])
    raise GraphError(f"a graph in memory is {KINDS}; this is of type {type(graph).__name__}")


def _matrix_edges(graph: Any) -> EdgeList:
    if len(graph.shape) != 2 or graph.shape[0] != graph.shape[1]:
        raise GraphError(f"the matrix has the shape {graph.shape}; that of a graph has as many columns as rows")
    entries = graph.tocoo()
    weights = None if entries.dtype == np.bool_ else entries.data
    return EdgeList(int(graph.shape[0]), False, entries.row, entries.col, weights)


def _networkx_edges(graph: Any) -> EdgeList:
    number = {name: place for place, name in enumerate(graph.nodes)}
    edges = list(graph.edges(data="weight"))
    sources = np.fromiter((number[edge[0]] for edge in edges), np.int64, len(edges))
    targets = np.fromiter((number[edge[1]] for edge in edges), np.int64, len(edges))
    weights = None
    if any(edge[2] is not None for edge in edges):
        weights = np.array([1 if edge[2] is None else edge[2] for edge in edges])
    return EdgeList(len(number), not graph.is_directed(), sources, targets, weights)


def _table_edges(graph: Any, names: list[Any], columns: list[str] | None) -> EdgeList:
    by_text = {str(name): name for name in names}
    chosen = choose_columns("the table", list(by_text), columns)
    return _edges_of([np.asarray(graph[by_text[name]]) for name in chosen])


def _edges_of(arrays: list[np.ndarray]) -> EdgeList:
    """Arrays of sources, targets and perhaps weights; names are numbered."""
    sources, targets, weights = (*arrays, None)[:3]
    assert sources is not None and targets is not None
    if not any(ids.dtype.kind in "OUT" and ids.ndim == 1 for ids in (sources, targets)):
        return EdgeList(None, False, sources, targets, weights)
    names = [*sources.tolist(), *targets.tolist()]
    for name in names:
        if not isinstance(name, (str, int)) or name == "":
            raise GraphError(f"{name!r} is the id of a node; expected a text that is not empty, or a whole number")
    dictionary = Dictionary() if any(isinstance(name, str) for name in names) else None
    numbers = np.array(names) if dictionary is None else dictionary.number(Packed.of(map(str, names)))
    return EdgeList(None, False, numbers[: sources.size], numbers[sources.size :], weights, dictionary)


def _check_shapes(edges: EdgeList) -> None:
    for name, ids in (("sources", edges.sources), ("targets", edges.targets)):
        if ids.ndim == 1 and ids.dtype.kind == "f" and np.isnan(ids).any():
            raise GraphError(f"{name}: that of edge {int(np.isnan(ids).argmax()):,} is missing (null or NaN)")
        if ids.ndim != 1 or (ids.dtype.kind not in "iu" and ids.size):
            raise GraphError(
                f"{name}: {ids.ndim} dimension(s) of {ids.dtype}; ids of nodes are integers from 0 on, or names, in an "
                "array of one dimension"
            )
    if edges.sources.size != edges.targets.size:
        raise GraphError(f"there are {edges.sources.size:,} sources, but {edges.targets.size:,} targets")


def _check_ids(edges: EdgeList) -> None:
    lowest = min(edges.sources.min(), edges.targets.min())
    highest = max(edges.sources.max(), edges.targets.max())
    if lowest < 0 or (edges.num_nodes is not None and highest >= edges.num_nodes):
        limit = np.inf if edges.num_nodes is None else edges.num_nodes
        wrong = [(ids < 0) | (ids >= limit) for ids in (edges.sources, edges.targets)]
        at = int(np.argmax(wrong[0] | wrong[1]))
        bound = "0 and above" if edges.num_nodes is None else f"0 to {edges.num_nodes - 1:,}"
        raise GraphError(
            f"edge {at:,} goes from node {edges.sources[at]} to node {edges.targets[at]}, "
            f"but the ids of nodes are {bound}"
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
