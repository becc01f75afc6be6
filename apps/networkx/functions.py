"""NetworkX's functions on divided graphs. Collective; parameters, results and errors are those of NetworkX."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import networkx
import numpy as np
from networkx.utils import create_py_random_state

from cusp.apps import library
from cusp.apps.networkx.graph import PartitionedNxGraph, node_of
from cusp.apps.operators.batches.search import WIDTH
from cusp.apps.shared.neighbour_sums import ConvergenceError
from cusp.errors import InputError

Graph = PartitionedNxGraph
SEEDS = 1 << 53
BELOW_1 = 1 - 1e-9  # the largest tolerance
PRODUCTS = 20  # of the matrix and a vector, in one iteration of ARPACK for one singular vector
STRATEGIES: dict[str, Any] = {"largest_first": "largest-first", "random_sequential": "random"}
PATHS = 8  # at first; twice as many whenever more are asked for
LEAST_CHANGE = 1e-14  # rounding changes ranks by nearly as much


def refusing(function: Callable) -> Callable:
    """The function; what an algorithm of ours refuses, such as weights below 0, is left to NetworkX."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except InputError as error:
            raise NotImplementedError(str(error)) from error

    return run


def _nearest_first(G: Graph, values: np.ndarray, reached: np.ndarray, cutoff: Any) -> dict:
    """What is reached, by ascending distance."""
    nodes = np.flatnonzero(reached if cutoff is None else reached & (values <= cutoff))
    nodes = nodes[np.argsort(values[nodes], kind="stable")]
    return dict(zip((G.names[node] for node in nodes.tolist()), values[nodes].tolist()))


def single_source_shortest_path_length(G: Graph, source: Any, cutoff: Any = None) -> dict:
    node_of(G, source, "Source {} is not in G")
    hops = library.bfs(G.weighted_by(None), source=G.numbers[source]).hops
    return _nearest_first(G, hops, hops >= 0, cutoff)


def single_source_dijkstra_path_length(G: Graph, source: Any, cutoff: Any = None, weight: Any = "weight") -> dict:
    node_of(G, source, "Node {} not found in graph")
    distance = library.sssp(G.weighted_by(weight), source=G.numbers[source]).distance
    reached = distance >= 0 if distance.dtype.kind == "i" else distance < np.inf
    return _nearest_first(G, distance, reached, cutoff)


def all_pairs_shortest_path_length(G: Graph, cutoff: Any = None) -> Iterator[tuple]:
    return _all_pairs(G, None, cutoff)


def all_pairs_dijkstra_path_length(G: Graph, cutoff: Any = None, weight: Any = "weight") -> Iterator[tuple]:
    return _all_pairs(G, weight, cutoff)


def _all_pairs(G: Graph, weight: Any, cutoff: Any) -> Iterator[tuple]:
    """Nodes with distances from them, found for as many at a time as a batch has."""
    _distances(G, weight, [0], [0])  # refuses weights here, not in the loop of the caller
    nodes = range(len(G))
    batches = (nodes[first : first + WIDTH] for first in nodes[::WIDTH])
    found = (
        (G.names[origin], row) for some in batches for origin, row in zip(some, _distances(G, weight, some, nodes))
    )
    return ((name, _nearest_first(G, row, (row >= 0) & (row < np.inf), cutoff)) for name, row in found)


def floyd_warshall_numpy(G: Graph, nodelist: Any = None, weight: Any = "weight") -> np.ndarray:
    nodes = [*G.names] if nodelist is None else [*nodelist]
    if len(nodes) != len(G) or {*nodes} != {*G.names}:
        raise networkx.NetworkXError(
            "nodelist must contain every node in G with no repeats."
            "If you wanted a subgraph of G use G.subgraph(nodelist)"
        )
    numbers = [G.numbers[node] for node in nodes]
    found = _distances(G, weight, numbers, numbers)
    return np.where(found < 0, np.inf, found)


def _distances(G: Graph, weight: Any, origins: Any, destinations: Any) -> np.ndarray:
    """(origins, destinations) distances, or hops without weights: -1 or inf where there is no path."""
    graph = G.weighted_by(weight)
    found = library.table(graph, origins=origins, destinations=destinations).table
    return found["hops" if graph.part.weights is None else "distance"]


def shortest_simple_paths(G: Graph, source: Any, target: Any, weight: Any = None) -> Iterator[list]:
    node_of(G, source, "source node {} not in graph")
    node_of(G, target, "target node {} not in graph")

    def first(k: int) -> list[list]:
        found = library.paths(G.weighted_by(weight), source=G.numbers[source], target=G.numbers[target], k=k)
        ends = np.flatnonzero(np.diff(found.number, append=-1)) + 1
        return [[G.names[node] for node in nodes.tolist()] for nodes in np.split(found.node, ends)[:-1]]

    def go_on(found: list[list], k: int) -> Iterator[list]:
        yield from found
        while len(found) == k:
            found, k = first(2 * k), 2 * k
            yield from found[k // 2 :]

    if not (found := first(PATHS)):
        raise networkx.NetworkXNoPath(f"No path between {source} and {target}.")
    return go_on(found, PATHS)


def shortest_path_length(
    G: Graph, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    node_of(G, source, "Source {} is not in G")
    if target is not None:
        node_of(G, target, "Target {} is not in G")
    found = (
        single_source_shortest_path_length(G, source)
        if weight is None
        else single_source_dijkstra_path_length(G, source, weight=weight)
    )
    if target is None:
        return found
    if target not in found:
        raise networkx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    return found[target]


def _components_by(algorithm: str) -> tuple[Callable, Callable, Callable]:
    """Functions that return components as sets of nodes, their number, and whether there is one."""

    def found(G: Graph) -> list[set]:
        return G.groups(getattr(library, algorithm)(G.weighted_by(None)).component)

    def components(G: Graph) -> Iterator[set]:
        yield from found(G)

    return components, lambda G: len(found(G)), lambda G: len(found(G)) == 1


connected_components, number_connected_components, is_connected = _components_by("cc")
weakly_connected_components, number_weakly_connected_components, is_weakly_connected = _components_by("cc")
strongly_connected_components, number_strongly_connected_components, is_strongly_connected = _components_by("scc")


def node_connected_component(G: Graph, n: Any) -> set:
    if n not in G:
        raise KeyError(n)
    return next(nodes for nodes in connected_components(G) if n in nodes)


def _refuse_loops(G: Graph) -> None:
    if G.loops:
        raise networkx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; Consider using "
            "G.remove_edges_from(nx.selfloop_edges(G))."
        )


def core_number(G: Graph) -> dict:
    _refuse_loops(G)
    return G.by_name(library.kcore(G.weighted_by(None)).core)


def _of_nodes(G: Graph, values: np.ndarray, nodes: Any) -> Any:
    """Values of all nodes, of one, or of those of several that are in the graph."""
    if nodes is None:
        return G.by_name(values)
    if nodes in G:
        return values[G.numbers[nodes]].item()
    return {node: values[G.numbers[node]].item() for node in nodes if node in G}


def triangles(G: Graph, nodes: Any = None) -> Any:
    return _of_nodes(G, _at_nodes(G)["node_triangles"], nodes)


def clustering(G: Graph, nodes: Any = None, weight: Any = None) -> Any:
    return _of_nodes(G, _at_nodes(G)["clustering"], nodes)


def average_clustering(G: Graph, nodes: Any = None, weight: Any = None, count_zeros: bool = True) -> float:
    values = list(_of_nodes(G, _at_nodes(G)["clustering"], nodes).values())
    values = values if count_zeros else [value for value in values if value]
    return sum(values) / len(values)


def transitivity(G: Graph) -> float:
    return float(library.triangles(G.weighted_by(None)).figures["transitivity"])


def _at_nodes(G: Graph) -> dict[str, np.ndarray]:
    return library.triangles(G.weighted_by(None), per_node=True).values


def pagerank(
    G: Graph, alpha: float = 0.85, personalization: dict | None = None, max_iter: int = 100, tol: float = 1e-6,
    nstart: Any = None, weight: Any = "weight", dangling: Any = None,
) -> dict:  # fmt: skip
    starts: Any = None
    if personalization is not None:
        starts = {G.numbers[node]: value for node, value in personalization.items() if node in G and value}
        if sum(starts.values()) == 0:
            raise ZeroDivisionError
    tolerance = min(max(len(G) * tol, LEAST_CHANGE), 1.0)
    found = library.pagerank(
        G.weighted_by(weight), damping=alpha, tolerance=tolerance, iterations=max_iter, personalize=starts
    )
    if found.figures["l1_change"] >= tolerance:
        raise networkx.PowerIterationFailedConvergence(max_iter)
    return G.by_name(found.pagerank)


@contextmanager
def _iterations(limit: int) -> Iterator[None]:
    """NetworkX's error for ours."""
    try:
        yield
    except ConvergenceError as error:
        raise networkx.PowerIterationFailedConvergence(limit) from error


def eigenvector_centrality(
    G: Graph, max_iter: int = 100, tol: float = 1e-6, nstart: Any = None, weight: Any = None
) -> dict:
    tolerance = min(len(G) * tol, BELOW_1)
    with _iterations(max_iter):
        found = library.eigenvector(G.weighted_by(weight), tolerance=tolerance, iterations=max_iter)
    return G.by_name(found.eigenvector)


def katz_centrality(
    G: Graph, alpha: float = 0.1, beta: float = 1.0, max_iter: int = 1000, tol: float = 1e-6, nstart: Any = None,
    normalized: bool = True, weight: Any = None,
) -> dict:  # fmt: skip
    with _iterations(max_iter):
        found = library.katz(
            G.weighted_by(weight), alpha=alpha, beta=beta, unnormalized=not normalized,
            tolerance=min(tol / beta, BELOW_1), iterations=max_iter,
        )  # fmt: skip
    return G.by_name(found.katz)


def hits(G: Graph, max_iter: int = 100, tol: float = 1e-8, nstart: Any = None, normalized: bool = True) -> tuple:
    with _iterations(max_iter):
        found = library.hits(G.weighted_by("weight"), tolerance=tol, iterations=PRODUCTS * max_iter)
    return G.by_name(found.hubs), G.by_name(found.authorities)


def betweenness_centrality(
    G: Graph, k: Any = None, normalized: bool = True, weight: Any = None, endpoints: bool = False, seed: Any = None
) -> dict:
    sums = _betweenness(G, weight).betweenness
    return G.by_name(sums * _scale(G, normalized, (len(G) - 1) * (len(G) - 2)))


def edge_betweenness_centrality(
    G: Graph, k: Any = None, normalized: bool = True, weight: Any = None, seed: Any = None
) -> dict:
    source, target, sums = _betweenness(G, weight, edges=True).edges.values()
    if not G.is_directed():
        source, target = np.minimum(source, target), np.maximum(source, target)
    edges, place = np.unique(source * len(G) + target, return_inverse=True)
    values = np.bincount(place, sums) * _scale(G, normalized, len(G) * (len(G) - 1))
    pairs = ((G.names[edge // len(G)], G.names[edge % len(G)]) for edge in edges.tolist())
    return dict(zip(pairs, values.tolist()))


def _betweenness(G: Graph, weight: Any, edges: bool = False) -> Any:
    graph = G.weighted_by(weight)
    return library.betweenness(graph, normalized=False, weighted=graph.part.weights is not None, edges=edges)


def _scale(G: Graph, normalized: bool, pairs: int) -> float:
    """Of what is not normalized: of symmetric graphs, it is half of the sums over all sources."""
    scale = 1 / max(pairs, 1) if normalized else 1 if G.is_directed() else 1 / 2
    return scale * (2 if G.weighted_by(None).part.symmetric else 1)


def closeness_centrality(G: Graph, u: Any = None, distance: Any = None, wf_improved: bool = True) -> Any:
    found = _closeness(G, distance)
    share = found.reaching / max(len(G) - 1, 1)  # of the others, those that lead to a node
    return _of_nodes(G, found.closeness if wf_improved else found.closeness / np.where(share > 0, share, 1), u)


def harmonic_centrality(G: Graph, nbunch: Any = None, distance: Any = None, sources: Any = None) -> dict:
    chosen = None if sources is None else [G.numbers[node] for node in _listed(G, sources)]
    values = np.zeros(len(G)) if chosen == [] else _closeness(G, distance, source=chosen).harmonic
    return {node: values[G.numbers[node]].item() for node in _listed(G, G.names if nbunch is None else nbunch)}


def _listed(G: Graph, nodes: Any) -> list:
    """One node, or those of several that are in the graph."""
    return [nodes] if nodes in G else [node for node in nodes if node in G]


def eccentricity(G: Graph, v: Any = None, sp: Any = None, weight: Any = None) -> Any:
    found = _closeness(G, weight)
    if found.reaching.min() < len(G) - 1:
        why = "digraph is not strongly connected" if G.is_directed() else "graph is not connected"
        raise networkx.NetworkXError(f"Found infinite path length because the {why}")
    weights = G.weighted_by(weight).part.weights
    whole = weights is None or weights.dtype.kind != "f"
    return _of_nodes(G, found.eccentricity.astype(np.int64) if whole else found.eccentricity, v)


def diameter(G: Graph, e: Any = None, usebounds: bool = False, weight: Any = None) -> Any:
    return max(eccentricity(G, weight=weight).values())


def radius(G: Graph, e: Any = None, usebounds: bool = False, weight: Any = None) -> Any:
    return min(eccentricity(G, weight=weight).values())


def _closeness(G: Graph, weight: Any, **options: Any) -> Any:
    graph = G.weighted_by(weight)
    return library.closeness(graph, weighted=graph.part.weights is not None, **options)


def louvain_communities(
    G: Graph, weight: Any = "weight", resolution: float = 1, threshold: float = 1e-7, max_level: Any = None,
    seed: Any = None,
) -> list[set]:  # fmt: skip
    return _communities(G, weight, "louvain", seed, resolution)


def leiden_communities(
    G: Graph, weight: Any = "weight", resolution: float = 1, max_level: Any = None, seed: Any = None
) -> list[set]:
    return _communities(G, weight, "leiden", seed, resolution)


def asyn_lpa_communities(G: Graph, weight: Any = None, seed: Any = None) -> Iterator[set]:
    return iter(_communities(G, weight, "label-propagation", seed))


def _spanning_edges(maximum: bool) -> Callable[..., Iterator[tuple]]:
    def spanning_edges(
        G: Graph, algorithm: str = "kruskal", weight: Any = "weight", keys: bool = True, data: bool = True,
        ignore_nan: bool = False,
    ) -> Iterator[tuple]:  # fmt: skip
        source, target, inside = library.msf(G.weighted_by(weight), maximum=maximum).edges.values()
        pairs = zip(source[inside == 1].tolist(), target[inside == 1].tolist())
        return ((G.names[one], G.names[other]) for one, other in pairs)

    return spanning_edges


minimum_spanning_edges, maximum_spanning_edges = _spanning_edges(maximum=False), _spanning_edges(maximum=True)


def jaccard_coefficient(G: Graph, ebunch: Any = None) -> Iterator[tuple]:
    if G.loops:
        raise NotImplementedError("edges that join a node with itself do not count here")
    pairs = [tuple(pair) for pair in ebunch]
    ends = [G.numbers[node_of(G, node, "Node {} not in G.")] for pair in pairs for node in pair]
    found = library.similarity(G.weighted_by(None), pairs=ends).edges if pairs else {}
    known = [found[name].tolist() for name in ("source", "target", "jaccard")] if found else [[]] * 3
    values = dict(zip(zip(*known[:2]), known[2]))
    return ((*pair, values[numbers]) for pair, numbers in zip(pairs, zip(ends[::2], ends[1::2])))


def k_truss(G: Graph, k: int) -> networkx.Graph:
    _refuse_loops(G)
    found = library.truss(G.weighted_by(None), k=max(int(np.ceil(k)), 1)).edges
    ends = zip(found["source"].tolist(), found["target"].tolist())
    pairs = [(G.names[one], G.names[other]) for one, other in ends]
    return networkx.Graph(pairs) if G.original is None else G.original.edge_subgraph(pairs).copy()


def greedy_color(G: Graph, strategy: Any = "largest_first", interchange: bool = False) -> dict:
    return G.by_name(library.coloring(G.weighted_by(None), strategy=STRATEGIES[strategy]).color)


def _communities(G: Graph, weight: Any, algorithm: Any, seed: Any, resolution: float = 1) -> list[set]:
    """With a seed drawn from what NetworkX makes of its own: an integer, a generator of numpy or Python, or None."""
    if G.loops:
        raise NotImplementedError("edges that join a node with itself do not count here")
    graph = G.weighted_by(weight)
    drawn = graph.comm.bcast(int(create_py_random_state(seed).randrange(SEEDS)))
    found = library.communities(graph, algorithm=algorithm, seed=drawn, resolution=resolution)
    return G.groups(found.community)
