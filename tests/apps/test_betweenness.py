"""Betweenness centrality on hard graphs, against counts of all shortest paths between all nodes, and NetworkX."""

from dataclasses import replace

import graphs
import networkx
import numpy as np
import parts
import pytest
from oracles import shares_of_paths

from cusp.apps.betweenness import APP, betweenness, prepare
from cusp.apps.run.result import gather_edges
from cusp.apps.verify.betweenness import verify_betweenness
from cusp.apps.verify.check import VerificationError
from cusp.errors import GraphFileError, OptionError


def counted(graph: graphs.Graph, sources: list[int] | None = None) -> np.ndarray:
    """All shares of shortest paths, or those of paths from some nodes."""
    return shares_of_paths(graph, range(graph.num_nodes) if sources is None else sources)


def run(part, **options) -> tuple[np.ndarray, dict]:
    """Run, also without a copy of the graph, and verify; the answer for all nodes, and the figures. Collective."""
    sync = parts.make_sync(part)
    wanted = prepare(part, sync, parts.options_of(APP, **{"normalized": False} | options))
    assert parts.DEVICE == "cpu" or (wanted.alone is None) == (sync.comm.size == 1)
    answer, by_level = (betweenness(sync, each).on_host() for each in (wanted, replace(wanted, alone=None)))
    verify_betweenness(part, sync, answer, wanted.sources, wanted.scale)
    np.testing.assert_allclose(
        answer.labels["betweenness"], by_level.labels["betweenness"], rtol=1e-12, atol=1e-12, strict=True
    )
    assert (answer.rounds, answer.figures) == (by_level.rounds, by_level.figures)
    return parts.gather(part, answer.labels["betweenness"]), answer.figures


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_betweenness(comm, shared_tmp, name, policy):
    """From all nodes on one rank, from a few on more."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False, csc=True)
    everything = comm.size == 1 and parts.DEVICE == "cpu"
    few = sorted({0, graph.num_nodes // 2, graph.num_nodes - 1})
    found, figures = run(part, sources="all") if everything else run(part, source=few)
    np.testing.assert_allclose(found, counted(graph, None if everything else few), rtol=1e-12, atol=1e-12)
    assert figures["sources"] == (np.count_nonzero(graph.degrees) if everything else len(few))


@pytest.mark.mpi
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_networkx(comm, shared_tmp, symmetric, normalized):
    """Graphs without parallel edges, directed and not, as NetworkX counts and scales it."""
    graph = graphs.random_directed(25, 60, seed=4)
    pairs = {(u, v) for u, v in zip(graph.sources.tolist(), graph.targets.tolist())}
    pairs |= {(v, u) for u, v in pairs} if symmetric else set()
    path = graphs.write(shared_tmp / "g.h5", graphs.make(25, sorted(pairs)), symmetric=symmetric)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, weights=False, csc=not symmetric)
    theirs = networkx.Graph() if symmetric else networkx.DiGraph()
    theirs.add_nodes_from(range(25))
    theirs.add_edges_from(pairs)
    expected = networkx.betweenness_centrality(theirs, normalized=normalized)
    found, _ = run(part, sources="all", normalized=normalized)
    np.testing.assert_allclose(found, [expected[node] for node in range(25)], rtol=1e-12, atol=1e-12)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("symmetric", "weighted", "weight"),
    parts.share(
        [
            (True, True, np.int64),
            pytest.param(False, False, np.int64, marks=pytest.mark.slow),
            pytest.param(False, True, np.float64, marks=pytest.mark.slow),
            pytest.param(True, False, np.int64, marks=pytest.mark.slow),
            pytest.param(False, True, np.int64, marks=pytest.mark.slow),
            pytest.param(True, True, np.float64, marks=pytest.mark.slow),
        ]
    ),
)
def test_weights_and_edges(comm, shared_tmp, symmetric, weighted, weight):
    """Paths by weights, whole or not, many of them equally long, and the betweenness of edges: as in NetworkX."""
    random, theirs = np.random.default_rng(5), networkx.Graph() if symmetric else networkx.DiGraph()
    theirs.add_nodes_from(range(18))
    for source, target in random.integers(0, 18, (45, 2)).tolist():
        theirs.add_edge(source, target, weight=weight(random.integers(1, 4)) / (10 if weight == np.float64 else 1))
    rows = [(u, v, w) for u, v, w in theirs.edges(data="weight")]
    rows += [(v, u, w) for u, v, w in rows if u != v] if symmetric else []
    made = graphs.make(18, [row[:2] for row in rows], np.array([row[2] for row in rows], weight))
    path = graphs.write(shared_tmp / "g.h5", made, symmetric=symmetric, weight=np.dtype(weight))
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, csc=not symmetric)
    sync, by = parts.make_sync(part), "weight" if weighted else None
    for normalized in (True, False):
        wanted = prepare(part, sync, parts.options_of(APP, weighted=weighted, edges=True, normalized=normalized))
        assert (wanted.alone is None) == (parts.DEVICE != "cpu")
        answer, by_level = (betweenness(sync, each).on_host() for each in (wanted, replace(wanted, alone=None)))
        for one, other in ((answer.labels, by_level.labels), (answer.edges, by_level.edges)):
            np.testing.assert_allclose(one["betweenness"], other["betweenness"], rtol=1e-12, atol=1e-12)
        assert answer.rounds == by_level.rounds
        given = wanted.part, sync, answer, wanted.sources, wanted.scale, wanted.edge_scale
        verify_betweenness(*given)
        expected = networkx.betweenness_centrality(theirs, weight=by, normalized=normalized)
        found = parts.gather(part, answer.labels["betweenness"])
        np.testing.assert_allclose(found, [expected[node] for node in range(18)], rtol=1e-12, atol=1e-12)
        of_edges = dict.fromkeys(theirs.edges, 0.0)
        for source, target, value in zip(*(each.tolist() for each in gather_edges(part, answer.edges, comm).values())):
            of_edges[(source, target) if (source, target) in of_edges else (target, source)] += value
        assert of_edges == pytest.approx(
            networkx.edge_betweenness_centrality(theirs, weight=by, normalized=normalized), abs=1e-12
        )
        answer.edges["betweenness"][:1] += 1e-6
        with pytest.raises(VerificationError, match="differs from a recount of the paths for .* edges"):
            verify_betweenness(*given)


@pytest.mark.mpi
def test_unfit_weights(comm, shared_tmp):
    """Weights of 0, and those that change nothing when they are added, are refused on every rank."""
    for weights, message in (([1.0, 0.0], "weights of 1 edges are 0"), ([1e20, 1.0], "weights added to them change")):
        path = graphs.write(
            shared_tmp / "g.h5", graphs.make(3, [(0, 1), (1, 2)], np.array(weights)), weight=np.dtype("f8")
        )
        part = parts.partition_graph(path, parts.policy_of("oec"), comm, csc=True)
        sync = parts.make_sync(part)
        with pytest.raises(GraphFileError, match=message):
            wanted = prepare(part, sync, parts.options_of(APP, weighted=True))
            assert parts.DEVICE != "cpu" or wanted.alone
            betweenness(sync, wanted)


@pytest.mark.mpi
def test_some_sources(comm, shared_tmp):
    """Named sources are not scaled; drawn ones are the same for all policies, and scaled to all that have out-edges."""
    graph = graphs.HARD["last_isolated"]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    found = []
    for policy in ("oec", "cvc"):
        part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False, csc=True)
        named, _ = run(part, source=[3, 17, 3])
        np.testing.assert_allclose(named, counted(graph, [3, 17]), rtol=1e-12, atol=1e-12)
        sync = parts.make_sync(part)
        wanted = prepare(part, sync, parts.options_of(APP, sources=5, normalized=False))
        assert len(set(wanted.sources)) == 5 and wanted.scale == 30 / 5
        estimate, _ = run(part, sources=5)
        np.testing.assert_allclose(estimate, 6 * counted(graph, wanted.sources), rtol=1e-12, atol=1e-12)
        found.append(wanted.sources)
    assert found[0] == found[1]
    with pytest.raises(OptionError, match="--source 70: the graph has the nodes 0 to 69"):
        prepare(part, sync, parts.options_of(APP, source=[3, 70]))


@pytest.mark.mpi
def test_more_paths_than_can_be_counted(comm, shared_tmp):
    """32 ways at each of 205 steps: 2 to the power of 1,025 paths are refused on every rank."""
    pairs = [(v, v + 1) for v in range(205)] * 32
    path = graphs.write(shared_tmp / "g.h5", graphs.make(206, pairs))
    part = parts.partition_graph(path, parts.policy_of("oec"), comm, weights=False, csc=True)
    sync = parts.make_sync(part)
    with pytest.raises(GraphFileError, match="more than 1.8e308 shortest paths from node 0"):
        betweenness(sync, prepare(part, sync, parts.options_of(APP, source=[0])))


@pytest.mark.mpi
def test_verifier_finds_wrong_values(comm, shared_tmp):
    """One value a little off on one rank is found on all."""
    graph = graphs.random_directed()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm, csc=True)
    sync = parts.make_sync(part)
    wanted = prepare(part, sync, parts.options_of(APP, source=[3]))
    answer = betweenness(sync, wanted)
    found = answer.labels["betweenness"]
    verify_betweenness(wanted.part, sync, answer, wanted.sources, wanted.scale)
    found[found.argmax()] *= 1 + (1e-6 if comm.rank == comm.size - 1 else 0)
    with pytest.raises(VerificationError, match="differs from a recount of the paths for node"):
        verify_betweenness(wanted.part, sync, answer, wanted.sources, wanted.scale)
