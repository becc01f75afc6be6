"""Minimum spanning forests: what NetworkX finds if no two edges are equal, on any ranks."""

import graphs
import networkx as nx
import numpy as np
import parts
import pytest

from cusp.apps.msf import APP, msf
from cusp.apps.run.result import gather_edges
from cusp.apps.verify.check import VerificationError

TYPES = ("i8", "f8", "u8", "f4", None)


def weighted(name: str, dtype: str | None) -> graphs.Graph:
    """A hard graph with weights of this type, or 1: some are below 0 or above 2^63, and many are equal."""
    graph = graphs.HARD[name]()
    places = graph.weights // 2 if dtype else np.ones(graph.num_edges, np.int64)
    return graph._replace(weights=places.astype("u8") + np.uint64(2**63) if dtype == "u8" else places.astype(dtype) - 2)


def chosen(graph: graphs.Graph, maximum: bool) -> tuple[list[tuple[int, int]], np.ndarray]:
    """The edges of the forest by NetworkX, where each edge weighs its place in the order of all; and components."""
    _, rank = np.unique(graph.weights, return_inverse=True)
    ends = np.stack([graph.sources, graph.targets])
    order = np.lexsort((graph.sources, ends.max(axis=0), ends.min(axis=0), -rank if maximum else rank))
    simple = nx.Graph()
    simple.add_nodes_from(range(graph.num_nodes))
    for place, edge in [*enumerate(order.tolist())][::-1]:  # of parallel edges, the first is added last
        simple.add_edge(*ends[:, edge].tolist(), weight=place)
    places = [data["weight"] for _, _, data in nx.minimum_spanning_edges(simple, backend="networkx")]
    component = np.empty(graph.num_nodes, np.int64)
    for nodes in nx.connected_components(simple):
        component[[*nodes]] = min(nodes)
    return sorted(map(tuple, ends[:, order[places]].T.tolist())), component


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_msf(comm, shared_tmp, name, policy):
    """Hard graphs, loops and parallel edges among them, with weights of any type or none."""
    dtype = TYPES[sum(map(ord, name)) % len(TYPES)]
    graph = weighted(name, dtype)
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=name in graphs.SYMMETRIC, weight=dtype)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=dtype is not None)
    sync = parts.make_sync(part)
    for maximum in (False, True):
        answer = msf(part, sync, maximum)
        APP.check(part, sync, None, answer, None, parts.options_of(APP, maximum=maximum))
        answer = answer.on_host()
        source, target, inside = gather_edges(part, answer.edges, comm).values()
        pairs, component = chosen(graph, maximum)
        assert list(zip(source[inside == 1].tolist(), target[inside == 1].tolist())) == pairs
        np.testing.assert_array_equal(parts.gather(part, answer.labels["component"]), component)


@pytest.mark.mpi
def test_verifier_finds_mistakes(comm, shared_tmp):
    """A missing edge, one too many, a better one, a wrong component, and wrong figures."""
    graph = graphs.make(4, [(0, 1), (1, 2), (2, 0), (2, 3)], [4, 2, 3, 7])
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm)
    sync = parts.make_sync(part)
    sources, targets, _ = parts.edges_of(part.on("cpu"))
    for pairs, message in (
        ({(1, 2), (2, 3)}, "connects two trees"),
        ({(0, 1), (1, 2), (2, 0), (2, 3)}, "closes a cycle in the forest"),
        ({(0, 1), (1, 2), (2, 3)}, "the edge 2 -> 0 weighs 3, and one that weighs 4 joins its ends"),
    ):
        answer = msf(part, sync).on_host()
        inside = [pair in pairs for pair in zip(sources.tolist(), targets.tolist())]
        answer.edges["in_forest"][:] = inside
        with pytest.raises(VerificationError, match=message):
            APP.check(part, sync, None, answer, None, parts.options_of(APP))
    for name, message in (("weight", "weighs 12.0, not 13"), ("members", "has 3 edges, not 4")):
        answer = msf(part, sync)
        answer.figures[name] += 1
        with pytest.raises(VerificationError, match=message):
            APP.check(part, sync, None, answer, None, parts.options_of(APP))
    answer = msf(part, sync)
    answer.labels["component"][:1] += 1
    with pytest.raises(VerificationError, match="not the smallest node of the tree"):
        APP.check(part, sync, None, answer, None, parts.options_of(APP))
