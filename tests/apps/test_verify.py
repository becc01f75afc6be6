"""The verifiers: they accept right answers, and no planted error of any kind, on the device of the answer."""

import sys

import graphs
import numpy as np
import parts
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cusp.apps.bfs import bfs
from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.library import APPS, app_of
from cusp.apps.sssp import measure, sssp
from cusp.apps.verify.check import VerificationError
from cusp.apps.verify.components import verify_components, verify_strong_components
from cusp.apps.verify.paths import verify_distances, verify_hops, verify_widths
from cusp.partition import Partition
from cusp.runtime import devices
from cusp.runtime.devices import to_host
from gluon.sync import Sync

POLICIES = ["cvc", "mixed"]
ON_HOST = ("triangles", "similarity", "truss", "msf", "sample", "walks")  # whose answers are checked there
policies = pytest.mark.parametrize("policy", POLICIES)
FAR = 50  # an unreached node of the graph below, with an edge into the reached part


def graph_with_all() -> graphs.Graph:
    """A random part of 40 nodes that can be reached from 0, and an island of which 50 leads into it."""
    inner = graphs.random_directed(40, 160, seed=6)
    pairs = [*zip(inner.sources, inner.targets, strict=True), *((v, v + 1) for v in range(39))]
    return graphs.make(55, [*pairs, (50, 3), (50, 51), (51, 50)])


@pytest.fixture
def solved(comm, shared_tmp):
    """Function (policy, weights) -> partition, sync, graph, hops, parents, distances from node 0."""

    def solve(policy, zeros=False):
        graph = graph_with_all()
        if zeros:
            graph = graph._replace(weights=graph.weights * (np.arange(graph.num_edges) % 3 > 0))
        path = graphs.write(shared_tmp / "g.h5", graph)
        part = parts.partition_graph(path, parts.policy_of(policy), comm, csc=True)
        sync = parts.make_sync(part)
        labels = bfs(part, sync, 0, parents=True).on_host().labels
        distances = sssp(part, sync, 0, measure(part, sync)).on_host().labels["distance"]
        return part, sync, graph, labels["hops"], labels["parents"], distances

    return solve


def planted(part, values, gid, value):
    """The values with another one at a node."""
    wrong = values.copy()
    wrong[to_host(part.gids[: part.num_masters]) == gid] = value
    return wrong


@pytest.mark.mpi
@policies
@pytest.mark.parametrize("zeros", [False, True], ids=["positive", "zeros"])
def test_right_answers(solved, policy, zeros):
    """Accepted."""
    part, sync, _, hops, parents, distances = solved(policy, zeros)
    verify_hops(part, sync, 0, hops)
    verify_hops(part, sync, 0, hops, parents)
    verify_distances(part, sync, 0, distances)
    verify_distances(part, sync, 0, np.where(distances < 0, np.inf, distances))


HOP_ERRORS = {
    "too_few": lambda graph, hops: (int(hops.argmax()), hops.max() - 1),
    "far_too_few": lambda graph, hops: (int(hops.argmax()), 1),
    "too_many": lambda graph, hops: (int(hops.argmax()), hops.max() + 1),
    "unreached_as_reached": lambda graph, hops: (FAR, 4),
    "isolated_as_reached": lambda graph, hops: (54, 1),
    "reached_as_unreached": lambda graph, hops: (int(hops.argmax()), -1),
    "second_source": lambda graph, hops: (int(hops.argmax()), 0),
    "isolated_source": lambda graph, hops: (54, 0),
    "source_not_0": lambda graph, hops: (0, 1),
    "source_unreached": lambda graph, hops: (0, -1),
}


@pytest.mark.mpi
@policies
@pytest.mark.parametrize("error", list(HOP_ERRORS))
def test_wrong_hops(solved, policy, error):
    """One wrong entry is found, on every rank."""
    part, sync, graph, hops, _, _ = solved(policy)
    wrong = planted(part, hops, *HOP_ERRORS[error](graph, graphs.serial_hops(graph, 0)))
    with pytest.raises(VerificationError, match="hops"):
        verify_hops(part, sync, 0, wrong)


@pytest.mark.mpi
@policies
def test_nothing_reached(solved, policy):
    """That nothing at all was reached is no answer; nor is that of another source."""
    part, sync, _, hops, _, distances = solved(policy)
    with pytest.raises(VerificationError):
        verify_hops(part, sync, 0, np.full_like(hops, -1))
    with pytest.raises(VerificationError):
        verify_hops(part, sync, 1, hops)
    with pytest.raises(VerificationError):
        verify_distances(part, sync, 1, distances)


def parent_errors(graph: graphs.Graph, hops: np.ndarray) -> dict[str, tuple[int, int]]:
    """(node, wrong parent) of each kind."""
    edges = set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    deep = int(hops.argmax())
    same = next((u, v) for u, v in sorted(edges) if u != v and hops[u] == hops[v] > 0)
    stranger = next(u for u in range(40) if hops[u] == hops[deep] - 1 and (u, deep) not in edges)
    return {
        "no_edge": (deep, stranger),
        "same_level": (same[1], same[0]),
        "itself": (deep, deep),
        "none": (deep, -1),
        "no_such_node": (deep, graph.num_nodes + 5),
        "of_the_unreached": (FAR, 51),
        "of_the_source": (0, deep),
        "source_without": (0, -1),
    }


@pytest.mark.mpi
@policies
def test_wrong_parents(solved, policy):
    """Each kind of wrong parent is found."""
    part, sync, graph, hops, parents, _ = solved(policy)
    for node, parent in parent_errors(graph, graphs.serial_hops(graph, 0)).values():
        with pytest.raises(VerificationError, match="parents"):
            verify_hops(part, sync, 0, hops, planted(part, parents, node, parent))


DISTANCE_ERRORS = {
    "too_short": lambda distances: (int(distances.argmax()), distances.max() - 1),
    "too_long": lambda distances: (int(distances.argmax()), distances.max() + 1),
    "unreached_as_reached": lambda distances: (FAR, 10),
    "isolated_as_reached": lambda distances: (54, 1),
    "reached_as_unreached": lambda distances: (int(distances.argmax()), -1),
    "second_source": lambda distances: (int(distances.argmax()), 0),
    "source_not_0": lambda distances: (0, 1),
    "source_unreached": lambda distances: (0, -1),
}


@pytest.mark.mpi
@policies
@pytest.mark.parametrize("error", list(DISTANCE_ERRORS))
@pytest.mark.parametrize("real", [False, True], ids=["integers", "floats"])
def test_wrong_distances(solved, policy, error, real):
    """One wrong entry is found, with positive and with zero weights."""
    for zeros in (False, True):
        part, sync, graph, _, _, distances = solved(policy, zeros)
        right = graphs.serial_distances(graph, 0)
        assert right.max() > 2
        node, value = DISTANCE_ERRORS[error](right)
        if real:
            distances, value = np.where(distances < 0, np.inf, distances), np.inf if value < 0 else float(value)
        with pytest.raises(VerificationError, match="distance"):
            verify_distances(part, sync, 0, planted(part, distances, node, value))


@pytest.mark.mpi
@policies
def test_not_a_number(solved, policy):
    """NaN is no distance."""
    part, sync, _, _, _, distances = solved(policy)
    reals = np.where(distances < 0, np.inf, distances)
    for node in (0, 17, 54):
        with pytest.raises(VerificationError):
            verify_distances(part, sync, 0, planted(part, reals, node, np.nan))


@pytest.mark.mpi
@policies
@pytest.mark.parametrize("value", [0, 3])
def test_cycle_that_explains_itself(comm, shared_tmp, policy, value):
    """Nodes on a cycle of weight 0 support each other, but not from the source: unreached or too near."""
    graph = graphs.make(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 2)], np.array([1, 9, 0, 0, 0]))
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    sync = parts.make_sync(part)
    right = sssp(part, sync, 0, measure(part, sync)).on_host().labels["distance"]
    verify_distances(part, sync, 0, right)
    wrong = right
    for node in (2, 3, 4):
        wrong = planted(part, wrong, node, value)
    with pytest.raises(VerificationError):
        verify_distances(part, sync, 0, wrong)


@pytest.mark.mpi
@settings(max_examples=30)
@given(
    graph=graphs.small_graphs(),
    policy=st.sampled_from(POLICIES),
    node=st.integers(0, 11),
    change=st.integers(-4, 4).filter(bool),
)
def test_any_wrong_entry(comm, shared_tmp, graph, policy, node, change):
    """Any change of any entry of any answer is found."""
    node %= graph.num_nodes
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    sync = parts.make_sync(part)
    hops, distances = graphs.serial_hops(graph, 0), graphs.serial_distances(graph, 0)
    assume(hops[node] + change >= -1)
    gids = to_host(part.gids[: part.num_masters])
    verify_hops(part, sync, 0, hops[gids])
    verify_distances(part, sync, 0, distances[gids])
    with pytest.raises(VerificationError):
        verify_hops(part, sync, 0, planted(part, hops[gids], node, hops[node] + change))
    if distances[node] + change >= -1:
        with pytest.raises(VerificationError):
            wrong = planted(part, distances[gids], node, distances[node] + change)
            verify_distances(part, sync, 0, wrong)


@pytest.mark.mpi
@policies
def test_messages_name_the_edge(comm, shared_tmp, policy):
    """Both ends of the edge that is wrong, with their values, and its weight if that matters."""
    graph = graphs.make(3, [(0, 1), (1, 2), (1, 2)], [4, 5, 9])
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    sync, gids = parts.make_sync(part), to_host(part.gids[: part.num_masters])
    checks = {
        "hops of node 1 is 1, but that of its out-neighbour 2 is 3, over an edge": (verify_hops, [0, 1, 3]),
        "hops of node 1 is 1, but that of its out-neighbour 2 is 2147483647": (verify_hops, [0, 1, -1]),
        "distance of node 1 is 4, but that of its out-neighbour 2 is 11, over an edge of weight 5": (
            verify_distances,
            [0, 4, 11],
        ),
        "width of node 1 is 4, but that of its out-neighbour 2 is 3, over an edge of weight 9": (
            verify_widths,
            [2**63 - 1, 4, 3],
        ),
    }
    for message, (verify, values) in checks.items():
        with pytest.raises(VerificationError, match=message):
            verify(part, sync, 0, np.array(values, np.int32 if verify is verify_hops else np.int64)[gids])
    with pytest.raises(VerificationError, match="the edge 1 -> 2 connects the components 0 and 2"):
        verify_components(part, sync, np.array([0, 0, 2])[gids], 2, 2)


@pytest.mark.mpi
@policies
def test_parents_that_make_a_cycle(comm, shared_tmp, policy):
    """Over edges of weight 0 each is as close as its parent says, but none leads to the source."""
    graph = graphs.make(4, [(0, 1), (1, 2), (2, 3), (3, 2)], [2, 0, 0, 0])
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    sync, gids = parts.make_sync(part), to_host(part.gids[: part.num_masters])
    distances, parents = np.array([0, 2, 2, 2])[gids], np.array([0, 0, 1, 2])[gids]
    verify_distances(part, sync, 0, distances, parents)
    with pytest.raises(VerificationError, match="parents: .* node [23]"):
        verify_distances(part, sync, 0, distances, planted(part, parents, 2, 3))


@pytest.mark.mpi
@policies
def test_weights_that_vanish_in_a_sum(comm, shared_tmp, policy):
    """1 + 1e-30 is 1: two nodes explain each other, though all weights are above 0."""
    graph = graphs.make(4, [(0, 1), (2, 3), (3, 2)], [1, 1e-30, 1e-30])
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph, weight="f8"), parts.policy_of(policy), comm)
    sync, gids = parts.make_sync(part), to_host(part.gids[: part.num_masters])
    verify_distances(part, sync, 0, np.array([0, 1, np.inf, np.inf])[gids])
    with pytest.raises(VerificationError, match="distance: no in-edge justifies the value of node [23]"):
        verify_distances(part, sync, 0, np.array([0, 1, 1, 1.0])[gids])


@pytest.mark.mpi
@pytest.mark.parametrize("ring", [False, True], ids=["path", "cycle"])
def test_a_long_path_is_no_long_verification(comm, shared_tmp, monkeypatch, ring):
    """Passes and exchanges do not grow with the length of a path of equal values, but for what must be sent."""
    size = 2000
    pairs = [(node, (node + 1) % size) for node in range(size - (not ring))]
    one_way = graphs.make(size, pairs, np.zeros(len(pairs), np.int64))
    calls = []
    for kind, name in (EdgeOperator, "_run"), (Sync, "_begin"):
        function = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *given, function=function: (calls.append(1), function(*given))[1])
    for number, graph in enumerate((one_way, graphs.both_ways(one_way))):
        path = graphs.write(shared_tmp / f"g{number}.h5", graph)
        part = parts.partition_graph(path, "oec", comm, csc=True)
        sync, gids = parts.make_sync(part), to_host(part.gids[: part.num_masters])
        calls.clear()
        verify_components(part, sync, gids * 0, 1, size)
        verify_distances(part, sync, 0, gids * 0)
        verify_widths(part, sync, 0, np.where(gids == 0, 2**63 - 1, 0))
        if number or ring:
            verify_strong_components(part, sync, gids * 0, 1, size)
        assert len(calls) < 150


@pytest.mark.mpi
@pytest.mark.parametrize("name", [name for name in APPS if name not in ON_HOST])
def test_edges_stay_on_the_device(comm, shared_tmp, monkeypatch, name):
    """No array with an entry for each edge is copied to the host, and no partition as a whole."""
    if (name, parts.DEVICE) == ("betweenness", "cpu"):
        pytest.skip("CPUs copy a small graph to every rank")
    app = app_of(name)
    chosen = {"bfs": {"parents": True}, "forest": {"roots": [3, 7]}, "path": {"targets": [5]}}
    chosen |= {"table": {"origins": [3, 7]}, "ppr": {"seeds": [3, 7]}, "paths": {"source": 3, "target": 5}}
    options = parts.read_options(app, 40, **chosen.get(name, {}))
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(40, 4000))
    csc = app.needs_csc(options, False)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, weights=app.weighted, csc=csc)
    sync = parts.make_sync(part)
    prepared = app.prepare(part, sync, options)
    answer = app.run(part, sync, 3, prepared, options).on_host()
    copied = []

    def watched_to_host(array):
        copied.append(getattr(array, "size", 1))
        return array.get() if hasattr(array, "get") else array

    def watched_move(array, device):
        return watched_to_host(array) if device == "cpu" or array is None else move(array, device)

    def refuse(*arguments):
        raise AssertionError("the partition is copied")

    to_host, move = devices.to_host, devices.move
    for module in list(sys.modules.values()):
        if getattr(module, "to_host", None) is to_host and not module.__name__.startswith("test_"):
            monkeypatch.setattr(module, "to_host", watched_to_host)
        if getattr(module, "move", None) is move and not module.__name__.startswith("test_"):
            monkeypatch.setattr(module, "move", watched_move)
    monkeypatch.setattr(Partition, "on", refuse)
    app.check(part, sync, 3, answer, prepared, options)
    assert max(copied, default=0) <= 2 * part.num_nodes
    devices.to_host(part.targets)
    assert max(copied) == part.num_local_edges > 10 * part.num_nodes  # a copy would have been seen
