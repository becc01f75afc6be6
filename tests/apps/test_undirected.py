"""Undirected partitions against Python's sets: whole neighbourhoods at every master, from any policy."""

import graphs
import numpy as np
import parts
import pytest

from cusp.apps.shared.graphs.undirected import as_undirected
from cusp.partition import Partition


def undirected(graph: graphs.Graph) -> graphs.Graph:
    """The same without directions, loops and parallel edges; weights are summed in both directions."""
    sums: dict[tuple[int, int], float] = {}
    for source, target, weight in graph.triples():
        if source != target:
            for pair in (source, target), (target, source):
                sums[pair] = sums.get(pair, 0.0) + weight
    return graphs.make(graph.num_nodes, sums, np.array(list(sums.values())))


def check(part: Partition, graph: graphs.Graph, comm, weights: bool) -> Partition:
    """Make it, and assert that it is an edge-cut of the undirected graph with the same masters. Collective."""
    made = as_undirected(part, comm, weights)
    host, before, expected = made.on("cpu"), part.on("cpu"), undirected(graph)
    weighted = weights and part.weights is not None
    assert (made.weights is not None) == weighted
    parts.check_partition(host, expected, weighted)
    assert (made.symmetric, made.num_edges, made.device) == (True, expected.num_edges, part.device)
    assert not weighted or host.weights.dtype == np.float64
    assert host.targets.dtype == np.int32 and host.offsets.dtype == np.int64
    np.testing.assert_array_equal(host.gids[: host.num_masters], before.gids[: before.num_masters])
    np.testing.assert_array_equal(host.lid_map.lids(host.gids), np.arange(host.num_proxies))
    assert not host.has_out[host.num_masters :].any()
    for lid in range(host.num_masters):
        assert (np.diff(host.targets[host.offsets[lid] : host.offsets[lid + 1]]) > 0).all()
    return made


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["iec", "mixed"])
def test_hard_graphs(comm, shared_tmp, policy):
    """Directed graphs with and without weights, with and without a CSC; and once more from the result."""
    for name in graphs.HARD:
        graph = graphs.HARD[name]()
        path = graphs.write(shared_tmp / "g.h5", graph)
        part = parts.partition_graph(path, parts.policy_of(policy), comm, csc=len(name) % 2 == 0)
        check(part, graph, comm, weights=True)
        made = check(part, graph, comm, weights=False)
        again = as_undirected(made, comm)
        assert again.targets is made.targets and again.offsets is made.offsets


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc"])
def test_symmetric(comm, shared_tmp, policy):
    """Of a symmetric graph only out-edges travel; its weights count in both directions."""
    for name in (*graphs.SYMMETRIC, "doubles"):
        graph = graphs.both_ways(graphs.HARD["loops_and_doubles" if name == "doubles" else name]())
        path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
        part = parts.partition_graph(path, parts.policy_of(policy), comm)
        for weights in (False, True):
            check(part, graph, comm, weights)
