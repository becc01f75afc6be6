"""Similarities of pairs of nodes, against sets of neighbours and NetworkX, on any ranks."""

import graphs
import networkx as nx
import numpy as np
import parts
import pytest

from cusp.apps.operators.triangles.interfaces import Triangles
from cusp.apps.run.result import gather_edges
from cusp.apps.similarity import APP, prepare, similarity
from cusp.apps.verify.check import VerificationError
from cusp.errors import OptionError
from cusp.runtime.devices import backend


def expected(graph: graphs.Graph, pairs: list[tuple[int, int]] | None) -> dict[str, np.ndarray]:
    """By NetworkX, and by sets of neighbours; of all neighbours if no pairs are given."""
    simple = nx.Graph()
    simple.add_nodes_from(range(graph.num_nodes))
    ends = zip(graph.sources.tolist(), graph.targets.tolist())
    simple.add_edges_from((source, target) for source, target in ends if source != target)
    wanted = sorted((min(pair), max(pair)) for pair in simple.edges) if pairs is None else sorted(pairs)
    near = [set(simple[node]) for node in range(graph.num_nodes)]
    common = np.array([len(near[source] & near[target]) for source, target in wanted], np.int64)
    a, b = np.array([(len(near[source]), len(near[target])) for source, target in wanted]).reshape(-1, 2).T
    jaccard = np.array([share for *_, share in nx.jaccard_coefficient(simple, wanted, backend="networkx")])
    source, target = np.array(wanted, np.int64).reshape(-1, 2).T
    overlap, cosine = common / np.maximum(np.minimum(a, b), 1), common / np.sqrt(np.maximum(a * b, 1))
    names = ("source", "target", "common", "jaccard", "overlap", "cosine")
    return dict(zip(names, (source, target, common, jaccard, overlap, cosine)))


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_similarity(comm, shared_tmp, monkeypatch, name, policy):
    """Of hard graphs: of all neighbours, and of pairs, equal nodes and repeated pairs among them; in many rounds."""
    monkeypatch.setattr(backend(Triangles, parts.DEVICE), "ROWS_AT_ONCE", 16)
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=name in graphs.SYMMETRIC)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    sync = parts.make_sync(part)
    drawn = np.random.default_rng(3).integers(0, graph.num_nodes, (25, 2))
    pairs = [*map(tuple, drawn.tolist()), (0, 0), tuple(drawn[0].tolist())]
    for some in (None, pairs):
        options = parts.options_of(APP, pairs=None if some is None else [node for pair in some for node in pair])
        wanted = prepare(part, sync, options)
        answer = similarity(part, sync, wanted)
        APP.check(part, sync, None, answer, wanted, options)
        found, right = gather_edges(part, answer.on_host().edges, comm), expected(graph, some)
        assert found.keys() == right.keys() and answer.figures["pairs"] == right["common"].size
        for column, values in right.items():
            np.testing.assert_allclose(found[column], values, rtol=1e-14, err_msg=column)


@pytest.mark.mpi
def test_mistakes(comm, shared_tmp):
    """A node without another is an error; wrong values, pairs and figures are found."""
    part = parts.partition_graph(
        graphs.write(shared_tmp / "g.h5", graphs.random_directed()), parts.policy_of("cvc"), comm
    )
    sync, options = parts.make_sync(part), parts.options_of(APP)
    with pytest.raises(OptionError, match="3 nodes are not pairs"):
        prepare(part, sync, parts.options_of(APP, pairs=[1, 2, 3]))
    wanted = prepare(part, sync, options)
    for column, message in (("jaccard", "jaccard of .* is"), ("common", "common of"), ("target", "other pairs")):
        answer = similarity(part, sync, wanted).on_host()
        answer.edges[column] = answer.edges[column] + 1
        with pytest.raises(VerificationError, match=message):
            APP.check(part, sync, None, answer, wanted, options)
    answer.edges["target"], answer.figures["pairs"] = wanted.pairs[1], 1
    with pytest.raises(VerificationError, match="pairs, not 1"):
        APP.check(part, sync, None, answer, wanted, options)
