"""Questions to every app, with random options, each with an answer of another library or algorithm beside it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import graphs
import networkx
import numpy as np
from oracles import Oracle

from cusp.apps import library, semiring
from cusp.apps.run.function import function_of
from cusp.apps.run.partitioned_graph import PartitionedGraph
from cusp.apps.run.result import Result

Random = np.random.Generator


class Question(NamedTuple):
    """What an app is asked, and how its answer is looked at.

    Attributes
    ----------
    app, other : str
        What is compared with what.
    arguments, options
        Of the function of ``cusp.apps.library``.
    wrong : function (Result) -> str
        How the answer differs from the other one, or an empty text.
    """

    app: str
    other: str
    arguments: tuple[int, ...]
    options: dict[str, Any]
    wrong: Callable[[Result], str]

    def answer(self, part: PartitionedGraph, verify: bool) -> Result:
        """The answer of the app. Collective."""
        name = self.app.split()[0]
        function = SEMIRING if name == "semiring" else getattr(library, name)
        return function(part, *self.arguments, verify=verify, **self.options)

    def __str__(self) -> str:
        return f"{self.app} {self.arguments} {self.options}"


def ask_bfs(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    source, parents = int(random.integers(oracle.size)), bool(random.integers(2))
    options = {"direction": str(random.choice(["auto", "push", "pull"])), "parents": parents}

    def wrong(result: Result) -> str:
        tree = oracle.wrong_tree(source, result.hops, result.parents, hops=True) if parents else ""
        return differs(result.hops, graphs.serial_hops(oracle.graph, source)) or tree

    return Question("bfs" + " --parents" * parents, "a serial queue", (source,), options, wrong)


def ask_sssp(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    source = int(random.integers(oracle.size))
    delta = [None, 0.3, 1.0, 7.0, 1e9][random.integers(5)]
    return Question(
        "sssp", "Dijkstra with a heap", (source,), {"delta": delta},
        lambda result: differs(result.distance, graphs.serial_distances(oracle.graph, source)),
    )  # fmt: skip


def ask_widest(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    source = int(random.integers(oracle.size))
    return Question(
        "widest", "a heap of the widest", (source,), {},
        lambda result: differs(result.width, graphs.serial_widths(oracle.graph, source)),
    )  # fmt: skip


def ask_forest(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    roots = random.integers(0, oracle.size, random.integers(1, 5)).tolist()

    def wrong(result: Result) -> str:
        hops, lowest = oracle.forest(roots)
        return differs(result.hops, hops) or differs(result.root, lowest)

    return Question("forest", "a serial queue for each root", (), {"roots": roots}, wrong)


def ask_path(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    source, hops = int(random.integers(oracle.size)), bool(random.integers(2))

    def wrong(result: Result) -> str:
        expected = (graphs.serial_hops if hops else graphs.serial_distances)(oracle.graph, source)
        found = result.values["hops" if "hops" in result.values else "distance"]
        return differs(found, expected) or oracle.wrong_tree(source, found, result.parents, hops)

    other = "a serial queue" if hops else "Dijkstra with a heap"
    return Question("path" + " --hops" * hops, f"{other}, each parent looked at", (source,), {"hops": hops}, wrong)


def ask_cc(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    return Question("cc", "SciPy", (), {}, lambda result: differs(result.component, oracle.components("weak")))


def ask_scc(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    return Question("scc", "SciPy", (), {}, lambda result: differs(result.component, oracle.components("strong")))


def ask_kcore(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    k = [None, int(random.integers(1, 6))][random.integers(2)]

    def wrong(result: Result) -> str:
        cores = oracle.by_node(networkx.core_number(oracle.undirected))
        return differs(result.core, cores) if k is None else differs(result.in_core, cores >= k)

    return Question("kcore" + " --k" * (k is not None), "NetworkX", (), {"k": k}, wrong)


def ask_triangles(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    per_node = bool(random.integers(2))

    def wrong(result: Result) -> str:
        other = oracle.undirected
        at_node = oracle.by_node(networkx.triangles(other))
        found, expected = [result.figures["transitivity"]], [networkx.transitivity(other)]
        if result.figures["triangles"] * 3 != at_node.sum():
            return f"{result.figures['triangles']} triangles, expected {at_node.sum() // 3}"
        if per_node:
            found.append(result.figures["average_clustering"])
            expected.append(networkx.average_clustering(other))
            shares = oracle.by_node(networkx.clustering(other))
            return differs(result.node_triangles, at_node) or near(result.clustering, shares) or near(found, expected)
        return near(found, expected)

    return Question("triangles" + " --per-node" * per_node, "NetworkX", (), {"per_node": per_node}, wrong)


def ask_communities(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    algorithm, resolution = (
        str(random.choice(["louvain", "leiden", "label-propagation"])),
        [1.0, 0.5, 3.0][random.integers(3)],
    )
    options: dict[str, Any] = {"algorithm": algorithm, "resolution": resolution}

    def wrong(result: Result) -> str:
        names, other = np.unique(result.community), oracle.undirected
        groups = [set(np.flatnonzero(result.community == name).tolist()) for name in names]
        if [min(group) for group in groups] != names.tolist() or len(groups) != result.figures["communities"]:
            return f"communities {names[:8]} are not named by their smallest nodes"
        if not other.size(weight="weight"):
            return ""
        if algorithm == "leiden" and not all(networkx.is_connected(other.subgraph(group)) for group in groups):
            return "a community is disconnected"
        expected = networkx.community.modularity(other, groups, resolution=resolution)
        return near([result.figures["modularity"]], [expected])

    return Question(f"communities {algorithm}", "the modularity of NetworkX", (), options, wrong)


def ask_pagerank(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    damping = [0.85, 0.5, 0.99][random.integers(3)]
    starts = random.integers(0, oracle.size, 2).tolist() if random.integers(4) == 0 else None
    options: dict[str, Any] = {"damping": damping, "tolerance": 1e-10, "personalize": starts, "unweighted": True}
    way = int(random.integers(5))
    name, other, error = "pagerank", "NumPy, the equations solved", 1e-10 / (1 - damping) + 1e-12
    rounds = None
    if way == 0:
        options |= {"algorithm": "push-residual"}
        name = "pagerank push-residual"
    elif way == 1:
        options |= {"precision": "float32", "tolerance": 1e-5}
        name, error = "pagerank float32", 2e-5 / (1 - damping)
    elif way == 2:
        rounds = int(random.integers(1, 6))
        options |= {"tolerance": 0, "iterations": rounds}
        name, other, error = "pagerank --iterations", "NumPy, as many steps on a dense matrix", 1e-12
    elif way == 3 and starts is None:
        other = "NetworkX"

    def wrong(result: Result) -> str:
        solved = oracle.pagerank(damping, sorted(set(starts)) if starts else None, rounds)
        expected = oracle.pagerank_of_networkx(damping) if other == "NetworkX" else solved
        off = float(abs(result.pagerank - expected).sum())
        return "" if off <= error else f"the ranks are {off:.3g} off in all, more than {error:.3g}"

    return Question(name, other, (), options, wrong)


def ask_betweenness(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    normalized = bool(random.integers(2))
    options: dict[str, Any] = {"normalized": normalized}
    if oracle.size <= 40 and random.integers(2):
        sources, options["sources"] = list(range(oracle.size)), "all"
    else:
        sources = sorted(set(random.integers(0, oracle.size, 3).tolist()))
        options["source"] = sources
    simple = not oracle.has_parallel_edges
    if not simple and oracle.size > 60:
        return ask_kcore(random, oracle, symmetric)  # its definition takes too long

    def wrong(result: Result) -> str:
        scale = max((oracle.size - 1) * (oracle.size - 2), 1) if normalized else 2 if symmetric else 1
        return near(result.betweenness, oracle.betweenness(sources) / scale)

    other = "NetworkX" if simple else "all shortest paths, counted"
    return Question("betweenness", other, (), options, wrong)


def ask_semiring(random: Random, oracle: Oracle, symmetric: bool) -> Question:
    algorithm, source = str(random.choice(["bfs", "sssp", "pagerank"])), int(random.integers(oracle.size))
    options = {"algorithm": algorithm, "tolerance": 1e-10}

    def wrong(result: Result) -> str:
        if algorithm == "bfs":
            return differs(result.hops, graphs.serial_hops(oracle.graph, source))
        if algorithm == "sssp":
            return differs(result.distance, graphs.serial_distances(oracle.graph, source))
        return near(result.pagerank, oracle.pagerank(0.85, None, None))

    other = {"bfs": "a serial queue", "sssp": "Dijkstra with a heap", "pagerank": "NumPy, the equations solved"}
    return Question(f"semiring {algorithm}", other[algorithm], (source,), options, wrong)


def differs(found: np.ndarray, expected: np.ndarray) -> str:
    """Where two answers that must be equal are not."""
    places = np.flatnonzero(found != expected)[:4]
    return f"{found[places]} at {places}, expected {expected[places]}" if places.size else ""


def near(found: Any, expected: Any) -> str:
    """Where two answers are further apart than rounding makes them."""
    found, expected = np.asarray(found), np.asarray(expected)
    places = np.flatnonzero(~np.isclose(found, expected, rtol=1e-7, atol=1e-8))[:4]
    return f"{found[places]} at {places}, expected {expected[places]}" if places.size else ""


SEMIRING = function_of(semiring.APP)
ASKED = (
    ask_bfs, ask_bfs, ask_sssp, ask_widest, ask_forest, ask_path, ask_cc, ask_scc, ask_kcore, ask_triangles,
    ask_communities, ask_pagerank, ask_betweenness, ask_semiring,
)  # fmt: skip
