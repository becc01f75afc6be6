"""The backend's graph: that of NetworkX, partitioned across the ranks, with the names of its nodes."""

from collections.abc import Hashable, Iterable
from functools import cached_property
from itertools import chain
from typing import Any

import networkx
import numpy as np

from cusp.apps.library import partition_graph
from cusp.apps.run.partitioned_graph import PartitionedGraph
from cusp.runtime.timeline import Stopwatch

EXACT = 1 << 53  # what a float holds of whole numbers


class PartitionedNxGraph:
    """A graph of NetworkX that is partitioned across the ranks.

    Attributes
    ----------
    names : list
        What the nodes 0, 1, 2 ... are called.
    attribute : str or None
        That of edges which became their weights.
    loops : bool
        Some edge joins a node with itself.
    original : networkx.Graph or None
        What this was made of, for results with its attributes, if these were asked for.
    """

    __networkx_backend__ = "cusp"

    def __init__(self, graph: Any, attribute: Any, default: Any, original: Any = None) -> None:
        self.names, self.attribute, self.original = list(graph), attribute, original
        self._kind = graph.is_directed(), graph.is_multigraph()
        arrays = edges_of(graph, attribute, default)
        self.loops = bool((arrays[0] == arrays[1]).any())
        self._weighted = partition_graph(arrays, num_nodes=len(self.names))

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self._kind[0]

    def is_multigraph(self) -> bool:
        """Whether edges may be parallel."""
        return self._kind[1]

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self.numbers
        except TypeError:  # of no type that a node can have
            return False

    @cached_property
    def numbers(self) -> dict[Hashable, int]:
        """The places of ``names``."""
        return {name: number for number, name in enumerate(self.names)}

    def weighted_by(self, attribute: Any) -> PartitionedGraph:
        """The divided graph with the weights that a function asks for, or without.

        Raises
        ------
        NotImplementedError
            It was divided with another attribute.
        """
        if attribute is None:
            return self._unweighted
        if self.original is not None:  # kept for a function that needs all attributes, and used for another one
            return PartitionedNxGraph(self.original, attribute, 1)._weighted
        if attribute != self.attribute:
            raise NotImplementedError(f"the graph was converted with the weights {self.attribute!r}, not {attribute!r}")
        return self._weighted

    @cached_property
    def _unweighted(self) -> PartitionedGraph:
        given = self._weighted
        if given.part.weights is None:
            return given
        part = given.part.without_weights()
        return PartitionedGraph(part, given.comm, given.policy, None, given.plan.transport, Stopwatch())

    def by_name(self, values: np.ndarray) -> dict:
        """(nodes,) values as a dictionary."""
        return dict(zip(self.names, values.tolist()))

    def groups(self, group: np.ndarray) -> list[set]:
        """The sets of nodes that have the same number in ``group``, (nodes,) int64, by ascending number."""
        order = np.argsort(group, kind="stable")
        bounds = np.flatnonzero(np.diff(group[order])) + 1
        return [{self.names[node] for node in nodes.tolist()} for nodes in np.split(order, bounds)]


def edges_of(graph: Any, attribute: Any, default: Any) -> tuple[np.ndarray, ...]:
    """Sources and targets of all edges, undirected ones both ways, and their weights unless they are all 1.

    Raises
    ------
    NotImplementedError
        Weights that are no numbers of 64 bits, or not finite.
    """
    rows = list(graph.adjacency())
    if graph.is_multigraph():
        degrees = [sum(map(len, row.values())) for _, row in rows]
        ends = chain.from_iterable([node] * len(parallel) for _, row in rows for node, parallel in row.items())
        data: Iterable[dict] = (edge for _, row in rows for parallel in row.values() for edge in parallel.values())
    else:
        degrees = [len(row) for _, row in rows]
        ends = chain.from_iterable(row for _, row in rows)
        data = (edge for _, row in rows for edge in row.values())
    number = {name: place for place, (name, _) in enumerate(rows)}
    sources = np.repeat(np.arange(len(rows)), degrees)
    targets = np.fromiter(map(number.__getitem__, ends), np.int64, sources.size)
    if attribute is None:
        return sources, targets
    given = [edge.get(attribute, default) for edge in data]
    weights = np.array(given)
    if weights.dtype.kind == "b":
        weights = weights.astype(np.int64)
    integers = (int(each) for each in given if isinstance(each, int | np.integer))
    whole = weights.dtype.kind == "i" or all(abs(each) <= EXACT for each in integers)
    if weights.dtype.kind not in "if" or not whole or not np.isfinite(weights).all():
        raise NotImplementedError(f"weights {attribute!r} of edges are not all finite numbers of at most 64 bits")
    return (sources, targets) if (weights == 1).all() else (sources, targets, weights)


def convert_from_nx(
    graph: Any, edge_attrs: dict | None = None, preserve_edge_attrs: bool = False, preserve_node_attrs: bool = False,
    **_: Any,
) -> PartitionedNxGraph:  # fmt: skip
    """Partition a graph across the ranks. Collective: all of them give the same.

    Raises
    ------
    NotImplementedError
        More than one attribute of edges is wanted, or one that is not a number.
    """
    wanted = list((edge_attrs or {}).items())
    if preserve_edge_attrs and preserve_node_attrs:
        return PartitionedNxGraph(graph, None, None, graph)
    if preserve_edge_attrs or len(wanted) > 1:
        raise NotImplementedError("edges have one attribute at most, their weight")
    return PartitionedNxGraph(graph, *(wanted[0] if wanted else (None, None)))


def convert_to_nx(result: Any, **_: Any) -> Any:
    """A result as NetworkX has it; results are dictionaries, sets and numbers already.

    Raises
    ------
    NotImplementedError
        A divided graph: its attributes stayed with the graph that it was made of.
    """
    if isinstance(result, PartitionedNxGraph):
        raise NotImplementedError("a divided graph does not become one of NetworkX again; keep the one that you had")
    return result


def node_of(graph: PartitionedNxGraph, node: Any, text: str) -> Any:
    """A node, if it is one of the graph, else NetworkX's error."""
    if node not in graph:
        raise networkx.NodeNotFound(text.format(node))
    return node
