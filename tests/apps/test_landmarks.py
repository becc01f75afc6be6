"""Bounds of distances by landmarks: against serial searches, from every landmark and for every pair."""

from argparse import Namespace

import graphs
import numpy as np
import pandas
import parts
import pytest

from cusp import partition_graph
from cusp.apps import library
from cusp.apps.harness import main
from cusp.apps.shared.landmarks import farthest, with_most_edges
from cusp.apps.shared.lengths import measure
from cusp.apps.table import APP, estimate, prepare
from cusp.apps.verify.check import VerificationError
from cusp.errors import GraphFileError, OptionError

STRATEGIES = ("degree", "farthest")


def distances_of(graph: graphs.Graph, hops: bool) -> np.ndarray:
    """(nodes, nodes): serial searches from every node, inf where there is no path."""
    search = graphs.serial_hops if hops else graphs.serial_distances
    rows = np.array([search(graph, node) for node in range(graph.num_nodes)], np.float64)
    return np.where(rows < 0, np.inf, rows)


def bounds_of(exact: np.ndarray, u: int, v: int, landmarks: list[int], shortest: int) -> tuple[float, float]:
    """Bounds of one distance, by what triangles say in words."""
    if u == v:
        return 0.0, 0.0
    lower, upper = float(shortest), np.inf
    for node in landmarks:
        upper = min(upper, exact[u, node] + exact[node, v])
        for longer, shorter in ((exact[node, v], exact[node, u]), (exact[u, node], exact[v, node])):
            if shorter < np.inf:
                lower = max(lower, longer - shorter)
    return min(lower, upper), upper


def landmarks_of(part, strategy: str, k: int, seed: int = 1) -> list[int]:
    """Those that a table takes. Collective."""
    sync = parts.make_sync(part)
    if strategy == "degree":
        return with_most_edges(part, sync, k, seed)
    return farthest(part, sync, measure(part, sync), k, seed, np.arange(1))[0]


def bound(part, origins: list[int], destinations: list[int], k: int, strategy: str, hops: bool):
    """Run and verify; the table of the answer. Collective."""
    options = Namespace(
        origins=origins, destinations=destinations, hops=hops, landmarks=k, strategy=strategy, seed=1
    )  # fmt: skip
    sync = parts.make_sync(part)
    wanted = prepare(part, sync, options)
    answer = estimate(sync, wanted, options)
    APP.check(part, sync, None, answer, wanted, options)
    lower, upper = answer.table["lower"], answer.table["upper"]
    assert answer.figures["exact"] == (lower == upper).sum()
    return tuple(np.where(each < 0, np.inf, each) for each in (lower, upper))


def check(part, graph: graphs.Graph, k: int, strategy: str, hops: bool) -> None:
    """Bounds from some nodes to all, exactly those of the landmarks that were chosen, and right. Collective."""
    size, all_exact = graph.num_nodes, distances_of(graph, hops)
    origins, destinations = [size // 2, 0, size - 1, size // 3, 0], list(range(size))[::-1]
    lower, upper = bound(part, origins, destinations, k, strategy, hops)
    landmarks = landmarks_of(part.without_weights() if hops else part, strategy, k)
    assert len({*landmarks}) == k
    expected = [[bounds_of(all_exact, u, v, landmarks, int(hops)) for v in destinations] for u in origins]
    np.testing.assert_allclose(np.stack([lower, upper], axis=-1), expected, rtol=1e-12, atol=1e-12)
    exact = all_exact[np.ix_(origins, destinations)]
    assert (lower <= exact * (1 + 1e-12)).all() and (exact <= upper * (1 + 1e-12)).all()


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_bounds(comm, shared_tmp, name, policy):
    """Hard graphs: by both strategies, by hops and weights."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=name in graphs.SYMMETRIC)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    for strategy in STRATEGIES:
        for hops in (False, True):
            check(part, graph, min(3, graph.num_nodes), strategy, hops)


@pytest.mark.mpi
@pytest.mark.parametrize(("small", "symmetric"), parts.share([(0, False), (1 << 23, False), (0, True)]))
def test_floats(comm, shared_tmp, monkeypatch, small, symmetric):
    """Weights that are rounded; searches back in copies of the graph, or together."""
    monkeypatch.setattr("cusp.apps.shared.graphs.whole_graph.SMALL", small)
    graph = graphs.random_directed(70, 200, seed=5)
    graph = graph._replace(weights=graph.weights / 7)
    graph = graphs.both_ways(graph) if symmetric else graph
    path = graphs.write(shared_tmp / "g.h5", graph, weight=np.float64, symmetric=symmetric)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm)
    for strategy in STRATEGIES:
        check(part, graph, 5, strategy, False)


@pytest.mark.mpi
def test_choices(comm, shared_tmp):
    """Products of degrees descend, each landmark is farthest from those before, and the seed decides between equals."""
    graph = graphs.random_directed(40, 120, seed=3)
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("hvc-2"), comm)
    products, exact = graph.degrees * np.bincount(graph.targets, minlength=40), distances_of(graph, False)
    found = landmarks_of(part, "degree", 20)
    assert (products[found] == np.sort(products)[::-1][:20]).all()
    far = landmarks_of(part, "farthest", 6)
    assert far[0] == found[0]
    for place in range(1, 6):
        nearest = exact[far[:place]].min(axis=0)
        assert nearest[far[place]] == nearest[nearest < np.inf].max()
    for strategy in STRATEGIES:
        first, other = landmarks_of(part, strategy, 40), landmarks_of(part, strategy, 40, seed=2)
        assert first != other and sorted(first) == list(range(40))


@pytest.mark.mpi
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_exact(comm, shared_tmp, strategy):
    """Upper bounds are exact if a landmark is on the path, the middle of a star; both, if it is an end."""
    graph = graphs.both_ways(graphs.make(12, [(7, v) for v in range(12) if v != 7]))
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("oec"), comm)
    nodes, exact = list(range(12)), distances_of(graph, False)
    lower, upper = bound(part, nodes, nodes, 1, strategy, False)
    assert (upper == exact).all() and (lower < exact).any()
    assert (lower[7] == exact[7]).all() and (lower[:, 7] == exact[:, 7]).all()
    lower, upper = bound(part, nodes, nodes, 12, strategy, False)
    assert (lower == exact).all() and (upper == exact).all()


@pytest.mark.mpi
@pytest.mark.parametrize("hops", [False, True])
def test_no_path(comm, shared_tmp, hops):
    """On a path of one direction, a landmark proves that none leads back past it, and leaves open all other pairs."""
    graph = graphs.HARD["path"]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm)
    (middle,), nodes = landmarks_of(part, "degree", 1), np.arange(30)
    lower, upper = bound(part, nodes.tolist(), nodes.tolist(), 1, "degree", hops)
    u, v = np.ix_(nodes, nodes)
    assert ((lower == np.inf) == (v < u) & (v <= middle) & (middle <= u)).all()
    assert ((upper == np.inf) == ((u > middle) | (v < middle)) & (u != v)).all()


@pytest.mark.mpi
def test_large_numbers(comm, shared_tmp):
    """Of a sum that is too large for int64, nothing is known; other large numbers are right, also as floats."""
    for weights, lower, upper in (
        ([2**62 + 5, 2**62], [5, 2**62 + 5], [-1, 2**62 + 5]),
        ([3e300, 1e300], [2e300, 3e300], [4e300, 3e300]),
    ):
        graph = graphs.both_ways(graphs.make(3, [(0, 1), (0, 2)], weights))
        path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True, weight=graph.weights.dtype)
        part = partition_graph(path, comm=comm, device=parts.WANTED)
        found = library.table(part, origins=[1], destinations=[2, 0], landmarks=1, verify=True)
        assert found.lower.tolist() == [lower] and found.upper.tolist() == [upper]


@pytest.mark.mpi
def test_files(comm, shared_tmp):
    """From the command line, by name; from Python, the same."""
    routes, output = shared_tmp / "r.csv", shared_tmp / "t.csv"
    if comm.rank == 0:
        rows = [("Zürich", "Bern", 2.5), ("Bern", "Chur", 1.5), ("Chur", "Zürich", 1.0), ("Basel", "Basel", 1.0)]
        pandas.DataFrame(rows, columns=["source", "target", "weight"]).to_csv(routes, index=False)
    comm.Barrier()
    run = [str(routes), "--from", "Zürich", "--to", "Chur", "Basel", "Bern", "--landmarks", "3", "--verify"]
    assert main(APP, comm, [*run, "--device", parts.WANTED, "--output", str(output)]) == 0
    expected = [("Zürich", "Chur", 4.0, 4.0), ("Zürich", "Basel", np.inf, np.inf), ("Zürich", "Bern", 2.5, 2.5)]
    assert [*pandas.read_csv(output).itertuples(index=False, name=None)] == expected
    graph = partition_graph(str(routes), comm=comm, device=parts.WANTED)
    found = library.table(graph, origins=["Zürich"], destinations=["Basel", "Bern"], landmarks=3, hops=True)
    assert found.lower.tolist() == found.upper.tolist() == [[-1, 1]] and found.exact == 2


@pytest.mark.mpi
def test_mistakes(comm, shared_tmp):
    """Numbers of landmarks, weights below 0; wrong bounds are found on every rank."""
    graph = graphs.random_directed()
    path = graphs.write(shared_tmp / "g.h5", graph)
    with pytest.raises(OptionError, match="--landmarks 61: the graph has 60 nodes"):
        main(APP, comm, [path, "--from", "3", "--landmarks", "61", "--device", parts.WANTED])
    with pytest.raises(OptionError, match="--strategy: chooses landmarks; give --landmarks"):
        main(APP, comm, [path, "--from", "3", "--strategy", "degree", "--device", parts.WANTED])
    with pytest.raises(OptionError, match="--landmarks: 0: expected a whole number from 1"):
        library.table(partition_graph(path, comm=comm, device=parts.WANTED), origins=[3], landmarks=0)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm)
    options = Namespace(origins=[3, 4], destinations=[4, 5, 9], hops=False, landmarks=2, strategy=None, seed=1)
    sync = parts.make_sync(part)
    wanted = prepare(part, sync, options)
    for name, value, message in (
        ("lower", 10**6, "1e.06 to"),
        ("lower", -1, "inf to"),
        ("lower", np.nan, "nan to"),
        ("upper", 0, "to 0 from 4 to 9"),
    ):
        answer = estimate(sync, wanted, options)
        answer.table[name] = answer.table[name].astype(np.float64)
        answer.table[name][1, 2] = value
        with pytest.raises(VerificationError, match=f"{message}.* apart"):
            APP.check(part, sync, None, answer, wanted, options)
    graph.weights[7] = -2
    part = parts.partition_graph(graphs.write(shared_tmp / "n.h5", graph), parts.policy_of("cvc"), comm)
    with pytest.raises(GraphFileError, match="has the weight -2"):
        prepare(part, parts.make_sync(part), options)
