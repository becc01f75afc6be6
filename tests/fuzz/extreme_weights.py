"""Questions about graphs whose weights are at the limits of their types: sums beyond 64 bits, squares that vanish."""

import heapq
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import graphs
import numpy as np
from fuzz.questions import Question, differs, near

from cusp.apps.run.result import Result
from cusp.errors import InputError

Random = np.random.Generator
LONGEST = 2**63 - 2  # the largest distance of whole numbers
VALUES = {
    "f8": (0.0, 5e-324, 1e-308, 1e-200, 1e-30, 1.0, 3.5, 1e16, 1e154, 1e200, 1e307, 1.7e308),
    "f4": (0.0, 1e-45, 1e-38, 1e-20, 1.0, 3.5, 1e20, 3e38),
    "i8": (0, 1, 2, 2**31 - 1, 2**31, 2**53 + 1, 2**61, 2**62, 2**63 - 2, 2**63 - 1),
    "u8": (0, 1, 2, 2**32 - 1, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1),
}


def make_graph(random: Random, kinds: tuple[str, ...] = ("i8", "f8", "u8")) -> graphs.Graph:
    """A graph of any shape with a few of these weights, mixed with others or not."""
    graph = graphs.of_any_shape(random)
    kind = str(random.choice(kinds))
    some = random.choice(np.array(VALUES[kind], kind), int(random.integers(1, 4)))
    weights = random.choice(some, graph.num_edges)
    if random.integers(3) == 0:
        small = random.integers(0, 20, graph.num_edges).astype(kind)
        weights = np.where(random.random(graph.num_edges) < 0.5, weights, small)
    pairs = np.stack([graph.sources, graph.targets], axis=1)
    both = set(zip(graph.targets.tolist(), graph.sources.tolist())) == set(map(tuple, pairs.tolist()))
    made = graphs.make(graph.num_nodes, pairs, weights)
    return graphs.both_ways(made) if both and random.integers(2) else made


def questions(random: Random, graph: graphs.Graph) -> Iterator[Question]:
    """What apps with weights are asked."""
    source = int(random.integers(graph.num_nodes))
    distances = exact_distances(graph, source)
    for app in "sssp", "path", "semiring sssp":
        options: dict[str, Any] = {"algorithm": "sssp"} if app.startswith("semiring") else {}
        yield Question(app, "Dijkstra with exact numbers", (source,), options, _distances_differ(app, distances))
    widths = graphs.serial_widths(graph._replace(weights=as_widths(graph.weights)), source)
    yield Question("widest", "a heap of the widest", (source,), {}, lambda result: differs(result.width, widths))
    for precision, error in ("float64", 1e-8), ("float32", 1e-3):
        yield Question(
            f"pagerank {precision}", "shares of each node, exact", (), {"precision": precision},
            lambda result, error=error: _ranks_differ(graph, result, error),
        )  # fmt: skip
    for algorithm in "louvain", "leiden", "label-propagation":
        yield Question(
            f"communities {algorithm}", "the modularity in fractions", (), {"algorithm": algorithm},
            lambda result: _modularity_differs(graph, result),
        )  # fmt: skip


def refused(app: str, graph: graphs.Graph, question: Question, error: InputError) -> str:
    """What is wrong with a refusal: nothing if the answer would not fit."""
    if app.split()[0] in ("sssp", "path", "semiring") and exact_distances(graph, question.arguments[0]) is None:
        return ""
    if app.startswith("communities") and any(weight > Fraction(float(np.finfo(float).max)) for weight in joined(graph)):
        return ""
    return f"refused: {error}"


def as_widths(weights: np.ndarray) -> np.ndarray:
    """Weights as the widths of edges: what int64 cannot hold counts as its largest number."""
    return weights.clip(None, np.uint64(2**63 - 1)).astype(np.int64) if weights.dtype == np.uint64 else weights


def exact_distances(graph: graphs.Graph, source: int) -> list[Any] | None:
    """Distances with the additions of the type, None for a node without a path; None if one does not fit."""
    real = graph.weights.dtype.kind == "f"
    limit = float(np.finfo(float).max) if real else LONGEST
    weights = [(float if real else int)(weight) for weight in graph.weights.tolist()]
    indptr, targets = graph.indptr.tolist(), graph.targets.tolist()
    distances: list[Any] = [None] * graph.num_nodes
    heap: list[tuple[Any, int]] = [(0.0 if real else 0, source)]
    while heap:
        distance, node = heapq.heappop(heap)
        if distances[node] is not None:
            continue
        if distance > limit:
            return None
        distances[node] = distance
        for edge in range(indptr[node], indptr[node + 1]):
            heapq.heappush(heap, (distance + weights[edge], targets[edge]))
    return distances


def _distances_differ(app: str, expected: list[Any] | None):  # type: ignore[no-untyped-def]
    def wrong(result: Result) -> str:
        if expected is None:
            return "a distance does not fit, but there is an answer"
        found = result.values.get("distance", result.values.get("hops"))
        assert found is not None
        far = np.inf if found.dtype.kind == "f" else -1
        return differs(found, np.array([far if each is None else each for each in expected], found.dtype))

    return wrong


def _ranks_differ(graph: graphs.Graph, result: Result, error: float) -> str:
    """Compare with the power method on the shares that each out-edge has of its source."""
    size, shares = graph.num_nodes, np.zeros((graph.num_nodes, graph.num_nodes))
    for node in range(size):
        row = slice(*graph.indptr[node : node + 2])
        weights = [Fraction(weight) for weight in graph.weights[row].tolist()]
        whole = sum(weights)
        for target, weight in zip(graph.targets[row].tolist(), weights if whole else ()):
            shares[node, target] += float(weight / whole)
    stuck, ranks = shares.sum(axis=1) == 0, np.full(size, 1 / size)
    for _ in range(200):
        ranks = 0.85 * (ranks @ shares + ranks[stuck].sum() / size) + 0.15 / size
    off = float(abs(result.pagerank - ranks).sum())
    return "" if off <= 1e-5 + error else f"the ranks are {off:.3g} off in all"


def joined(graph: graphs.Graph) -> list[Fraction]:
    """The weights between every two nodes, in both directions, added up."""
    return [*_joined(graph).values()]


def _joined(graph: graphs.Graph) -> dict[tuple[int, int], Fraction]:
    sums: dict[tuple[int, int], Fraction] = {}
    for source, target, weight in graph.triples():
        if source != target:
            ends = min(source, target), max(source, target)
            sums[ends] = sums.get(ends, Fraction(0)) + Fraction(weight)
    return sums


def _modularity_differs(graph: graphs.Graph, result: Result) -> str:
    edges, community = _joined(graph), result.community.tolist()
    whole = 2 * sum(edges.values())
    if not whole:
        return near([result.figures["modularity"]], [0.0])
    totals: dict[int, Fraction] = {}
    for ends, weight in edges.items():
        for node in ends:
            totals[community[node]] = totals.get(community[node], Fraction(0)) + weight
    inside = sum(2 * weight for (one, other), weight in edges.items() if community[one] == community[other])
    expected = inside / whole - sum((total / whole) ** 2 for total in totals.values())
    return near([result.figures["modularity"]], [float(expected)])
