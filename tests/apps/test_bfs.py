"""Breadth-first search: hops and parents on hard graphs under every policy, against a serial queue."""

import graphs
import numpy as np
import parts
import pytest
import ranks
from hypothesis import given, settings
from hypothesis import strategies as st

from cusp.apps.bfs import bfs
from cusp.apps.verify.paths import verify_hops
from gluon.plan import make_plan
from gluon.sync import Sync

policies = pytest.mark.parametrize("policy", parts.SOME)
DIRECTIONS = ["auto", "push", "pull"]
EXAMPLES = 40 if ranks.COMM.size == 1 else 15


def check(part, sync, graph, source, direction, parents) -> None:
    """Run, verify, and compare with the queue; parents are in-neighbours one hop closer. Collective."""
    answer = bfs(part, sync, source, direction, parents).on_host()
    hops = parts.gather(part, answer.labels["hops"])
    expected = graphs.serial_hops(graph, source)
    assert hops.dtype == np.int32
    np.testing.assert_array_equal(hops, expected)
    np.testing.assert_array_equal(parts.gather(part, answer.reached), expected >= 0)
    assert set(answer.labels) == ({"hops", "parents"} if parents else {"hops"})
    verify_hops(part, sync, source, *answer.labels.values())
    if parents:
        found = parts.gather(part, answer.labels["parents"])
        assert found.dtype == np.int64
        edges = set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
        for node, parent in enumerate(found.tolist()):
            if node == source:
                assert parent == source
            elif expected[node] < 0:
                assert parent == -1
            else:
                assert (parent, node) in edges and expected[parent] == expected[node] - 1


def sources_of(graph: graphs.Graph) -> list[int]:
    """The first and the last node, and the one of the largest degree."""
    return sorted({0, graph.num_nodes - 1, int(graph.degrees.argmax())})


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.PAIRS)
def test_hops(comm, shared_tmp, name, policy):
    """From several sources, the first in every direction, with and without parents."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False, csc=True)
    sync = parts.make_sync(part)
    for place, source in enumerate(sources_of(graph)):
        for direction in DIRECTIONS if place == 0 else DIRECTIONS[:1]:
            check(part, sync, graph, source, direction, parents=place % 2 == 0)


@pytest.mark.mpi
def test_deep(comm, shared_tmp):
    """A path, many nodes that all know each other, another path: levels are narrow, wide, and narrow again."""
    path, crowd = np.arange(60), np.arange(30, 45)
    all_pairs = np.stack(np.meshgrid(crowd, crowd), axis=-1).reshape(-1, 2)
    pairs = np.concatenate([np.stack([path[:-1], path[1:]], axis=1), all_pairs[all_pairs[:, 0] < all_pairs[:, 1]]])
    graph = graphs.both_ways(graphs.make(path.size, pairs))
    file = graphs.write(shared_tmp / "g.h5", graph)
    part = parts.partition_graph(file, parts.policy_of("oec"), comm, weights=False, csc=True)
    sync = parts.make_sync(part)
    for direction in DIRECTIONS:
        for parents in (False, True):
            check(part, sync, graph, 0, direction, parents)


@pytest.mark.mpi
@policies
@pytest.mark.parametrize("name", graphs.SYMMETRIC)
def test_symmetric(comm, shared_tmp, name, policy):
    """A graph that says it is symmetric is pulled along its own edges, without a transpose."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False)
    assert part.symmetric and part.csc is None
    sync = parts.make_sync(part)
    for place, source in enumerate(sources_of(graph)[:3]):
        check(part, sync, graph, source, DIRECTIONS[place % 3], parents=source % 2 == 0)


@pytest.mark.mpi
@settings(max_examples=EXAMPLES)
@given(
    graph=graphs.small_graphs(),
    policy=st.sampled_from(list(parts.POLICIES)),
    direction=st.sampled_from(DIRECTIONS),
    parents=st.booleans(),
    symmetric=st.booleans(),
    where=st.integers(0, 11),
)
def test_any_graph(comm, shared_tmp, graph, policy, direction, parents, symmetric, where):
    """Any small graph, or that graph and its reverse, from any source."""
    graph = graphs.both_ways(graph) if symmetric else graph
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=symmetric)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False, csc=not symmetric)
    check(part, parts.make_sync(part), graph, where % graph.num_nodes, direction, parents)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc", "mixed"])
@pytest.mark.parametrize("symmetric", [False, True], ids=["directed", "symmetric"])
def test_changes_of_direction(comm, shared_tmp, symmetric, policy):
    """A graph on which 'auto' pushes, pulls and pushes again: a path, a dense core, a path."""
    core = graphs.random_directed(200, 4000, seed=3)
    pairs = [(v, v + 1) for v in range(40)] + [
        (40 + u, 40 + v) for u, v in zip(core.sources, core.targets, strict=True)
    ]
    pairs += [(v, v + 1) for v in range(239, 300)]
    graph = graphs.make(301, pairs)
    graph = graphs.both_ways(graph) if symmetric else graph
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=symmetric)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False, csc=not symmetric)
    for source in (0, 100, 300):
        for parents in (False, True):
            check(part, parts.make_sync(part), graph, source, "auto", parents)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc", "iec"])
@pytest.mark.parametrize("seed", ["0", "3", "4"])
def test_lowest_parent(comm, shared_tmp, monkeypatch, seed, policy):
    """A push finds all parents of a level, and takes the lowest, whatever the order of ids and threads."""
    monkeypatch.setenv("CUDAEMU_SEED", seed)
    monkeypatch.setenv("CUDAEMU_PREEMPT", "3" if seed > "0" else "")
    graph = graphs.random_directed(200, 1500, seed=5)
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm, weights=False)
    found = bfs(part, parts.make_sync(part), 3, "push", parents=True).labels["parents"]
    hops = graphs.serial_hops(graph, 3)
    closer = (hops[graph.targets] == hops[graph.sources] + 1) & (hops[graph.sources] >= 0)
    expected = np.full(graph.num_nodes, graph.num_nodes)
    np.minimum.at(expected, graph.targets[closer], graph.sources[closer])
    expected[hops < 0], expected[3] = -1, 3
    np.testing.assert_array_equal(parts.gather(part, found), expected)


@pytest.mark.mpi
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("index", ["u4", "i8"])
def test_order_and_index_type(comm, shared_tmp, index, order):
    """Local ids and the type of global ids do not change the answer."""
    graph = graphs.random_directed(100, 400)
    path = graphs.write(shared_tmp / "g.h5", graph, index=index)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, weights=False, csc=True, order=order)
    for direction in DIRECTIONS:
        check(part, parts.make_sync(part), graph, 17, direction, parents=True)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("policy", ["oec", "cvc", "mixed"])
def test_ranks_run_ahead(comm, shared_tmp, policy):
    """Through a long graph in fewer rounds than levels; what a rank found too early is corrected."""
    shortcut = [(v, v + 1) for v in range(999)] + [(0, 990), (990, 700), (700, 300)]
    graph = graphs.both_ways(graphs.make(1000, shortcut))
    part = parts.partition_graph(
        graphs.write(shared_tmp / "g.h5", graph, symmetric=True), parts.policy_of(policy), comm, weights=False
    )
    sync = Sync(make_plan(part, comm, "mpi"), comm, execution="bulk")
    ahead, by_level = (bfs(part, sync, 0, parents=parents).on_host() for parents in (False, True))
    np.testing.assert_array_equal(parts.gather(part, ahead.labels["hops"]), graphs.serial_hops(graph, 0))
    np.testing.assert_array_equal(ahead.labels["hops"], by_level.labels["hops"])
    assert ahead.rounds < by_level.rounds or policy != "oec"


@pytest.mark.mpi
def test_one_sync_for_many_runs(comm, shared_tmp):
    """Nothing of one run is left for the next: in one run after another, rounds and answers are the same."""
    graph = graphs.random_directed()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm, csc=True)
    sync = parts.make_sync(part)
    first = bfs(part, sync, 3).on_host()
    for _ in range(2):
        again = bfs(part, sync, 3).on_host()
        assert again.rounds == first.rounds
        np.testing.assert_array_equal(again.labels["hops"], first.labels["hops"])
