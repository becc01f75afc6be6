"""Random graphs, policies and options: answers beside those of NetworkX, SciPy and serial algorithms."""

from pathlib import Path

import graphs
import h5py
import networkx
import numpy as np
import scipy.sparse
from fuzz import programs
from fuzz.case import Case
from scipy.sparse import csgraph

POLICIES = ("oec", "iec", "cvc", "hvc", "fec", "gvc", "svc", "ldg", "dbh", "hdrf", "random", "random2d")
NAMES = ("bfs", "sssp", "cc", "scc", "pagerank", "kcore", "triangles", "betweenness")
COMPARED = {
    "bfs": "a serial queue", "sssp": "Dijkstra with a heap", "cc": "SciPy", "scc": "SciPy", "pagerank": "NetworkX",
    "kcore": "NetworkX", "triangles": "NetworkX", "betweenness": "NetworkX",
}  # fmt: skip


def make_case(random: np.random.Generator) -> Case:
    """A graph without a fault, an app, a policy."""
    nodes = int(random.integers(1, 60))
    graph = graphs.random_directed(nodes, int(random.integers(0, 4 * nodes)), int(random.integers(1 << 30)))
    if random.integers(2):
        graph = graphs.both_ways(graph)
    if random.integers(3) == 0:
        graph = graph._replace(weights=graph.weights * 0.25)
    name, policy = str(random.choice(NAMES)), str(random.choice(POLICIES))
    if name == "betweenness":  # NetworkX takes parallel edges for one
        graph = graphs.make(nodes, np.unique(np.stack([graph.sources, graph.targets], axis=1), axis=0))
    source = int(random.integers(nodes))
    more = ["--source", source] if name in ("bfs", "sssp") else ["--sources", nodes] if name == "betweenness" else []
    more += ["--tolerance", "1e-12"] if name == "pagerank" else []

    def make(folder: Path) -> None:
        graphs.write_here(folder / "g.h5", graph, weight=graph.weights.dtype)

    def run(folder: Path) -> int:
        path = folder / "g.h5"
        return programs.app(name, path, *more, "--policy", policy, "--verify", "--output", folder / "out.h5")

    def check(folder: Path) -> str:
        with h5py.File(folder / "out.h5") as file:
            answer = {key: file[key][...] for key in file}
        return compare(name, graph, source, answer)

    return Case(make, [(f"{name} {policy} {more}", lambda folder: None)], run, check)


def compare(name: str, graph: graphs.Graph, source: int, answer: dict[str, np.ndarray]) -> str:
    """What differs from the answer of another algorithm."""
    expected, found = expected_of(name, graph, source), next(iter(answer.values()))
    if name == "triangles":
        found = answer["triangles"]
    exact = found.dtype.kind != "f" or name == "sssp"
    same = np.array_equal(found, expected) if exact else np.allclose(found, expected, rtol=1e-7, atol=1e-9)
    return "" if same else f"{name} from {source}: {found[:8]}, expected {expected[:8]}"


def expected_of(name: str, graph: graphs.Graph, source: int) -> np.ndarray:
    """The answer of a library or a serial algorithm."""
    size = graph.num_nodes
    if name == "bfs":
        return graphs.serial_hops(graph, source)
    if name == "sssp":
        return graphs.serial_distances(graph, source)
    if name in ("cc", "scc"):
        ones = np.ones(graph.num_edges, np.int64)
        matrix = scipy.sparse.coo_matrix((ones, (graph.sources, graph.targets)), shape=(size, size))
        count, labels = csgraph.connected_components(matrix, connection="weak" if name == "cc" else "strong")
        smallest = np.full(count, size)
        np.minimum.at(smallest, labels, np.arange(size))
        return smallest[labels]
    directed = name in ("pagerank", "betweenness")
    other: networkx.Graph = (
        networkx.MultiDiGraph() if name == "pagerank" else networkx.DiGraph() if directed else networkx.Graph()
    )
    other.add_nodes_from(range(size))
    pairs = list(zip(graph.sources.tolist(), graph.targets.tolist()))
    other.add_edges_from(pairs if directed else [pair for pair in pairs if pair[0] != pair[1]])
    if name == "pagerank":
        found = networkx.pagerank(other, alpha=0.85, tol=1e-13, max_iter=10_000)
    elif name == "betweenness":
        found = networkx.betweenness_centrality(other, normalized=False)
    elif name == "kcore":
        found = networkx.core_number(other)
    else:
        found = networkx.triangles(other)
    return np.array([found[node] for node in range(size)])
