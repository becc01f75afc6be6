"""Strongly connected components on hard graphs under several policies, against SciPy."""

import graphs
import numpy as np
import parts
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cc import serial_components

from cusp.apps import scc as program
from cusp.apps.scc import prepare, scc
from cusp.apps.verify.check import VerificationError
from cusp.apps.verify.components import verify_strong_components
from cusp.runtime.devices import to_host


def check(part, sync, graph) -> None:
    """Run, compare with SciPy, and verify. Collective."""
    answer = scc(part, sync, prepare(part, sync)).on_host()
    expected = serial_components(graph, "strong")
    found = parts.gather(part, answer.labels["component"])
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, expected)
    _, members = np.unique(expected, return_counts=True)
    assert answer.figures == {"components": members.size, "largest": members.max()}
    verify_strong_components(part, sync, answer.labels["component"], **answer.figures)


def rings(sizes: list[int], seed: int) -> graphs.Graph:
    """A chain of rings of these sizes, which edges lead along in one direction; nodes are numbered at random."""
    starts = np.cumsum([0, *sizes])
    pairs = [(first + v, first + (v + 1) % size) for first, size in zip(starts, sizes) for v in range(size)]
    pairs += [(first, second) for first, second in zip(starts[:-2], starts[1:-1])]
    numbers = np.random.default_rng(seed).permutation(starts[-1])
    return graphs.make(int(starts[-1]), numbers[np.array(pairs)])


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc", "mixed"])
def test_hard_graphs(comm, shared_tmp, policy):
    more = {"rings": rings([3, 1, 4, 1, 5, 9, 2, 6, 5, 3], 4)}
    for part, sync, graph in parts.hard_parts(comm, shared_tmp, policy, more, csc=True):
        check(part, sync, graph)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", parts.share(["oec", "cvc", "mixed"]))
def test_symmetric(comm, shared_tmp, policy):
    """A graph that says it is symmetric needs no transpose: its components are strong."""
    graph = graphs.both_ways(rings([3, 1, 4, 1, 5], 2)._replace(num_nodes=20))
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False)
    assert part.csc is None
    check(part, parts.make_sync(part), graph)


@pytest.mark.mpi
@settings(max_examples=10)
@given(graph=graphs.small_graphs(most_nodes=20, most_edges=40), policy=st.sampled_from(parts.SOME))
def test_any_graph(comm, shared_tmp, graph, policy):
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, weights=False, csc=True)
    check(part, parts.make_sync(part), graph)


@pytest.mark.mpi
@pytest.mark.parametrize("mistake", ["split", "joined", "not the smallest", "not a member", "components", "largest"])
def test_wrong_answers_are_refused(comm, shared_tmp, mistake):
    """The verifier sees every kind of mistake, on every rank."""
    graph = graphs.make(20, [(v, (v + 1) % 10) for v in range(10)] + [(v, 10 + (v + 1) % 10) for v in range(10, 20)]
                        + [(3, 14), (4, 14)])  # fmt: skip
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = parts.partition_graph(path, parts.policy_of("cvc"), comm, weights=False)
    sync, gids = parts.make_sync(part), to_host(part.gids[: part.num_masters])
    right = serial_components(graph, "strong")  # 0 and 10
    wrong = {
        "split": np.arange(20),
        "joined": np.zeros(20, np.int64),
        "not the smallest": np.where(right == 10, 11, right),
        "not a member": np.where(right == 10, 9, right),
    }.get(mistake, right)
    figures = {name: int(np.unique(wrong, return_counts=True)[1].max() if name == "largest" else np.unique(wrong).size)
               for name in ("components", "largest")}  # fmt: skip
    if mistake in figures:
        figures[mistake] += 1
    with pytest.raises(VerificationError):
        verify_strong_components(part, sync, wrong[gids], **figures)
    verify_strong_components(part, sync, right[gids], 2, 10)


@pytest.mark.mpi
def test_command(comm, shared_tmp):
    """The program itself, on the graph that it makes."""
    assert program.main(program.APP, comm, ["--verify", "--device", parts.WANTED]) == 0
