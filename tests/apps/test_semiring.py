"""Products over semirings against dense matrices, and the algorithms written in them against the apps' own."""

import argparse

import graphs
import numpy as np
import parts
import pytest

from cusp.apps import pagerank as native_pagerank
from cusp.apps import semiring
from cusp.apps.bfs import bfs
from cusp.apps.semiring import ALGORITHMS, Matrix, pagerank, verify
from cusp.apps.sssp import measure, sssp
from cusp.errors import OptionError
from cusp.runtime.devices import move
from gluon.label import Label
from gluon.reduction import ADD, MAX, MIN, Reduction

XOR = Reduction("xor", "old ^ value", neutral=0, idempotent=False)
OPTIONS = argparse.Namespace(tolerance=1e-11)


def dense(graph: graphs.Graph, x: np.ndarray, product, join, zero: float, transposed: bool) -> np.ndarray:
    """The product, an edge at a time."""
    y = [zero] * graph.num_nodes
    for source, target, weight in graph.triples():
        row, column = (target, source) if transposed else (source, target)
        y[row] = join(y[row], product(x[column].item(), weight))
    return np.array(y)


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["cvc", "mixed"])
@pytest.mark.parametrize("transposed", [False, True])
def test_products(comm, shared_tmp, policy, transposed):
    """Three semirings, a mask, products of products; vectors have other values in their mirrors before."""
    graph = graphs.HARD["random"]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    A = Matrix(part, parts.make_sync(part))
    A = A.T if transposed else A
    entries = np.random.default_rng(3).integers(0, 50, graph.num_nodes)

    def vector(values: np.ndarray) -> Label:
        label = Label(part, values.dtype, 77, ADD)
        own = part.on("cpu").gids[: part.num_masters]
        label.masters()[:] = move(values[own], part.device)
        return label

    def same(label: Label, expected: np.ndarray) -> None:
        np.testing.assert_array_equal(parts.gather(part, label.masters()), expected)

    x = vector(entries)
    total = A.multiply(x)
    plus_times = dense(graph, entries, lambda a, b: a * b, lambda a, b: a + b, 0, transposed)
    same(total, plus_times)
    same(A.multiply(total, MIN, "x + weight"),
         dense(graph, plus_times, lambda a, b: a + b, min, 2**63 - 1, transposed))  # fmt: skip
    bounded = dense(graph, entries, lambda a, b: min(a, b, 9), max, -(2**63), transposed)
    same(A.multiply(x, MAX, "min(x, weight, most)", most=9), bounded)
    even = (np.arange(graph.num_nodes) % 2 == 0).astype(np.int32)
    same(A.multiply(x, mask=vector(even)), np.where(even, plus_times, 0))
    same(A.multiply(x, into=total), 2 * plus_times)
    parity = A.vector(np.int64, XOR, 5)
    same(A.multiply(x, into=parity), dense(graph, entries, lambda a, b: a * b, lambda a, b: a ^ b, 5, transposed))
    assert A.T.T._write == A._write != A.T._write


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), [("random", "cvc"), ("random_symmetric", "iec"), ("two_islands", "mixed")])
def test_algorithms(comm, shared_tmp, name, policy):
    """The same answers as breadth-first search, shortest paths and PageRank give, and verified."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=name in graphs.SYMMETRIC)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, csc=name not in graphs.SYMMETRIC)
    sync = parts.make_sync(part)
    A = Matrix(part, sync)
    options = parts.options_of(native_pagerank.APP, algorithm="pull", unweighted=True, tolerance=1e-11)
    native = {
        "bfs": bfs(part, sync, 3),
        "sssp": sssp(part, sync, 3, measure(part, sync)),
        "pagerank": native_pagerank.run(part, sync, native_pagerank.prepare(part, sync, options), options),
    }
    for algorithm, answer in native.items():
        found = ALGORITHMS[algorithm](A, 3, OPTIONS).on_host()
        for label, values in answer.on_host().labels.items():
            ours, theirs = (parts.gather(part, each) for each in (found.labels[label], values))
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 if algorithm == "pagerank" else 0)
        verify(part, sync, 3, found, argparse.Namespace(algorithm=algorithm, tolerance=1e-10))


@pytest.mark.mpi
def test_ranks_of_a_star(comm, shared_tmp):
    """A star whose leaves lead nowhere: its ranks are known in closed form."""
    graph = graphs.HARD["star"]()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("oec"), comm)
    ranks = parts.gather(part, pagerank(Matrix(part, parts.make_sync(part)), tolerance=1e-13).labels["pagerank"])
    n, d = 21, 0.85
    center = (1 - d + d * (1 - ranks[0])) / n  # what starts anew, and what the leaves have
    np.testing.assert_allclose(ranks[0], center, rtol=1e-11)
    np.testing.assert_allclose(ranks[1:], center + d * ranks[0] / 20, rtol=1e-11)
    assert abs(ranks.sum() - 1) < 1e-12


def test_tolerance_is_above_rounding():
    """The smallest one ends; below it, rounding would change the ranks for ever."""
    assert parts.read_options(semiring.APP, 5, tolerance=1e-14).tolerance == 1e-14
    with pytest.raises(OptionError, match="0: expected a number from 1e-14"):
        parts.read_options(semiring.APP, 5, tolerance=0)
