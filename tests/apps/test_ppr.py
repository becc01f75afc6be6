"""PageRank from each of many seeds, against NetworkX's, on any ranks, in copies of the graph and together."""

import graphs
import networkx as nx
import numpy as np
import parts
import pytest

from cusp.apps.ppr import APP, prepare
from cusp.apps.shared.graphs import whole_graph
from cusp.apps.verify.check import VerificationError
from cusp.errors import GraphFileError, OptionError

EXACT = {"tolerance": 1e-11, "damping": 0.5}


def expected(graph: graphs.Graph, seed: int, weighted: bool) -> np.ndarray:
    """(nodes,) ranks for walks from one seed; NetworkX divides a tolerance by the number of nodes."""
    walked = nx.MultiDiGraph()
    walked.add_nodes_from(range(graph.num_nodes))
    weights = graph.weights.tolist() if weighted else [1] * graph.sources.size
    walked.add_weighted_edges_from(zip(graph.sources.tolist(), graph.targets.tolist(), weights))
    start = {seed: 1}
    found = nx.pagerank(walked, 0.5, start, 500, 1e-12 / graph.num_nodes, dangling=start, backend="networkx")
    return np.array([found[node] for node in range(graph.num_nodes)])


def check(part, sync, graph: graphs.Graph, seeds: list[int], top: int, **more) -> None:
    """Compare with NetworkX, and verify. Collective."""
    options = parts.read_options(APP, part.num_nodes, seeds=seeds, top=top, **EXACT | more)
    wanted = prepare(part, sync, options)
    answer = APP.run(part, sync, None, wanted, options)
    APP.check(part, sync, None, answer, wanted, options)
    seed, node, ranks = (answer.table[name] for name in ("seed", "node", "pagerank"))
    assert seed.ravel().tolist() == seeds and node.shape == ranks.shape == (len(seeds), min(top, graph.num_nodes))
    for start, named, found in zip(seeds, node, ranks):
        right = expected(graph, start, part.weights is not None and not more.get("unweighted"))
        there = named >= 0
        assert np.unique(named[there]).size == there.sum() == min(top, np.count_nonzero(right > 1e-10))
        np.testing.assert_allclose(found[there], right[named[there]], rtol=0, atol=1e-10)
        np.testing.assert_allclose(found, np.sort(right)[::-1][: found.size], rtol=0, atol=1e-10)
        assert (named[there] == start).any() or top < graph.num_nodes


@pytest.mark.mpi
@pytest.mark.parametrize("small", [whole_graph.SMALL, 0], ids=["in copies", "together"])
@pytest.mark.parametrize("policy", ["oec", "cvc", "one_rank"])
def test_ppr(comm, shared_tmp, monkeypatch, small, policy):
    """Some nodes, and all of them, on weighted graphs: dangling nodes, nodes that few walks reach, parallel edges."""
    monkeypatch.setattr(whole_graph, "SMALL", small)
    for name in ("random", "loops_and_doubles", "two_islands", "star_inwards"):
        graph = graphs.HARD[name]()
        path = graphs.write(shared_tmp / f"{name}.h5", graph, symmetric=name in graphs.SYMMETRIC)
        part = parts.partition_graph(path, parts.policy_of(policy), comm, csc=True)
        check(part, parts.make_sync(part), graph, [graph.num_nodes - 1, 0, 2, 0], top=3)
        check(part, parts.make_sync(part), graph, [1], top=10**6, unweighted=True)


@pytest.mark.mpi
def test_far_nodes(comm, shared_tmp):
    """Walks through a lattice, of which they reach little, and by iterations in place of a tolerance."""
    graph = graphs.both_ways(graphs.make(400, graphs.lattice(400, 20)))
    path = graphs.write(shared_tmp / "g.h5", graph, weight=None, symmetric=True)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm)
    sync = parts.make_sync(part)
    check(part, sync, graph, [0, 210], top=5)
    options = parts.read_options(APP, part.num_nodes, seeds=[210], top=100, tolerance=0.0, iterations=3)
    answer = APP.run(part, sync, None, prepare(part, sync, options), options)
    assert answer.rounds == 3 and (answer.table["node"] >= 0).sum() == 25  # up to three steps away


@pytest.mark.mpi
def test_mistakes(comm, shared_tmp):
    """Options and weights that are refused; wrong answers are found."""
    graph = graphs.random_directed()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm, csc=True)
    sync = parts.make_sync(part)
    for message, more in (
        ("--seeds", {"seeds": [60]}), ("never ends", {"tolerance": 0.0}), ("exact to", {"tolerance": 1e-16}),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=message):
            prepare(part, sync, parts.read_options(APP, 100, **{"seeds": [1]} | more))
    options = parts.read_options(APP, part.num_nodes, seeds=[1, 5])
    wanted = prepare(part, sync, options)
    for name, change, message in (
        ("pagerank", lambda ranks: ranks[:, ::-1], "other nodes"), ("pagerank", lambda ranks: ranks * 1.01, "other"),
        ("node", lambda nodes: (nodes + 1) % 60, "other nodes"), ("node", lambda nodes: nodes * 0 + 1, "other nodes"),
    ):  # fmt: skip
        answer = APP.run(part, sync, None, wanted, options)
        answer.table[name] = change(answer.table[name])
        with pytest.raises(VerificationError, match=message):
            APP.check(part, sync, None, answer, wanted, options)
    answer = APP.run(part, sync, None, wanted, options)
    answer.table.update({name: answer.table[name][:, 1:] for name in ("node", "pagerank")})
    with pytest.raises(VerificationError, match="a node with a higher rank from 1 is not there"):
        APP.check(part, sync, None, answer, wanted, options)
    graph = graphs.make(3, [(0, 1), (1, 2)], [1.0, -1.0])
    part = parts.partition_graph(graphs.write(shared_tmp / "w.h5", graph, weight=np.float64), parts.policy_of("oec"),
                                 comm, csc=True)  # fmt: skip
    with pytest.raises(GraphFileError, match="-1"):
        prepare(part, parts.make_sync(part), parts.read_options(APP, 3, seeds=[1]))
