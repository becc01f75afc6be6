"""Long graphs: searches and peelings with many rounds of few nodes, which blocks of a GPU take on their own."""

import graphs
import networkx
import numpy as np
import parts
import pytest

from cusp.apps.bfs import bfs
from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.kcore import kcore
from cusp.apps.kcore import prepare as prepare_kcore
from cusp.apps.shared.lengths import measure
from cusp.apps.sssp import sssp
from gluon.label import Label
from gluon.reduction import MAX, MIN

SEEDS = ["0", "3", pytest.param("4", marks=pytest.mark.slow)]  # of the order of threads, where it can be chosen
SIZES = {7: 3000, 80: 6000}  # by width: both have many levels


def make_map(width: int, size: int, directed: bool) -> graphs.Graph:
    """A lattice with gaps, some short cuts and dead ends, its nodes numbered at random."""
    rng = np.random.default_rng(width)
    pairs = graphs.lattice(size, width)
    pairs = pairs[rng.random(len(pairs)) < 0.95]
    cuts = rng.integers(0, size, (size // 500, 2))
    ends = np.stack([rng.integers(0, size, size // 20), size + np.arange(size // 20)], axis=1)
    back = pairs[rng.random(len(pairs)) < directed / 2, ::-1]
    pairs = np.concatenate([pairs, back, cuts, ends])
    graph = graphs.make(size + len(ends), rng.permutation(size + len(ends))[pairs], rng.integers(1, 100, len(pairs)))
    return graph if directed else graphs.both_ways(graph)


def partition(comm, folder, graph, symmetric):
    path = graphs.write(folder / "g.h5", graph, symmetric=symmetric)
    return parts.partition_graph(path, parts.policy_of("oec"), comm, weights=True, csc=not symmetric)


def choose_order(monkeypatch, seed):
    if parts.SIZE > 1 and parts.WANTED == "gpu":
        pytest.skip("blocks wait for other ranks there")
    if seed > "0" and parts.WANTED == "cpu":
        pytest.skip("there is one order only")
    monkeypatch.setenv("CUDAEMU_SEED", seed)
    monkeypatch.setenv("CUDAEMU_PREEMPT", "5" if seed > "0" else "")


@pytest.mark.mpi
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("width, directed", [(7, False), (7, True), (80, False), (80, True)])
def test_bfs(comm, shared_tmp, monkeypatch, width, directed, seed):
    """Hops, the number of rounds, and the lowest parents."""
    choose_order(monkeypatch, seed)
    graph = make_map(width, SIZES[width], directed)
    part = partition(comm, shared_tmp, graph, not directed)
    source = int(graph.sources[0])
    hops = graphs.serial_hops(graph, source)
    closer = (hops[graph.targets] == hops[graph.sources] + 1) & (hops[graph.sources] >= 0)
    lowest = np.full(graph.num_nodes, graph.num_nodes)
    np.minimum.at(lowest, graph.targets[closer], graph.sources[closer])
    lowest[hops < 0], lowest[source] = -1, source
    for direction in ("push", "auto"):
        for parents in (False, True):
            answer = bfs(part, parts.make_sync(part), source, direction, parents=parents)
            np.testing.assert_array_equal(parts.gather(part, answer.labels["hops"]), hops)
            if comm.size > 1 or parts.WANTED != "gpu":
                continue
            assert int(answer.rounds) == hops[graph.sources].max() + 1
            if parents:
                found = parts.gather(part, answer.labels["parents"])
                np.testing.assert_array_equal(found[hops > 16], lowest[hops > 16])
                assert np.array_equal(found, lowest) or direction == "auto"


@pytest.mark.mpi
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("width", [7, 80])
def test_sssp(comm, shared_tmp, monkeypatch, width, seed):
    choose_order(monkeypatch, seed)
    graph = make_map(width, SIZES[width], width == 7)
    part = partition(comm, shared_tmp, graph, width != 7)
    source = int(graph.sources[0])
    sync = parts.make_sync(part)
    for delta in (None, 10.0, 1000.0):
        answer = sssp(part, sync, source, lengths=measure(part, sync, delta))
        found = parts.gather(part, answer.labels["distance"])
        np.testing.assert_array_equal(found, graphs.serial_distances(graph, source))


@pytest.mark.mpi
@pytest.mark.parametrize("seed", SEEDS)
def test_kcore(comm, shared_tmp, monkeypatch, seed):
    choose_order(monkeypatch, seed)
    graph = make_map(40, 4000, False)
    part = partition(comm, shared_tmp, graph, True)
    sync = parts.make_sync(part)
    answer = kcore(part, sync, prepare_kcore(part, sync))
    simple = networkx.Graph(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    simple.remove_edges_from(networkx.selfloop_edges(simple))
    expected = np.zeros(graph.num_nodes, np.int32)
    for node, core in networkx.core_number(simple).items():
        expected[node] = core
    np.testing.assert_array_equal(parts.gather(part, answer.labels["core"]), expected)


FAR = 10**6


@pytest.mark.mpi
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("steps", [1, None] if parts.WANTED == "gpu" else [None])
@pytest.mark.parametrize("width, end", parts.share([(7, "dst"), (80, "dst"), (30, "src")]))
def test_edge_operator(comm, shared_tmp, monkeypatch, width, end, steps, seed):
    """Operators of users, whose rounds a GPU runs in one go; with few of them at once, too."""
    choose_order(monkeypatch, seed)
    if steps:
        monkeypatch.setattr("cusp.apps.operators.expressions.drains_gpu.STEPS_AT_ONCE", steps)
    graph = make_map(width, 2000, width == 7)
    part = partition(comm, shared_tmp, graph, width != 7 and end == "dst")
    sync, source = parts.make_sync(part), int(graph.sources[0])
    label, widest = Label(part, np.int64, FAR, MIN), Label(part, np.float32, 0, MAX)
    label.write(source, 0)
    widest.write(source, 1000)
    if end == "dst":
        EdgeOperator("min(widest, weight)", "dst.widest", priority="-widest").until_quiet(part, sync, widest=widest)
        found = parts.gather(part, widest.masters())
        found[source] = (expected := graphs.serial_widths(graph, source))[source]
        np.testing.assert_array_equal(found, np.maximum(expected, 0))
    operator = EdgeOperator("distance + weight", f"{end}.distance", where="weight > 0", priority="distance")
    assert operator.until_quiet(part, sync, distance=label) > 0
    expected = graphs.serial_distances(graph, source)  # the graph of "src" has every edge in both directions
    np.testing.assert_array_equal(parts.gather(part, label.masters()), np.where(expected < 0, FAR, expected))
    assert sync.total(label.num_updated_masters())[0] == 0
