"""Parents from hops and distances: a tree along tight edges, also where edges of length 0 make circles."""

import graphs
import numpy as np
import parts
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cusp.apps.bfs import bfs
from cusp.apps.shared.tree import find_parents
from cusp.apps.sssp import measure, sssp
from cusp.errors import GraphFileError
from cusp.runtime.devices import move

EXAMPLES = 20


def check_tree(graph, source, distances, weights, parents):
    """Every reached node has a tight edge from its parent, and following parents leads to the source."""
    edges = set(zip(graph.sources.tolist(), graph.targets.tolist(), np.asarray(weights).tolist(), strict=True))
    far = np.isinf(distances) if distances.dtype.kind == "f" else distances < 0
    assert ((parents >= 0) == ~far).all() and parents[source] == source
    for node in np.flatnonzero(~far).tolist():
        parent = int(parents[node])
        assert node == source or (parent, node, distances[node] - distances[parent]) in edges
        for _ in range(graph.num_nodes):
            node = int(parents[node])
        assert node == source


def check(part, graph, source):
    """From hops and from distances. Collective."""
    sync = parts.make_sync(part)
    hops = bfs(part, sync, source).labels["hops"]
    found = parts.gather(part, find_parents(part, sync, source, hops))
    check_tree(graph, source, parts.gather(part, hops), np.ones(graph.num_edges, np.int64), found)
    lengths = measure(part, sync)
    distances = sssp(part, sync, source, lengths).labels["distance"]
    found = parts.gather(part, find_parents(part, sync, source, distances, lengths.weights))
    check_tree(graph, source, parts.gather(part, distances), graph.weights, found)


@pytest.mark.mpi
@pytest.mark.parametrize("kind", ["i4", "f4"])
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc", "mixed"])
def test_trees(comm, shared_tmp, policy, kind):
    """Directed with a transpose, and symmetric without; a third of the edges have length 0."""
    for symmetric in (False, True):
        graph = graphs.random_directed(70, 260, seed=8)
        graph = graph._replace(weights=(graph.weights % 3 * 0.75).astype(kind))
        graph = graphs.both_ways(graph) if symmetric else graph
        path = graphs.write(shared_tmp / f"{symmetric}.h5", graph, weight=kind, symmetric=symmetric)
        part = parts.partition_graph(path, parts.policy_of(policy), comm, csc=not symmetric)
        for source in (0, 13):
            check(part, graph, source)


@pytest.mark.mpi
@settings(max_examples=EXAMPLES)
@given(graph=graphs.small_graphs(), policy=st.sampled_from(["oec", "cvc", "mixed"]), where=st.integers(0, 11))
def test_any_graph(comm, shared_tmp, graph, policy, where):
    graph = graphs.both_ways(graph)
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    check(part, graph, where % graph.num_nodes)


@pytest.mark.mpi
def test_lengths_beyond_the_digits_of_floats(comm, shared_tmp):
    """Of 64 bits without a sign: they are not added as floats, and one above all distances is on no path."""
    edges = [(0, 1), (1, 2), (0, 2), (2, 3), (2, 3), (3, 2), (1, 0)]
    weights = np.array([2**53 + 1, 0, 2**53 + 2, 2**53, 2**53 + 1, 2**64 - 1, 2**63], np.uint64)
    path = graphs.write(shared_tmp / "g.h5", graphs.make(4, edges, weights), weight=np.uint64)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, csc=True)
    sync, lengths = parts.make_sync(part), measure(part, parts.make_sync(part))
    distances = sssp(part, sync, 0, lengths).labels["distance"]
    assert parts.gather(part, distances).tolist() == [0, 2**53 + 1, 2**53 + 1, 2**54 + 1]
    assert parts.gather(part, find_parents(part, sync, 0, distances, lengths.weights)).tolist() == [0, 0, 1, 2]


@pytest.mark.mpi
def test_distances_of_another_graph(comm, shared_tmp):
    """They end in an error, not in an endless loop."""
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["complete"](), symmetric=True)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm)
    wrong = move(np.where(parts.on_host(part)[0].gids[: part.num_masters] == 3, 0, 5).astype(np.int32), parts.DEVICE)
    with pytest.raises(GraphFileError, match="11 nodes were reached over no edge"):
        find_parents(part, parts.make_sync(part), 3, wrong)
