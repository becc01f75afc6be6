"""GPUs that reach each other's memory: searches that run on all at once, messages written straight there."""

import graphs
import numpy as np
import parts
import pytest
from spawn import mpirun

from cusp.apps.bfs import bfs, prepare
from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.sssp import measure, sssp
from cusp.apps.widest import widest
from cusp.runtime.devices import move, to_host
from gluon.label import Label
from gluon.plan import make_plan
from gluon.reduction import ADD, MAX, MIN
from gluon.sync import Sync

pytestmark = pytest.mark.skipif(parts.DEVICE != "gpu", reason="--device gpu was not asked for")
CASES = [
    ("random", "oec"),
    ("random", "one_rank"),
    ("random", "mixed"),
    ("hub", "cvc"),
    ("path", "oec"),
    ("loops_and_doubles", "iec"),
]


def reachable(comm) -> bool:
    """Whether each rank has a GPU of its own, whose memory the others reach."""
    from gluon.peers.memory_gpu import peers_of, why_unreachable

    return why_unreachable(comm) is None and peers_of(comm) is not None


@pytest.mark.mpi(min_size=2)
@pytest.mark.limit(300)
@pytest.mark.parametrize(("name", "policy"), CASES)
def test_searches(comm, shared_tmp, name, policy):
    """Hops are those of a queue, a parent is one hop before; search after search in the same memory."""
    if not reachable(comm):
        pytest.skip("the ranks do not have GPUs of their own")
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, csc=True)
    sync = Sync(make_plan(part, comm, "peer"), comm)
    assert sync.peers is not None
    prepared = prepare(part, sync)
    edges = set(zip(graph.sources.tolist(), graph.targets.tolist()))
    gids = np.concatenate(comm.allgather(to_host(part.gids)[: part.num_masters]))
    for source in range(0, graph.num_nodes, max(graph.num_nodes // 2, 1)):
        expected = graphs.serial_hops(graph, source)
        for direction, parents in (("auto", False), ("push", True), ("pull", False), ("pull", True), ("push", False)):
            labels = bfs(part, sync, source, direction, parents, prepared).labels
            found = {key: np.empty(graph.num_nodes, np.int64) for key in labels}
            for key, values in labels.items():
                found[key][gids] = np.concatenate(comm.allgather(to_host(values)))
            np.testing.assert_array_equal(found["hops"], expected, f"{direction} from {source}")
            for node in range(graph.num_nodes) if parents else ():
                parent, hops = found["parents"][node], expected[node]
                if hops > 0:
                    assert (parent, node) in edges and expected[parent] == hops - 1
                else:
                    assert parent == (source if hops == 0 else -1)


@pytest.mark.mpi(min_size=2)
@pytest.mark.limit(300)
@pytest.mark.parametrize(("width", "shuffled"), [(5, False), (30, False), (5, True)])
def test_long_searches(comm, shared_tmp, width, shuffled):
    """Hops and rounds, where levels are many and narrow: what was too high as ranks ran ahead is lowered."""
    if not reachable(comm):
        pytest.skip("the ranks do not have GPUs of their own")
    size, rng = 60 * width, np.random.default_rng(width)
    pairs = graphs.lattice(size, width)
    pairs = np.concatenate([pairs[rng.random(len(pairs)) < 0.95], rng.integers(0, size, (2, 2))])
    pairs = rng.permutation(size)[pairs] if shuffled else pairs
    graph = graphs.both_ways(graphs.make(size, pairs, np.ones(len(pairs), np.int64)))
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph, symmetric=True), "oec", comm)
    sync = Sync(make_plan(part, comm, "peer"), comm)
    prepared = prepare(part, sync)
    assert [*prepared] == ["peers"] and prepared["peers"].ahead
    own = to_host(part.gids)[: part.num_masters]
    for source in (int(graph.sources[0]), int(graph.sources[-1])):
        expected = graphs.serial_hops(graph, source)
        answer = bfs(part, sync, source, prepared=prepared)
        np.testing.assert_array_equal(to_host(answer.labels["hops"]), expected[own])
        assert int(answer.rounds) == expected.max() + 1 > 20
        meetings, _, _ = sync.peers.sent()
        assert shuffled or meetings < (comm.size - 1) * (16 + 0.8 * (expected.max() - 16))  # fewer than levels


@pytest.mark.mpi(min_size=2)
@pytest.mark.limit(300)
@pytest.mark.parametrize("delta", [None, 3.0])
def test_shortest_paths(comm, shared_tmp, delta):
    """Distances are Dijkstra's, where rows are sorted by weight and buckets are settled on all GPUs at once.

    An answer is not changed by the next search, which uses the same memory.
    """
    if not reachable(comm):
        pytest.skip("the ranks do not have GPUs of their own")
    graph = graphs.both_ways(graphs.random_directed(150, 1500, 5))
    low, high = np.minimum(graph.sources, graph.targets), np.maximum(graph.sources, graph.targets)
    graph = graph._replace(weights=1 + (low * 7919 + high * 104729) % 40)  # an edge weighs as much as its reverse
    path = graphs.write(shared_tmp / "g.h5", graph, weight=np.uint8, symmetric=True)
    part = parts.partition_graph(path, "oec", comm)
    sync = Sync(make_plan(part, comm, "peer"), comm)
    lengths = measure(part, sync, delta)
    assert type(lengths.settled).__name__ == "SettledPaths"
    own = to_host(part.gids)[: part.num_masters]
    found = {source: sssp(part, sync, source, lengths).labels["distance"] for source in (0, 70, 149)}
    for source, distance in found.items():
        np.testing.assert_array_equal(to_host(distance), graphs.serial_distances(graph, source)[own])


@pytest.mark.mpi(min_size=2)
@pytest.mark.limit(300)
@pytest.mark.parametrize(
    ("name", "policy", "weight"), [(*case, weight) for case, weight in zip(CASES, 2 * ["f8", "u1", "i8"])]
)
def test_running_ahead(comm, shared_tmp, name, policy, weight):
    """Distances are Dijkstra's for any policy, where no rank waits for another inside a bucket; search after search."""
    if not reachable(comm):
        pytest.skip("the ranks do not have GPUs of their own")
    graph = graphs.HARD[name]()
    graph = graph._replace(weights=(graph.sources * 7919 + graph.targets * 104729) % 40)
    path = graphs.write(shared_tmp / "g.h5", graph, weight=weight)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    sync = Sync(make_plan(part, comm, "peer"), comm)
    own, sources = to_host(part.gids)[: part.num_masters], range(0, graph.num_nodes, max(graph.num_nodes // 3, 1))
    for delta in (None, 1.0, 1e9):
        lengths = measure(part, sync, delta)
        assert lengths.settled is None
        for source in sources:
            found = to_host(sssp(part, sync, source, lengths).labels["distance"])[: part.num_masters]
            expected = graphs.serial_distances(graph, source)[own].astype(found.dtype)
            np.testing.assert_array_equal(np.where(np.isinf(found), -1, found), expected)


@pytest.mark.mpi(min_size=2)
@pytest.mark.limit(300)
@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("policy", ["oec", "cvc"])
def test_any_operator_runs_ahead(comm, shared_tmp, monkeypatch, policy, steps):
    """Widest paths, narrow ones first, along a part of the edges: an order that has nothing to do with the answer.

    With few steps in one kernel, too: all ranks stop together, and go on.
    """
    if steps:
        monkeypatch.setattr("cusp.apps.operators.expressions.drains_gpu.STEPS_AT_ONCE", steps)
    if not reachable(comm):
        pytest.skip("the ranks do not have GPUs of their own")
    graph = graphs.random_directed(200, 900, seed=4)
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    sync = Sync(make_plan(part, comm, "peer"), comm)
    width = Label(part, np.float64, -np.inf, MAX)
    operator = EdgeOperator("min(width, weight)", "dst.width", "weight > 2", priority="width + src.gid % 3", delta=2.0)
    kept = graph.weights > 2
    pairs = np.stack([graph.sources, graph.targets], axis=1)[kept]
    smaller = graphs.make(graph.num_nodes, pairs, graph.weights[kept])
    for source in 3, 77:
        width.values.fill(-np.inf)
        width.write(source, np.inf)
        operator.until_quiet(part, sync, width=width)
        found = parts.gather(part, width.masters())
        expected = graphs.serial_widths(smaller, source).astype(np.float64)
        expected = np.where(expected > -(2.0**63), expected, -np.inf)
        expected[source] = np.inf
        np.testing.assert_array_equal(found, expected)


@pytest.mark.mpi(min_size=2)
def test_width_of_buckets_is_chosen_again(comm, shared_tmp, monkeypatch):
    """The source of widest paths is infinitely wide, so steps behind its edges tell nothing; those behind others do."""
    if not reachable(comm):
        pytest.skip("the ranks do not have GPUs of their own")
    rng = np.random.default_rng(4)
    pairs = [(node, node + step) for node in range(480) for step in (1, 20)]
    graph = graphs.both_ways(graphs.make(500, pairs, rng.integers(1, 100, len(pairs))))
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), "oec", comm)
    sync, rounds = Sync(make_plan(part, comm, "peer"), comm), []
    for again in (1 << 60, 40):
        monkeypatch.setattr("cusp.apps.operators.expressions.drains_gpu.GUESSES", (0, again))
        answer = widest(part, sync, 7).on_host()
        np.testing.assert_array_equal(parts.gather(part, answer.labels["width"]), graphs.serial_widths(graph, 7))
        rounds.append(answer.rounds)
    assert rounds[0] <= 3
    assert rounds[1] > 5


@pytest.mark.mpi(min_size=2)
def test_the_same_bits_by_every_transport(comm, shared_tmp):
    """Values, sums of floats too, and what is updated, exchange after exchange; inboxes grow in between."""
    from gluon.peers.memory_gpu import why_unreachable

    if why_unreachable(comm) is not None:
        pytest.skip("the ranks do not reach each other's memory")
    path = graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]())
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm)
    random = np.random.default_rng(comm.rank)
    chosen = [random.random(part.num_proxies) < share for share in (0.1, 0.0, 1.0, 0.5)]
    results = []
    for transport in ("peer", "mpi"):
        sync, result = Sync(make_plan(part, comm, transport), comm), []
        for dtype, reduction, implied in ((np.uint8, MIN, 1), (np.float64, ADD, None), (np.int64, MIN, None)):
            label = Label(part, dtype, 0 if reduction is ADD else 100, reduction)
            for share in chosen:
                lids = move(np.flatnonzero(share), parts.DEVICE)
                values = np.full(lids.size, 1 if implied else 0.1 * (comm.rank + 1), dtype)
                label.values[lids] = move(values, parts.DEVICE)
                label.mark(lids)
                sync.reduce(label, write="any", implied=implied)
                sync.broadcast(label, read="any", implied=implied)
                result.append((to_host(label.values).tobytes(), to_host(label.take_updated()).tobytes()))
        results.append(result)
    assert results[0] == results[1]


ABSENT = """
import gluon.peers.memory_gpu as memory
memory.PATIENCE = 0.2
import sys, time
from cusp.launch import run_main
from cusp.runtime.devices import choose_device

def main(comm, argv):
    from cusp.apps.bfs import bfs, prepare
    from cusp.partitioner import partition_graph
    from gluon.plan import make_plan
    from gluon.sync import Sync
    choose_device("gpu", comm)
    part = partition_graph(([0, 1, 2, 3], [1, 2, 3, 0]), "oec", comm, device="gpu")
    sync = Sync(make_plan(part, comm, "peer"), comm)
    prepared = prepare(part, sync)
    comm.Barrier()  # compiled on all ranks
    bfs(part, sync, 0, prepared=prepared)
    if comm.rank == 1:
        time.sleep(60)
    bfs(part, sync, 0, prepared=prepared)

run_main(main)
"""


def test_a_rank_that_does_not_come(tmp_path):
    """The others end soon, with the name of that rank and exit code 1."""
    (tmp_path / "absent.py").write_text(ABSENT)
    done = mpirun(2, str(tmp_path / "absent.py"), timeout=60)
    if "TransportError" in done.stderr or "cannot be used" in done.stderr:
        pytest.skip("the ranks do not reach each other's memory")
    assert done.returncode == 1 and "rank 0 waited 0.2 s for the GPU of rank 1" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_ranks_that_share_a_gpu(tmp_path):
    """Messages still go straight into the partner's memory; kernels do not wait for each other."""
    graphs.write_here(tmp_path / "g.h5", graphs.HARD["random"]())
    program = ["-m", "cusp.apps.bfs", str(tmp_path / "g.h5"), "--device", "gpu", "--transport", "peer", "--verify"]
    done = mpirun(2, *program, env={"CUDAEMU_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0"})
    assert done.returncode == 0, done.stderr
    assert "transport: peer" in done.stdout
