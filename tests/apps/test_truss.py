"""Trussness of edges, and one k-truss, against NetworkX, on any ranks."""

import graphs
import networkx as nx
import numpy as np
import parts
import pytest

from cusp.apps.operators.triangles.interfaces import Triangles
from cusp.apps.run.result import gather_edges
from cusp.apps.truss import APP, prepare, truss
from cusp.apps.verify.check import VerificationError
from cusp.runtime.devices import backend


def serial_trussness(graph: graphs.Graph) -> dict[tuple[int, int], int]:
    """Of each edge, the last k for which NetworkX has it in the k-truss."""
    left = nx.Graph()
    ends = zip(graph.sources.tolist(), graph.targets.tolist())
    left.add_edges_from((source, target) for source, target in ends if source != target)
    found, k = {}, 2
    while left.number_of_edges():
        found |= {(min(pair), max(pair)): k for pair in left.edges}
        k += 1
        left = nx.k_truss(left, k, backend="networkx")
    return found


def check(part, sync, graph: graphs.Graph, ks: tuple[int, ...]) -> None:
    """Trussness of all edges, and some trusses, and verify them. Collective."""
    nodes, right = prepare(part, sync), serial_trussness(graph)
    highest = max(right.values(), default=0)
    for k in (None, *ks):
        answer, options = truss(sync, nodes, k), parts.options_of(APP, k=k)
        APP.check(part, sync, None, answer, nodes, options)
        source, target, *rest = gather_edges(part, answer.on_host().edges, sync.comm).values()
        pairs = list(zip(source.tolist(), target.tolist()))
        if k is None:
            assert dict(zip(pairs, rest[0].tolist())) == right and len(pairs) == len(right)
            assert answer.figures == {"highest": highest} and rest[0].dtype == np.int32
        else:
            assert pairs == sorted(pair for pair, value in right.items() if value >= k)
            assert answer.figures == {"members": len(pairs)}


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_truss(comm, shared_tmp, monkeypatch, name, policy):
    """Of hard graphs; rows of other ranks come in many rounds."""
    monkeypatch.setattr(backend(Triangles, parts.DEVICE), "ROWS_AT_ONCE", 16)
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=name in graphs.SYMMETRIC)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    check(part, parts.make_sync(part), graph, (1, 4))


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc"])
def test_many_trusses(comm, shared_tmp, policy):
    """Trusses inside of trusses, around hubs and with tails: edges go in many rounds, some of a triangle together."""
    rng = np.random.default_rng(5)
    pairs = [(u, v) for size in (6, 12, 25, 50, 100) for u, v in rng.integers(0, size, (250, 2))]
    pairs += [(v, v + 1) for v in range(99, 140)] + [(hub, v) for hub in (0, 120) for v in range(150)]
    graph = graphs.make(150, pairs)
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    check(part, parts.make_sync(part), graph, (5, 2**31, 10**15))


@pytest.mark.mpi
def test_mistakes(comm, shared_tmp):
    """Numbers that are too high or too low, of one edge and of all, edges and figures that are wrong are found."""
    graph = graphs.make(30, [(u, v) for u in range(8) for v in range(u)] + [(v, v + 1) for v in range(29)])
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm)
    sync = parts.make_sync(part)
    nodes = prepare(part, sync)

    def refuse(message: str, k: int | None = None, figures=(), **edges) -> None:
        answer = truss(sync, nodes, k).on_host()
        found = answer.edges["source"], answer.edges["target"]
        answer.edges.update({name: change(answer.edges[name], *found) for name, change in edges.items()})
        answer.figures.update(figures)
        with pytest.raises(VerificationError, match=message):
            APP.check(part, sync, None, answer, nodes, parts.options_of(APP, k=k))

    refuse("too few triangles for the edge 20 - 21", truss=lambda values, one, _: values + (one == 20))
    refuse("the edge [02] - [23]", truss=lambda values, one, two: values - ((one == 2) & (two == 3)))
    refuse("too low of the edge 0 - 1", truss=lambda values, *_: np.minimum(values, 4))
    refuse("not the edges", target=lambda values, *_: values + 1)
    refuse("highest is 8, not 9", figures={"highest": 9})
    refuse("members is 28, not 27", 5, {"members": 27})
    for name in ("source", "target"):  # one pair twice, and one not at all
        refuse("not the edges|too low", 5, **{name: lambda values, *_: values - (values == 1)})
