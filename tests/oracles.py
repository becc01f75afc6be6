"""Answers about a graph by other libraries and serial algorithms, and what is wrong with an answer of ours."""

from collections.abc import Sequence
from functools import cached_property

import graphs
import networkx
import numpy as np
import scipy.sparse
from scipy.sparse import csgraph

Values = np.ndarray


class Oracle:
    """What others say about one graph; the forms that they need are made once.

    Parameters
    ----------
    graph : Graph
    weighted : bool
        Whether its weights are known; else all are 1.
    """

    def __init__(self, graph: graphs.Graph, weighted: bool) -> None:
        self.graph = graph if weighted else graph._replace(weights=np.ones(graph.num_edges, np.int64))
        self.size, self.weighted = graph.num_nodes, weighted
        self.pairs = list(zip(graph.sources.tolist(), graph.targets.tolist()))

    @cached_property
    def undirected(self) -> networkx.Graph:
        """Without directions and loops; parallel edges are one, with the sum of their weights if they have some."""
        made = networkx.Graph()
        made.add_nodes_from(range(self.size))
        for (source, target), weight in zip(self.pairs, self.graph.weights.tolist()):
            if source != target:
                before = made.get_edge_data(source, target, {"weight": 0})["weight"]
                made.add_edge(source, target, weight=before + weight if self.weighted else 1)
        return made

    @cached_property
    def shortest(self) -> dict[tuple[int, int], float]:
        """The least weight of an edge between two nodes."""
        found: dict[tuple[int, int], float] = {}
        for pair, weight in zip(self.pairs, self.graph.weights.astype(np.float64).tolist()):
            found[pair] = min(weight, found.get(pair, weight))
        return found

    def forest(self, roots: Sequence[int]) -> tuple[Values, Values]:
        """Hops to the nearest root, and the lowest of the nearest ones, by a queue for each root."""
        hops = np.stack([graphs.serial_hops(self.graph, root) for root in roots]).astype(np.int64)
        hops[hops < 0] = self.size
        nearest = hops.min(axis=0)
        lowest = np.where(hops == nearest, np.array(roots)[:, None], self.size).min(axis=0)
        return np.where(nearest < self.size, nearest, -1), np.where(nearest < self.size, lowest, -1)

    def components(self, connection: str) -> Values:
        """The smallest node of each component, ``weak`` or ``strong``, by SciPy."""
        ones = np.ones(self.graph.num_edges, np.int64)
        matrix = scipy.sparse.coo_matrix((ones, (self.graph.sources, self.graph.targets)), shape=(self.size, self.size))
        count, labels = csgraph.connected_components(matrix, connection=connection)
        smallest = np.full(count, self.size)
        np.minimum.at(smallest, labels, np.arange(self.size))
        return smallest[labels]

    def by_node(self, found: dict[int, float]) -> Values:
        """An answer of NetworkX in the order of nodes."""
        return np.array([found[node] for node in range(self.size)])

    def pagerank(self, damping: float, starts: Sequence[int] | None, rounds: int | None) -> Values:
        """Ranks by solving the linear equations, or after so many steps of the power method on a dense matrix."""
        steps = np.zeros((self.size, self.size))
        np.add.at(steps, (self.graph.targets, self.graph.sources), 1.0)
        teleport = np.zeros(self.size)
        teleport[list(starts or range(self.size))] = 1 / len(starts or range(self.size))
        ends = self.graph.degrees == 0
        steps /= np.maximum(self.graph.degrees, 1)
        steps[:, ends] = teleport[:, None]
        if rounds is None:
            return np.linalg.solve(np.eye(self.size) - damping * steps, (1 - damping) * teleport)
        ranks = teleport
        for _ in range(rounds):
            ranks = damping * (steps @ ranks) + (1 - damping) * teleport
        return ranks

    def pagerank_of_networkx(self, damping: float) -> Values:
        """Ranks by NetworkX, parallel edges and loops counted."""
        made = networkx.MultiDiGraph()
        made.add_nodes_from(range(self.size))
        made.add_edges_from(self.pairs)
        return self.by_node(networkx.pagerank(made, alpha=damping, tol=1e-13, max_iter=10_000))

    @cached_property
    def has_parallel_edges(self) -> bool:
        """Whether two edges lead from one node to one other."""
        return len(set(self.pairs)) < len(self.pairs)

    def betweenness(self, sources: Sequence[int]) -> Values:
        """Shares of the shortest paths from some nodes, not scaled: by NetworkX; by definition with parallel edges."""
        if self.has_parallel_edges:
            return shares_of_paths(self.graph, sources)
        made = networkx.DiGraph()
        made.add_nodes_from(range(self.size))
        made.add_edges_from(self.pairs)
        return self.by_node(networkx.betweenness_centrality_subset(made, sources, range(self.size)))

    def wrong_tree(self, source: int, lengths: Values, parents: Values, hops: bool) -> str:
        """What keeps ``parents`` from being the last steps of shortest paths of these ``lengths``."""
        reached = np.isfinite(lengths) & (lengths >= 0)
        if not np.array_equal(parents >= 0, reached):
            return "parents and lengths name different nodes as reached"
        if parents[source] != source:
            return f"the parent of the source is {parents[source]}"
        good = {source}
        for node in np.flatnonzero(reached).tolist():
            trail: list[int] = []
            while node not in good:
                before = int(parents[node])
                length = self.shortest.get((before, node))
                if length is None or lengths[before] + (1 if hops else length) != lengths[node]:
                    return f"no shortest path to {node} leads through {before}"
                trail.append(node)
                if len(trail) > self.size:
                    return f"the parents of {node} go in a circle"
                node = before
            good.update(trail)
        return ""


def shares_of_paths(graph: graphs.Graph, sources: Sequence[int]) -> Values:
    """By definition: the shares of shortest paths from a source to a target that lead through each other node."""
    size = graph.num_nodes
    edges = np.zeros((size, size))
    np.add.at(edges, (graph.sources, graph.targets), 1.0)
    hops, paths, walks = np.full((size, size), np.inf), np.eye(size), np.eye(size)
    np.fill_diagonal(hops, 0)
    for length in range(1, size):
        walks = walks @ edges
        new = np.isinf(hops) & (walks > 0)
        hops[new], paths[new] = length, walks[new]
        walks = np.where(hops == length, walks, 0)
    found = np.zeros(size)
    for source in sources:
        for target in np.flatnonzero(np.isfinite(hops[source])):
            on = hops[source] + hops[:, target] == hops[source, target]
            on[[source, target]] = False
            found[on] += paths[source][on] * paths[:, target][on] / paths[source, target]
    return found
