"""Triangles on hard graphs under several policies against NetworkX, and what the verifier refuses."""

import graphs
import networkx
import numpy as np
import parts
import pytest

from cusp.apps.operators.triangles import counts_cpu
from cusp.apps.operators.triangles.interfaces import Triangles
from cusp.apps.shared.graphs import oriented
from cusp.apps.shared.graphs.undirected import as_undirected
from cusp.apps.triangles import triangles
from cusp.apps.verify import triangles as verifier
from cusp.apps.verify.check import VerificationError
from cusp.runtime.devices import backend, to_host


def oracle(graph: graphs.Graph) -> networkx.Graph:
    """The graph without directions and loops, by NetworkX."""
    made = networkx.Graph()
    made.add_nodes_from(range(graph.num_nodes))
    made.add_edges_from(pair for pair in zip(graph.sources.tolist(), graph.targets.tolist()) if pair[0] != pair[1])
    return made


def check(part, comm, graph) -> None:
    """Compare all figures and labels with NetworkX's, with and without a count for each node. Collective."""
    expected, sync = oracle(graph), parts.make_sync(part)
    at_nodes = networkx.triangles(expected)
    plain, full = (triangles(part, sync, per_node).on_host() for per_node in (False, True))
    assert plain.labels == {} and plain.figures.items() <= full.figures.items()
    assert plain.figures["triangles"] == sum(at_nodes.values()) // 3
    assert plain.figures["transitivity"] == pytest.approx(networkx.transitivity(expected))
    assert full.figures["average_clustering"] == pytest.approx(networkx.average_clustering(expected))
    found = parts.gather(part, full.labels["node_triangles"])
    assert found.dtype == np.int64
    assert found.tolist() == [at_nodes[node] for node in range(graph.num_nodes)]
    coefficients = networkx.clustering(expected)
    np.testing.assert_allclose(
        parts.gather(part, full.labels["clustering"]), [coefficients[node] for node in range(graph.num_nodes)]
    )
    verifier.verify_triangles(as_undirected(part, comm, weights=False), sync, full.figures, full.labels)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "mixed"])
def test_hard_graphs(comm, shared_tmp, monkeypatch, policy):
    """Directed graphs; rows of others come in many rounds."""
    monkeypatch.setattr(backend(Triangles, parts.DEVICE), "ROWS_AT_ONCE", 8)
    for name in graphs.HARD:
        graph = graphs.HARD[name]()
        path = graphs.write(shared_tmp / "g.h5", graph)
        check(parts.partition_graph(path, parts.policy_of(policy), comm, weights=False), comm, graph)


@pytest.mark.mpi
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_larger_graph(comm, shared_tmp, monkeypatch, order):
    """More triangles, nodes of many degrees, more of them than a GPU's block can mark, or than have rows of bits."""
    monkeypatch.setattr(backend(Triangles, parts.DEVICE), "WORDS", 3, raising=False)
    monkeypatch.setattr(counts_cpu, "HUBS", 100)
    monkeypatch.setattr(verifier, "LEAST_WORK", 30_000)  # some nodes are recounted, in several rounds
    monkeypatch.setattr(verifier, "WORK_PER_EDGE", 0)
    monkeypatch.setattr(verifier, "CAPACITY", 100)
    rng = np.random.default_rng(5)
    ends = (rng.random((3000, 2)) ** 3 * 400).astype(np.int64)
    graph = graphs.both_ways(graphs.make(450, ends))
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    check(parts.partition_graph(path, parts.policy_of("cvc"), comm, order=order), comm, graph)


@pytest.mark.mpi(min_size=2)
def test_rows_of_others_ascend(comm, shared_tmp, monkeypatch):
    """Also those that are too long for a warp. They come in several rounds."""
    monkeypatch.setattr(backend(Triangles, parts.DEVICE), "ROWS_AT_ONCE", 20_000)
    graph = graphs.make(500, [(u, v) for u in range(500) for v in range(500) if u != v])
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    part = parts.partition_graph(path, parts.policy_of("oec"), comm, weights=False)
    whole = as_undirected(part, comm)
    shares = oriented.share_out(whole, oriented.place_by_degree(whole, parts.make_sync(part)), comm)
    longest = rounds = 0
    for begins, ends, entries in oriented.rows_of_others(shares, comm):
        rows = [entries[begin:end] for begin, end in zip(begins.tolist(), ends.tolist())]
        assert all((np.diff(to_host(row)) > 0).all() for row in rows)
        longest, rounds = max(longest, *(row.size for row in rows)), rounds + 1
    assert longest > 400
    assert rounds > 1


@pytest.mark.mpi
def test_verifier_refuses(comm, shared_tmp):
    """A count that is one too high somewhere, a wrong total, a wrong coefficient."""
    graph = graphs.HARD["complete"]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm)
    sync = parts.make_sync(part)
    answer = triangles(part, sync, True).on_host()
    made = as_undirected(part, comm, weights=False)
    verifier.verify_triangles(made, sync, answer.figures, answer.labels)

    def refused(match: str, figures: dict, **labels: np.ndarray) -> None:
        with pytest.raises(VerificationError, match=match):
            verifier.verify_triangles(made, sync, answer.figures | figures, answer.labels | labels)

    shifted = answer.labels["node_triangles"].copy()
    for gid, change in (3, 3), (4, -3):
        shifted[to_host(made.gids[: made.num_masters]) == gid] += change
    coefficients = shifted / 55
    average = {"average_clustering": 1.0}
    refused("at node [34] there are 55 triangles", average, node_triangles=shifted, clustering=coefficients)
    refused("are not 3 times", {"triangles": 221})
    refused("transitivity", {"transitivity": 0.5})
    refused("the average clustering", {"average_clustering": 0.9})
    refused("clustering: .* at node", {}, clustering=answer.labels["clustering"] * 0.99)
