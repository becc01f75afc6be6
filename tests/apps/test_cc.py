"""Connected components on hard graphs under every policy, and on real graphs, against SciPy and published answers."""

import itertools
from collections.abc import Iterator

import graphs
import numpy as np
import parts
import pytest
import ranks
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from cusp.apps import cc as program
from cusp.apps.cc import cc, prepare
from cusp.apps.operators.structure.interfaces import Cc
from cusp.apps.verify.check import VerificationError
from cusp.apps.verify.components import verify_components
from cusp.policies import load_policy
from cusp.runtime.devices import backend, move, to_host
from gluon.plan import make_plan
from gluon.sync import Sync


def serial_components(graph: graphs.Graph, connection: str = "weak") -> np.ndarray:
    """(nodes,) int64: the smallest node in the component of each."""
    ends = (graph.sources, graph.targets)
    matrix = coo_array((np.ones(graph.num_edges), ends), shape=(graph.num_nodes, graph.num_nodes))
    count, found = connected_components(matrix, connection=connection)
    smallest = np.full(count, graph.num_nodes)
    np.minimum.at(smallest, found, np.arange(graph.num_nodes))
    return smallest[found]


def ways(part) -> Iterator[Sync]:
    """How trees of several ranks meet: as the device does best, and by rounds, which all devices know. Collective."""
    yield parts.make_sync(part)
    if parts.WANTED != "cpu" and ranks.COMM.size > 1:
        yield Sync(make_plan(part, ranks.COMM, "mpi"), ranks.COMM)


def check(part, syncs, graph) -> list[int]:
    """Run with each sync layer, compare with SciPy, and verify; the rounds. Collective."""
    expected, rounds = serial_components(graph), []
    _, members = np.unique(expected, return_counts=True)
    for sync in syncs:
        answer = cc(part, sync, prepare(part, sync)).on_host()
        found = parts.gather(part, answer.labels["component"])
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)
        assert answer.figures == {"components": members.size, "largest": members.max()}
        rounds.append(answer.rounds)
    verify_components(part, sync, answer.labels["component"], **answer.figures)
    return rounds


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc", "mixed", "random"])
def test_hard_graphs(comm, shared_tmp, policy):
    for part, sync, graph in parts.hard_parts(comm, shared_tmp, policy):
        check(part, [sync], graph)


@pytest.mark.mpi
@settings(max_examples=12)
@given(
    graph=graphs.small_graphs(most_nodes=30),
    policy=st.sampled_from(parts.SOME),
    symmetric=st.booleans(),
    order=st.sampled_from(["degree", "natural"]),
)
def test_any_graph(comm, shared_tmp, graph, policy, symmetric, order):
    """Any small graph, or that graph and its reverse."""
    graph = graphs.both_ways(graph) if symmetric else graph
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=symmetric)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False, order=order)
    check(part, [parts.make_sync(part)], graph)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc", "random"])
def test_most_edges_are_left_out(comm, shared_tmp, policy):
    """A large component and smaller ones, some joined to it by edges that are not their first."""
    core = graphs.random_directed(300, 900, seed=3)
    pairs = [(400 - u, 400 - v) for u, v in zip(core.sources, core.targets, strict=True)]
    pairs += [(v, v + 1) for v in range(90) if v % 10 and v % 7] + [(3 * v, 3 * v + 200) for v in range(20)]
    graph = graphs.both_ways(graphs.make(420, pairs))
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    for order in "degree", "natural":
        part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False, order=order)
        check(part, ways(part), graph)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "random"])
def test_labels_of_large_trees_are_not_sent(comm, shared_tmp, policy):
    """Nodes in the large trees of all their ranks cost a bit: of 2,000, nearly all. One round of labels at most."""
    graph = graphs.both_ways(graphs.random_directed(2000, 40_000, seed=3))
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False)
    sync = Sync(make_plan(part, comm, "mpi"), comm)
    answer = cc(part, sync, prepare(part, sync))
    sent = sync.bytes_sent("reduce") + sync.bytes_sent("broadcast")
    shared = sum(lids.size for lids in sync.plan.lists("any").masters)
    assert answer.figures["components"] == 1
    assert answer.rounds <= 2
    assert sent <= shared / 8 + 100 * comm.size  # labels take four bytes each


BY_REMAINDER = """
def get_master(prop, node, mstate, masters):
    return node % prop.num_parts

def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    return src_master
"""


@pytest.mark.mpi
@pytest.mark.parametrize("joined", [True, False])
def test_edges_left_out_at_both_ends(comm, shared_tmp, joined):
    """A large tree on each rank, whose edges it leaves out, and edges between them of nodes that are no hubs.

    No rank looks at those before it learns that the others have left out other components, if there are any.
    """
    size, each = comm.size, 1100
    pairs = [(rank, rank + size * k) for rank in range(size) for k in range(1, each)]
    pairs += [(rank + size * k, rank + size * (k + 1)) for rank in range(size) for k in range(1, each - 50)]
    last = range((each - 1) * size, each * size)
    pairs += list(itertools.pairwise(last)) if joined else []
    graph = graphs.both_ways(graphs.make(each * size, pairs))
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    part = parts.partition_graph(path, load_policy(parts.user_file(BY_REMAINDER)), comm, weights=False)
    rounds = check(part, ways(part), graph)
    if parts.make_sync(part).peers is not None:
        assert rounds[0] == 2


@pytest.mark.parametrize("size", [0, 3, 1000, 5000])
def test_most_frequent(size):
    """Of samples in which one root is common, in which all are rare, and of two that are equally common."""
    ops = backend(Cc, parts.DEVICE)
    common = np.where(np.arange(size) % 3, 2, np.arange(size)).astype(np.int32)
    both = np.where(np.arange(size) < size // 2, 0, size // 2).astype(np.int32)
    few = np.arange(size, dtype=np.int32)
    for roots, expected in (common, 2), (few, -1 if size > 16 else 0), (both, 0 if size > 3 else 1):
        (found,) = to_host(ops.most_frequent(16, move(roots, parts.DEVICE)))
        assert found == (expected if size else -1)


@pytest.mark.mpi
@pytest.mark.parametrize("symmetric", [False, True])
def test_long_paths_cut_everywhere(comm, shared_tmp, symmetric):
    """Paths whose nodes are spread over all ranks: trees are small, and yet there are few rounds."""
    numbers = np.random.default_rng(2).permutation(1000)
    graph = graphs.make(1000, [(numbers[v], numbers[v + 1]) for v in range(990) if v != 900])
    graph = graphs.both_ways(graph) if symmetric else graph
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=symmetric)
    part = parts.partition_graph(path, parts.policy_of("random"), comm, weights=False)
    assert max(check(part, ways(part), graph)) <= 30


@pytest.mark.mpi
@pytest.mark.parametrize("mistake", ["split", "joined", "not the smallest", "not a member", "components", "largest"])
def test_wrong_answers_are_refused(comm, shared_tmp, mistake):
    """The verifier sees every kind of mistake, on every rank."""
    graph = graphs.make(30, [(v, v + 1) for v in range(29) if v != 9] + [(4, 4), (12, 11), (12, 11)])
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, weights=False)
    sync, gids = parts.make_sync(part), to_host(part.gids[: part.num_masters])
    right = serial_components(graph)  # 0 and 10
    wrong = {
        "split": np.where(np.arange(30) > 20, 21, right),
        "joined": np.zeros(30, np.int64),
        "not the smallest": np.where(right == 10, 11, right),
        "not a member": np.where(right == 10, 9, right),
    }.get(mistake, right)
    figures = {"components": 2, "largest": 20}
    if mistake in figures:
        figures[mistake] += 1
    with pytest.raises(VerificationError):
        verify_components(part, sync, wrong[gids], **figures)
    verify_components(part, sync, right[gids], 2, 20)


@pytest.mark.mpi
def test_large_trees_are_told_by_bits(comm, shared_tmp):
    """Where all masters are in the large tree of their rank, peers get the words that have bits of their mirrors."""
    graph = graphs.both_ways(graphs.make(150, [(u, v) for v in range(150) for u in range(v)]))
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph, symmetric=True), "oec", comm, weights=False)
    sync = parts.make_sync(part)
    answer = cc(part, sync, prepare(part, sync)).on_host()
    assert answer.figures == {"components": 1, "largest": 150} and not answer.labels["component"].any()
    if sync.peers is not None:
        others = [starts[part.rank : part.rank + 2] for starts in comm.allgather(part.mirror_starts)]
        words = sum(-(-end // 32) - begin // 32 for begin, end in others if begin < end)
        assert sync.bytes_sent("broadcast") == 4 * words


@pytest.mark.mpi
def test_one_sync_for_many_runs(comm, shared_tmp):
    """Nothing of one run is left for the next; on one rank there are no rounds."""
    graph = graphs.HARD["random_symmetric"]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, weights=False)
    sync = parts.make_sync(part)
    shared = prepare(part, sync)
    runs, sent = [], []
    for _ in range(3):
        runs.append(cc(part, sync, shared).on_host())
        sent.append(sync.bytes_sent("broadcast"))
    if sync.peers is not None:  # bits, and roots of masters in small trees
        assert sent == [sent[0], 2 * sent[0], 3 * sent[0]]
        assert sent[0] <= 4 * sum(lids.size + 2 for lids in sync.plan.any.masters)
    for run in runs[1:]:
        assert run.rounds == runs[0].rounds
        np.testing.assert_array_equal(run.labels["component"], runs[0].labels["component"])
    if ranks.COMM.size == 1:
        assert runs[0].rounds == 0


@pytest.mark.mpi
def test_command(comm, shared_tmp):
    """The program itself, on the graph that it makes, without options that choose a source."""
    assert program.main(program.APP, comm, ["--verify", "--device", parts.WANTED, "--trials", "2"]) == 0
