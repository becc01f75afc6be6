"""Core numbers on hard graphs under several policies, against NetworkX."""

import argparse

import graphs
import networkx
import numpy as np
import parts
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cusp.apps.harness import main
from cusp.apps.kcore import APP, kcore, prepare
from cusp.apps.verify.check import VerificationError
from cusp.apps.verify.cores import verify_cores
from cusp.runtime.devices import to_host
from gluon.plan import make_plan
from gluon.sync import Sync


def serial_cores(graph: graphs.Graph) -> np.ndarray:
    """(nodes,) int32: core numbers of the graph without directions, loops and parallel edges."""
    undirected = networkx.Graph()
    undirected.add_nodes_from(range(graph.num_nodes))
    undirected.add_edges_from(
        (u, v) for u, v in zip(graph.sources.tolist(), graph.targets.tolist(), strict=True) if u != v
    )
    found = networkx.core_number(undirected)
    return np.array([found[node] for node in range(graph.num_nodes)], np.int32)


def check(part, sync, graph, ks=(1, 3)) -> None:
    """Run for all core numbers and for some k, compare with NetworkX, and verify. Collective."""
    expected = serial_cores(graph)
    prepared = prepare(part, sync)
    answer = kcore(part, sync, prepared).on_host()
    found = parts.gather(part, answer.labels["core"])
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)
    assert answer.figures == {"degeneracy": expected.max()}
    APP.check(part, sync, None, answer, prepared, argparse.Namespace(k=None))
    for k in ks:
        answer = kcore(part, sync, prepared, k).on_host()
        np.testing.assert_array_equal(parts.gather(part, answer.labels["in_core"]), expected >= k)
        assert answer.figures == {"members": np.count_nonzero(expected >= k)}
        APP.check(part, sync, None, answer, prepared, argparse.Namespace(k=k))


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc", "mixed", "random"])
def test_hard_graphs(comm, shared_tmp, policy):
    for part, sync, graph in parts.hard_parts(comm, shared_tmp, policy):
        check(part, sync, graph, ks=(2,))


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("policy", ["oec", "mixed"])
def test_round_by_round(comm, shared_tmp, policy):
    """Where kernels of several ranks do not wait for each other, as on several hosts."""
    for part, _, graph in parts.hard_parts(comm, shared_tmp, policy):
        check(part, Sync(make_plan(part, comm, "mpi"), comm), graph, ks=(2,))


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("policy", ["oec", "cvc", "one_rank"])
def test_each_mirror_is_told_once(comm, shared_tmp, policy):
    """In one kernel on the GPUs of several ranks, 4 bytes tell that a master is gone, in each trial; with k fewer."""
    graph = graphs.random_directed(150, 900, 3)
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    plan = make_plan(part, comm)
    if Sync(plan, comm).peers is None:
        pytest.skip("the ranks do not have GPUs of their own")
    prepared = prepare(part, Sync(plan, comm))
    mirrors = comm.allreduce(prepared.part.num_proxies - prepared.part.num_masters)
    told = []
    for k in None, None, 6:
        sync = Sync(plan, comm)
        kcore(part, sync, prepared, k)
        told.append(comm.allreduce(sync.bytes_sent("broadcast")))
        messages = comm.allreduce(sum(exchange.messages for exchange in sync.traffic))
        assert (messages > 0) == (mirrors > 0)  # who shares no node with others need not meet them
    assert told[:2] == [4 * mirrors, 4 * mirrors]
    assert told[2] <= told[0] and (policy == "one_rank" or 0 < told[2] < told[0])


@pytest.mark.mpi
def test_more_neighbours_than_any_node_has(comm, shared_tmp):
    """A k of any size: no node is in that core."""
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graphs.HARD["hub"]()), parts.policy_of("oec"), comm)
    check(part, parts.make_sync(part), graphs.HARD["hub"](), ks=(40, 2**31, 10**15))


@pytest.mark.mpi
@settings(max_examples=10)
@given(
    graph=graphs.small_graphs(most_nodes=20, most_edges=80),
    policy=st.sampled_from(parts.SOME),
    symmetric=st.booleans(),
    k=st.integers(1, 7),
)
def test_any_graph(comm, shared_tmp, graph, policy, symmetric, k):
    """Any small graph, or that graph and its reverse."""
    graph = graphs.both_ways(graph) if symmetric else graph
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=symmetric)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False)
    check(part, parts.make_sync(part), graph, [k])


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc"])
def test_hubs_lose_most_at_once(comm, shared_tmp, policy):
    """Three nodes that know each other, with thousands of leaves each, and one that goes with its last leaf."""
    leaves = np.arange(4, 28_004)
    pairs = np.append(np.stack([leaves, leaves % 4], axis=1), [[0, 1], [1, 2], [2, 0]], axis=0)
    graph = graphs.both_ways(graphs.make(28_004, pairs))
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False)
    check(part, parts.make_sync(part), graph)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc"])
def test_many_cores(comm, shared_tmp, policy):
    """A graph with cores inside of cores and long tails, which are peeled node by node."""
    rng = np.random.default_rng(5)
    pairs = [(u, v) for size in (6, 12, 25, 50, 100) for u, v in rng.integers(0, size, (160, 2))]
    pairs += [(v, v + 1) for v in range(99, 160)]
    graph = graphs.make(170, pairs)
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    check(part, parts.make_sync(part), graph, [2, 5, 9])


@pytest.mark.mpi
@pytest.mark.parametrize("mistake", ["too high", "too low", "all too low", "degeneracy"])
def test_wrong_answers_are_refused(comm, shared_tmp, mistake):
    """The verifier sees numbers that are too high or too low, of some nodes and of all."""
    graph = graphs.make(30, [(u, v) for u in range(8) for v in range(u)] + [(v, v + 1) for v in range(29)])
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, weights=False)
    prepared = prepare(part, parts.make_sync(part))
    own = to_host(part.gids[: part.num_masters])
    right = serial_cores(graph)  # 7 and 1
    wrong = {
        "too high": np.where(own == 20, 2, right[own]),
        "too low": np.where(own == 3, 6, right[own]),
        "all too low": np.where(right[own] == 7, 4, 1),
    }.get(mistake, right[own])
    with pytest.raises(VerificationError):
        verify_cores(prepared.part, parts.make_sync(prepared.part), wrong.astype(np.int32),
                     degeneracy=8 if mistake == "degeneracy" else None)  # fmt: skip
    members = (wrong == 7) if mistake != "degeneracy" else own < 9
    if mistake != "too high":
        with pytest.raises(VerificationError):
            verify_cores(prepared.part, parts.make_sync(prepared.part), members.astype(np.int32), k=7)


@pytest.mark.mpi
@pytest.mark.limit(300)
def test_command(comm, shared_tmp):
    """The program itself, on the graph that it makes: all core numbers, and one core."""
    for more in [], ["--k", "5"]:
        assert main(APP, comm, ["--verify", "--device", parts.WANTED, *more]) == 0
