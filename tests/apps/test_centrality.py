"""Eigenvector centrality, Katz centrality and HITS on hard graphs against linear algebra and NetworkX."""

from dataclasses import replace
from typing import Any

import graphs
import networkx as nx
import numpy as np
import parts
import pytest

from cusp.apps import eigenvector, hits, katz
from cusp.apps.shared.neighbour_sums import ConvergenceError
from cusp.apps.verify.check import VerificationError
from cusp.errors import GraphFileError

LIMITS = {"tolerance": 1e-6, "iterations": 90}
ALPHA = 0.004  # below 1 / the largest eigenvalue of each graph, with weights


def matrix(graph: graphs.Graph, weights: Any = 1.0) -> np.ndarray:
    """The adjacency matrix; entries of parallel edges are added up."""
    found = np.zeros((graph.num_nodes, graph.num_nodes))
    np.add.at(found, (graph.sources, graph.targets), weights)
    return found


def expected_eigenvector(links: np.ndarray) -> np.ndarray | None:
    """NetworkX's; None where it does not converge."""
    try:
        return np.array([*nx.eigenvector_centrality(
            nx.from_numpy_array(links, create_using=nx.DiGraph), LIMITS["iterations"], LIMITS["tolerance"] / len(links),
            weight="weight", backend="networkx",
        ).values()])  # fmt: skip
    except nx.PowerIterationFailedConvergence:
        return None


def expected_katz(links: np.ndarray, **options: Any) -> np.ndarray:
    """By linear equations."""
    found = np.linalg.solve(np.eye(len(links)) - ALPHA * links.T, np.full(len(links), options.get("beta", 1.0)))
    return found if "unnormalized" in options else found / np.linalg.norm(found)


def expected_hits(links: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """What the first singular vectors have of a vector of ones; None where others are nearly as large."""
    left, sizes, _ = np.linalg.svd(links)
    first = left[:, sizes >= sizes[0] * (1 - 1e-9)]
    if sizes[first.shape[1] : first.shape[1] + 1].max(initial=0) > sizes[0] * 0.9:
        return None
    hubs = first @ first.sum(axis=0)
    authorities = links.T @ hubs if links.any() else hubs
    return hubs / hubs.sum(), authorities / authorities.sum()


def run(app: Any, part: Any, **options: Any) -> list[np.ndarray]:
    """Run and verify; the labels of all nodes. Collective."""
    options, sync = parts.options_of(app.APP, **(LIMITS | options)), parts.make_sync(part)
    neighbours = app.APP.prepare(part, sync, options)
    answer = app.APP.run(part, sync, None, neighbours, options)
    app.APP.verify(part, sync, None, answer, neighbours, options)
    return [parts.gather(part, values) for values in answer.on_host().labels.values()]


def compare(part: Any, links: np.ndarray, **options: Any) -> None:
    """All three apps with linear algebra. Collective."""
    expected = expected_eigenvector(links)
    if expected is None:
        with pytest.raises(ConvergenceError, match="allow more --iterations, or a larger --tolerance"):
            run(eigenvector, part, **options)
    else:
        np.testing.assert_allclose(run(eigenvector, part, **options)[0], expected, atol=1e-5)
    for other in ({}, {"unnormalized": True, "beta": 3.0}):
        found = run(katz, part, alpha=ALPHA, **other, **options)[0]
        np.testing.assert_allclose(found, expected_katz(links, **other), rtol=1e-5)
    run(katz, part, **options)  # with an alpha of its own it converges
    both = expected_hits(links)
    if both is not None:
        np.testing.assert_allclose(run(hits, part, **options), both, atol=1e-5)


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_hard_graphs(comm, shared_tmp, name, policy):
    """By weight and without weights; loops and parallel edges count."""
    graph = graphs.HARD[name]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm, csc=True)
    compare(part, matrix(graph, graph.weights))
    compare(part, matrix(graph), unweighted=True)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("weight", "policy"),
    parts.share([("i8", "cvc"), ("f8", "oec"), ("u1", "mixed"), ("u8", "iec"), ("i8", "one_rank")]),
)
def test_symmetric(comm, shared_tmp, weight, policy):
    """Along the graph's own rows, unless weights depend on the direction; also such that are 0."""
    graph = graphs.both_ways(graphs.random_directed(40, 90, seed=3))
    graph = graph._replace(weights=np.random.default_rng(4).integers(0, 9, graph.num_edges))
    path = graphs.write(shared_tmp / "g.h5", graph, weight=weight, symmetric=True)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    assert part.csc is None
    compare(part, matrix(graph, graph.weights))
    compare(part, matrix(graph), unweighted=True)


@pytest.mark.mpi
def test_what_is_refused(comm, shared_tmp):
    """Values that grow without end, up to infinity, with what to change; weights below 0."""
    graph = graphs.random_directed()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm, csc=True)
    largest = abs(np.linalg.eigvals(matrix(graph, graph.weights))).max()
    for alpha, iterations in ((2 / largest, 100), (1e6, 1000)):
        growth = f"divide --alpha {alpha:g} by more than {alpha * largest:.3g}, by which changes grow in each"
        with pytest.raises(ConvergenceError, match=growth.replace("+", r"\+")):
            run(katz, part, alpha=alpha, iterations=iterations)
    for app in (eigenvector, hits):
        with pytest.raises(ConvergenceError, match="iteration 2 changes the values by .* allow more --iterations"):
            run(app, part, iterations=2)
    path = graphs.write(shared_tmp / "huge.h5", graph._replace(weights=graph.weights * 1e300), weight="f8")
    part = parts.partition_graph(path, parts.policy_of("oec"), comm, csc=True)
    with pytest.raises(ConvergenceError, match="changes the values by nan.* use smaller weights"):
        run(eigenvector, part)
    path = graphs.write(shared_tmp / "below.h5", graph._replace(weights=graph.weights - 5))
    part = parts.partition_graph(path, parts.policy_of("oec"), comm, csc=True)
    with pytest.raises(GraphFileError, match="has the weight -4; sums need finite weights of 0 or more"):
        run(eigenvector, part)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("app", "norm"), [(eigenvector, "the squares of the values is"), (katz, "the squares"), (hits, "the sum of the")]
)
def test_verifiers_find_wrong_values(comm, shared_tmp, app, norm):
    """Two values exchanged, one below 0, a norm that is not 1."""
    graph = graphs.random_directed()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm, csc=True)
    sync, options = parts.make_sync(part), parts.options_of(app.APP, alpha=ALPHA)
    neighbours = app.APP.prepare(part, sync, options)

    def exchange(found: np.ndarray) -> None:
        order = np.argsort(found)
        found[order[[0, -1]]] = found[order[[-1, 0]]]

    def negate(found: np.ndarray) -> None:
        found[: comm.rank == 0] *= -1

    answer = app.APP.run(part, sync, None, neighbours, options)
    for label in answer.labels:
        for message, change in (
            ("one more iteration changes the values by", exchange),
            (f"{label}: the value is not 0 or more at node", negate),
            (norm, lambda found: np.multiply(found, 1.001, out=found)),
        ):
            wrong = answer.on_host()
            wrong = wrong.labels | {label: wrong.labels[label].copy()}
            change(wrong[label])
            with pytest.raises(VerificationError, match=message):
                app.APP.verify(part, sync, None, replace(answer, labels=wrong), neighbours, options)


@pytest.mark.mpi
def test_katz_verifier_needs_its_own_share(comm, shared_tmp):
    """Values that are twice too large fit another ``beta``."""
    graph = graphs.HARD["path"]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("oec"), comm, csc=True)
    sync, options = parts.make_sync(part), parts.options_of(katz.APP, unnormalized=True)
    neighbours = katz.APP.prepare(part, sync, options)
    answer = katz.APP.run(part, sync, None, neighbours, options)
    options.beta = 2.0
    with pytest.raises(VerificationError, match="katz: one more iteration changes the values"):
        katz.APP.verify(part, sync, None, answer, neighbours, options)
