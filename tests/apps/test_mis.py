"""Maximal independent sets: what a loop over the nodes in the order of their ranks chooses, on any ranks."""

import graphs
import numpy as np
import parts
import pytest

from cusp.apps.mis import APP, mis
from cusp.apps.shared.splitmix64 import key_of, splitmix64
from cusp.apps.verify.check import VerificationError


def chosen(graph: graphs.Graph, seed: int) -> np.ndarray:
    """One node after the other, by rank, unless a neighbour is in the set."""
    size, bits = graph.num_nodes, graph.num_nodes.bit_length()
    gids = np.arange(size)
    order = np.lexsort((gids, splitmix64(gids, key_of(seed)) >> np.uint64(bits + 1)))
    neighbours: list[set[int]] = [set() for _ in range(size)]
    for source, target in zip(graph.sources.tolist(), graph.targets.tolist()):
        neighbours[source].add(target)
        neighbours[target].add(source)
    inside = np.zeros(size, np.uint8)
    for node in order.tolist():
        inside[node] = not any(inside[other] for other in neighbours[node] - {node})
    return inside


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_mis(comm, shared_tmp, name, policy):
    """Hard graphs, loops and parallel edges among them, by two seeds."""
    graph = graphs.HARD[name]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    sync = parts.make_sync(part)
    for seed in (1, 2**63):
        answer = mis(part, sync, seed)
        APP.check(part, sync, None, answer, None, parts.options_of(APP))
        expected = chosen(graph, seed)
        np.testing.assert_array_equal(parts.gather(part, answer.on_host().labels["in_set"]), expected)
        assert answer.figures == {"members": int(expected.sum())}


@pytest.mark.mpi
def test_verifier_finds_mistakes(comm, shared_tmp):
    """Two neighbours in the set, a node that could be added, and a wrong number; of a symmetric graph."""
    graph = graphs.both_ways(graphs.random_directed(60, 150, seed=4))
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm)
    sync, expected = parts.make_sync(part), chosen(graph, 1)
    answer = mis(part, sync)
    np.testing.assert_array_equal(parts.gather(part, answer.on_host().labels["in_set"]), expected)
    neighbour = graph.targets[np.flatnonzero(expected[graph.sources])[0]]
    member = int(np.flatnonzero(expected)[0])
    for node, change, message in (
        (int(neighbour), 1, "are neighbours, and both in the set"),
        (member, 0, "neither in the set, nor a neighbour"),
    ):
        changed, lid = mis(part, sync), part.lid(node)
        if 0 <= lid < part.num_masters:
            changed.labels["in_set"][lid] = change
        with pytest.raises(VerificationError, match=message):
            APP.check(part, sync, None, changed, None, parts.options_of(APP))
    answer.figures["members"] += 1
    with pytest.raises(VerificationError, match="members, not"):
        APP.check(part, sync, None, answer, None, parts.options_of(APP))
