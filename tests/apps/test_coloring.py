"""Greedy colorings: what a loop over the nodes by turn chooses, on any ranks."""

import graphs
import networkx as nx
import numpy as np
import parts
import pytest

from cusp.apps.coloring import APP, coloring, prepare
from cusp.apps.shared.splitmix64 import distinct_lots, key_of
from cusp.apps.verify.check import VerificationError

SIZE = 66  # more colors than a word has bits
CLIQUE = graphs.make(SIZE + 5, [(u, v) for u in range(SIZE) for v in range(u)])


def chosen(graph: graphs.Graph, seed: int, by_degree: bool) -> np.ndarray:
    """NetworkX's loop, in this order."""
    size = graph.num_nodes
    simple = nx.Graph()
    simple.add_nodes_from(range(size))
    simple.add_edges_from((u, v) for u, v in zip(graph.sources.tolist(), graph.targets.tolist()) if u != v)
    turns = distinct_lots(np.arange(size), key_of(seed), size)
    if by_degree:
        degrees = np.array([simple.degree[node] for node in range(size)], np.int64)
        bits = 62 - len(np.unique(degrees)).bit_length()
        turns = np.lexsort((turns % 2**bits, -degrees)).argsort()
    found = nx.greedy_color(simple, lambda *_: np.argsort(turns).tolist(), backend="networkx")
    return np.array([found[node] for node in range(size)], np.int32)


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), [*parts.ONCE, ("clique", "cvc")])
def test_coloring(comm, shared_tmp, name, policy):
    """Hard graphs, loops and parallel edges among them, by degree and at random, by two seeds."""
    graph, symmetric = graphs.HARD.get(name, lambda: CLIQUE)(), name in graphs.SYMMETRIC
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=symmetric)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    sync = parts.make_sync(part)
    undirected = prepare(part, sync)
    for seed, strategy in (1, "largest-first"), (2**63, "random"):
        answer = coloring(part, sync, undirected, strategy, seed)
        APP.check(part, sync, None, answer, None, parts.options_of(APP))
        expected = chosen(graph, seed, strategy == "largest-first")
        np.testing.assert_array_equal(parts.gather(part, answer.on_host().labels["color"]), expected)
        assert answer.figures == {"colors": expected.max() + 1}


@pytest.mark.mpi
def test_verifier_finds_mistakes(comm, shared_tmp):
    """Equal neighbours, a color that is higher than needed, one below 0, and a wrong number."""
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", CLIQUE), parts.policy_of("cvc"), comm)
    sync = parts.make_sync(part)
    undirected = prepare(part, sync)
    color = parts.gather(part, coloring(part, sync, undirected).on_host().labels["color"])
    last, lowest = SIZE + 4, int(np.flatnonzero(color == 0)[0])
    for node, change, colors, message in (
        (3, color[2], SIZE, "are neighbours, and both have color"),
        (last, 1, SIZE, "a lower color is free at node"),
        (lowest, SIZE, SIZE + 1, "a lower color is free at node"),
        (last, -1, SIZE, "below 0 at node"),
        (last, 0, SIZE + 1, "colors, not"),
    ):
        changed, lid = coloring(part, sync, undirected), part.lid(node)
        changed.figures["colors"] = colors
        if 0 <= lid < part.num_masters:
            changed.labels["color"][lid] = change
        with pytest.raises(VerificationError, match=message):
            APP.check(part, sync, None, changed, None, parts.options_of(APP))
