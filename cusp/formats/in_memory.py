"""Graphs in memory as arrays of edges: SciPy matrices, NetworkX graphs, data frames, NumPy arrays, checked.

None of these libraries is imported here: a graph is recognized by the methods that it has.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cusp.errors import InputError
from cusp.names.dictionary import Dictionary

KINDS = (
    "a SciPy sparse matrix, a graph of NetworkX or igraph, a data frame or Arrow table with columns of sources, "
    "targets and perhaps weights, or a tuple of arrays (sources, targets) or (sources, targets, weights)"
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
    unused : list of str
        For each column or attribute of numbers that might be weights, but was not named: ``columns`` with it.
    """

    num_nodes: int | None
    both_ways: bool
    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    dictionary: Dictionary | None = None
    unused: list[str] = field(default_factory=list)

    @property
    def weight_dtype(self) -> np.dtype | None:
        """Type of the weights, if there are any."""
        return None if self.weights is None else self.weights.dtype


def edge_list_of(
    graph: Any, num_nodes: int | None = None, columns: list[str] | None = None, ids: str = "auto"
) -> EdgeList:
    """The edges of a graph of any known kind, checked.

    >>> edges = edge_list_of(([0, 1], [1, 2], [0.5, 2.0]))
    >>> edges.targets, edges.weight_dtype
    (array([1, 2]), dtype('float64'))

    Raises
    ------
    GraphError
        Not a graph; ids that are not integers, or too large; weights that are not numbers, or more or fewer than edges.
    """
    edges = _arrays_of(graph, columns, ids)
    _check_shapes(edges)
    if num_nodes is not None and edges.dictionary is not None:
        raise GraphError(f"num_nodes is {num_nodes:,}, but nodes have names, and are as many as names; leave it out")
    if num_nodes is not None and edges.num_nodes not in (None, num_nodes):
        raise GraphError(f"num_nodes is {num_nodes:,}, but the graph has {edges.num_nodes:,} nodes; leave it out")
    edges = replace(edges, num_nodes=edges.num_nodes if num_nodes is None else num_nodes)
    if edges.sources.size == 0:  # an empty list has become an array of floats
        nothing = np.empty(0, np.int64)
        edges = replace(edges, sources=nothing, targets=nothing)
    elif edges.num_nodes is not None or ids == "numbers":
        _check_ids(edges)
    if edges.weights is not None:
        return replace(edges, weights=_checked_weights(edges.weights, edges.sources.size))
    return edges


def is_networkx(graph: Any) -> bool:
    """Whether a graph is one of NetworkX, whose nodes have names."""
    return hasattr(graph, "is_directed") and hasattr(graph, "nodes")


def is_igraph(graph: Any) -> bool:
    """Whether a graph is one of igraph."""
    return hasattr(graph, "get_edgelist") and hasattr(graph, "es")


def node_list(graph: Any) -> list[Any] | None:
    """What a graph of NetworkX or igraph calls the nodes 0, 1, 2 ...; None if they have no names."""
    if is_networkx(graph):
        return list(graph.nodes)
    if not is_igraph(graph) or "name" not in graph.vs.attributes():
        return None
    if len(set(graph.vs["name"])) < graph.vcount():
        raise GraphError("two nodes have the same name in vs['name']; give each a name of its own, or delete them")
    return list(graph.vs["name"])


def _arrays_of(graph: Any, columns: list[str] | None, ids: str) -> EdgeList:
    if hasattr(graph, "tocoo"):
        return _matrix_edges(graph)
    if is_networkx(graph):
        return _networkx_edges(graph, columns)
    if is_igraph(graph):
        return _igraph_edges(graph, columns)
    if hasattr(graph, "collect_schema") and hasattr(graph, "collect"):  # lazy, of Polars
        return _arrays_of(graph.collect(), columns, ids)
    if hasattr(graph, "column_names"):  # of Arrow
        return _table_edges(graph, list(graph.column_names), columns, ids)
    if hasattr(graph, "__arrow_c_stream__") and not hasattr(graph, "to_numpy"):  # no data frame, but can become a table
        import pyarrow

        return _arrays_of(pyarrow.table(graph), columns, ids)
    if hasattr(graph, "columns"):
        return _table_edges(graph, list(graph.columns), columns, ids)
    if isinstance(graph, tuple) and len(graph) in (2, 3):
        return _edges_of(("sources", "targets", "weights"), list(graph), ids)
    raise GraphError(f"a graph in memory is {KINDS}; this is of type {type(graph).__name__}")


def _matrix_edges(graph: Any) -> EdgeList:
    if len(graph.shape) != 2 or graph.shape[0] != graph.shape[1]:
        raise GraphError(f"the matrix has the shape {graph.shape}; that of a graph has as many columns as rows")
    entries = graph.tocoo()
    weights = None if entries.dtype == np.bool_ else entries.data
    return EdgeList(int(graph.shape[0]), False, entries.row, entries.col, weights)


def _number_attributes(graph: Any) -> list[str]:
    """Attributes of the edges of a NetworkX graph that are numbers."""
    numbers = (name for *_, data in graph.edges(data=True) for name, value in data.items() if _is_number(value))
    return list(dict.fromkeys(numbers))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _networkx_edges(graph: Any, columns: list[str] | None) -> EdgeList:
    attribute = _attribute(columns, _number_attributes(graph) if columns else [])
    number = {name: place for place, name in enumerate(graph.nodes)}
    edges = list(graph.edges(data=attribute))
    sources = np.fromiter((number[edge[0]] for edge in edges), np.int64, len(edges))
    targets = np.fromiter((number[edge[1]] for edge in edges), np.int64, len(edges))
    weights = _weights([edge[2] for edge in edges])
    unused = _number_attributes(graph) if weights is None and not columns else []
    return EdgeList(len(number), not graph.is_directed(), sources, targets, weights, unused=unused)


def _igraph_edges(graph: Any, columns: list[str] | None) -> EdgeList:
    attribute = _attribute(columns, graph.es.attributes())
    ends = np.array(graph.get_edgelist(), np.int64).reshape(-1, 2).T
    weights = _weights(graph.es[attribute] if attribute in graph.es.attributes() else [])
    unused = [name for name in graph.es.attributes() if any(map(_is_number, graph.es[name]))] if weights is None else []
    return EdgeList(graph.vcount(), not graph.is_directed(), ends[0], ends[1], weights, unused=unused)


def _attribute(columns: list[str] | None, known: list[str]) -> str:
    """The attribute of edges that is their weight."""
    if columns and (len(columns) > 1 or columns[0] not in known):
        raise GraphError(
            f"columns {','.join(columns)}: of this graph, columns names the attribute of edges that is their weight; "
            f"there are {', '.join(known) or 'none'}"
        )
    return columns[0] if columns else "weight"


def _weights(values: list[Any]) -> np.ndarray | None:
    """Values of an attribute; 1 where only other edges have it."""
    if all(value is None for value in values):
        return None
    return np.array([1 if value is None else value for value in values])


def _table_edges(graph: Any, names: list[Any], columns: list[str] | None, ids: str) -> EdgeList:
    from cusp.formats.columns import choose_columns, unused_columns

    by_text = {str(name): name for name in names}
    chosen = choose_columns("the table", list(by_text), columns)
    edges = _edges_of(chosen, [graph[by_text[name]] for name in chosen], ids)
    if columns:
        return edges
    numbers = (name for name, column in by_text.items() if np.asarray(graph[column][:1]).dtype.kind in "iuf")
    return replace(edges, unused=unused_columns(chosen, numbers))


def _edges_of(names: tuple[str, ...], columns: list[Any], ids: str) -> EdgeList:
    """Columns of sources, targets and perhaps weights; names are numbered."""
    for name, column in zip(names, columns):
        if np.ma.is_masked(column):
            place = int(np.ma.getmaskarray(column).argmax())
            raise GraphError(f"{name}: entry {place:,} is masked; leave such edges out, or fill them in")
    weights = np.asarray(columns[2]) if len(columns) > 2 else None
    sources, targets = (np.asarray(column) for column in columns[:2])
    plain = not any(ids.dtype.kind in "OUT" or ids.dtype == np.uint64 for ids in (sources, targets))
    if plain or sources.ndim != 1 or targets.ndim != 1:
        return EdgeList(None, False, sources, targets, weights)
    from cusp.formats.source import WideIdsError

    try:
        return _arrow_edges(names, columns[:2], weights, ids)
    except WideIdsError:
        texts = [[str(name) for name in np.asarray(column).tolist()] for column in columns[:2]]
        return _arrow_edges(names, texts, weights, ids)


def _arrow_edges(names: tuple[str, ...], columns: list[Any], weights: np.ndarray | None, ids: str) -> EdgeList:
    from cusp.formats.columns import edges_of, has_names, is_numeric

    ends = [_arrow_of(name, column, ids) for name, column in zip(names, columns)]
    if len(ends[0]) != len(ends[1]):
        raise GraphError(f"there are {len(ends[0]):,} sources, but {len(ends[1]):,} targets")
    kinds = [end.type for end in ends]
    for name, end in zip(names, ends):
        if end.null_count:
            place = end.is_null().to_numpy(zero_copy_only=False).argmax()
            raise GraphError(f"{name}: that of edge {place:,} is missing (null or NaN)")
    numbers = all(map(is_numeric, kinds))
    dictionary = Dictionary() if not numbers and has_names("the table", names, kinds, ids) else None
    sources, targets, _ = edges_of("the table", names, ends, dictionary)
    return EdgeList(None, False, sources, targets, weights, dictionary)


def _arrow_of(name: str, column: Any, ids: str) -> Any:
    """A column of ids as an array of Arrow."""
    import pyarrow

    from cusp.formats.source import WideIdsError

    try:
        array = column if hasattr(column, "null_count") and hasattr(column, "type") else None
        if array is None and hasattr(column, "__arrow_c_stream__"):
            array = pyarrow.chunked_array(column)
        if array is None:
            array = pyarrow.array(column if hasattr(column, "__arrow_array__") else [*column], from_pandas=True)
    except (pyarrow.ArrowException, TypeError, OverflowError) as error:
        values = [*column]
        if all(isinstance(value, int) for value in values):
            raise WideIdsError(f"{name}: an id is beyond int64") from None
        if ids != "names":
            what = " ".join(str(error).split())
            raise GraphError(
                f"{name}: ids of several types, such as 1 and '1' ({what}); make all of them numbers, or all texts, or "
                "say with ids='names' that they are texts"
            ) from None
        array = pyarrow.array(map(str, values))
    array = array.combine_chunks() if isinstance(array, pyarrow.ChunkedArray) else array
    return array.dictionary_decode() if pyarrow.types.is_dictionary(array.type) else array


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
