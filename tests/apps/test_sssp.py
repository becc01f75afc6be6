"""Shortest paths with weights of every type, against Dijkstra with a heap."""

from itertools import product

import graphs
import numpy as np
import parts
import pytest
import ranks
from hypothesis import given, settings
from hypothesis import strategies as st

from cusp.apps.operators.expressions import drains_cpu
from cusp.apps.sssp import measure, sssp
from cusp.apps.verify.paths import verify_distances
from cusp.errors import GraphFileError, OptionError

policies = pytest.mark.parametrize("policy", parts.SOME)
EXAMPLES = 40 if ranks.COMM.size == 1 else 15
MORE_TYPES = [pytest.param(dtype, marks=pytest.mark.slow) for dtype in ("i1", "i2", "u2", "i4")]
DTYPES = ["u1", "u4", "i8", "u8", "f4", "f8", *MORE_TYPES]


@pytest.fixture
def solve(comm, shared_tmp):
    """Function (graph, source, policy, delta, weight type) -> distances of all nodes, verified."""

    def distances(graph, source, policy="cvc", delta=None, weight="i8"):
        path = graphs.write(shared_tmp / "g.h5", graph, weight=weight)
        part = parts.partition_graph(path, parts.policy_of(policy), comm)
        sync = parts.make_sync(part)
        lengths = measure(part, sync, delta)
        answer = sssp(part, sync, source, lengths).on_host()
        verify_distances(part, sync, source, answer.labels["distance"])
        found = parts.gather(part, answer.labels["distance"])
        np.testing.assert_array_equal(parts.gather(part, answer.reached), graphs.serial_hops(graph, source) >= 0)
        return found

    return distances


def line(weights, dtype=np.int64) -> graphs.Graph:
    """A path 0 -> 1 -> 2 ... with these weights."""
    return graphs.make(len(weights) + 1, [(v, v + 1) for v in range(len(weights))], np.array(weights, dtype))


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.PAIRS)
def test_distances(solve, name, policy):
    """From several sources; -1 where there is no path."""
    graph = graphs.HARD[name]()
    for source in sorted({graph.num_nodes - 1, int(graph.degrees.argmax())}):
        found = solve(graph, source, policy)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, graphs.serial_distances(graph, source))


@pytest.mark.mpi
@pytest.mark.parametrize("weight", parts.share(DTYPES))
def test_weight_types(solve, weight):
    """Weights of every number type, buckets of every width; float sums are exact to the last bit."""
    graph = graphs.random_directed(80, 500)
    weights = graph.weights + np.random.default_rng(4).random(graph.num_edges) if weight[0] == "f" else graph.weights
    graph = graph._replace(weights=weights.astype(weight))
    expected = graphs.serial_distances(graph, 5)
    for delta in (1, 7, 1000, 0.25, None):
        found = solve(graph, 5, "iec", delta, weight)
        assert found.dtype == (np.float64 if weight[0] == "f" else np.int64)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.mpi
@pytest.mark.parametrize("weight", parts.share(DTYPES))
def test_largest_weights_of_a_type(solve, weight):
    """Three edges of the largest weight that leaves room for their sum; an unreached node."""
    largest = min(np.iinfo(weight).max, 2**61) if weight[0] != "f" else float(np.finfo(weight).max / 4)
    graph = graphs.make(6, [(0, 1), (1, 2), (2, 3), (5, 0)], np.array([largest] * 3 + [1], weight))
    expected = graphs.serial_distances(graph, 0)
    np.testing.assert_array_equal(solve(graph, 0, "oec", weight=weight), expected)


@pytest.mark.mpi
@pytest.mark.parametrize("weight", ["i8", "u8"])
def test_sums_beyond_doubles(solve, weight):
    """Integer distances are exact above 2**53, where a float is not."""
    graph = line([2**53, 1, 1, 3], np.dtype(weight))
    np.testing.assert_array_equal(solve(graph, 0, "hashed", weight=weight), [0, 2**53, 2**53 + 1, 2**53 + 2, 2**53 + 5])


@pytest.mark.mpi
@pytest.mark.parametrize("top", [2**31 - 2, 2**31 - 1, 2**31, 2**32 - 1])
def test_near_the_limit_of_32_bits(solve, top):
    """Distances round 2**31, by one large edge and by several."""
    half = top // 2
    for weights in ([top], [half, top - half], [top - 2, 1, 1]):
        np.testing.assert_array_equal(solve(line(weights), 0, "hashed"), np.cumsum([0, *weights]))


@pytest.mark.mpi
@pytest.mark.parametrize("weights", [[2**62, 2**62], [2**63 - 1, 2**63 - 1], [2**62, 2**61, 2**61, 1]], ids=len)
@pytest.mark.parametrize("policy", ["oec", "hashed"])
def test_overflow_of_64_bits(solve, policy, weights):
    """A distance that does not fit is an error, not a wrong number."""
    with pytest.raises(GraphFileError, match="64 bits"):
        solve(line(weights), 0, policy)


@pytest.mark.mpi
def test_largest_distance(solve):
    """It is 2^63 - 2: the largest int64 stands for no path."""
    np.testing.assert_array_equal(solve(line([2**62, 2**62 - 2]), 0, "oec"), [0, 2**62, 2**63 - 2])
    with pytest.raises(GraphFileError, match=r"from node 0 to node 2 is above 2\^63 - 2"):
        solve(line([2**62, 2**62 - 1]), 0, "oec")


@pytest.mark.mpi
@pytest.mark.parametrize("weights", [[2**63, 1], [2**64 - 1, 1], [2**63 + 2**62]], ids=str)
def test_unsigned_weights_beyond_int64(solve, weights):
    """A uint64 weight that no int64 distance can hold is an error too."""
    with pytest.raises(GraphFileError, match="64 bits"):
        solve(line(weights, np.uint64), 0, "oec", weight="u8")


@pytest.mark.mpi
def test_overflow_off_the_shortest_path(solve):
    """An edge too long for any distance does no harm where there is a shorter way."""
    graph = graphs.make(3, [(0, 1), (0, 2), (1, 2)], np.array([10, 3, 2**63 - 1]))
    np.testing.assert_array_equal(solve(graph, 0, "oec"), [0, 10, 3])


@pytest.mark.mpi
@pytest.mark.limit(30)
@pytest.mark.parametrize(
    ("large", "weight", "delta"), parts.share(product(["inf", "max"], ["f4", "f8"], [None, 5])), ids=str
)
def test_infinite_and_huge_floats(solve, large, weight, delta):
    """Edges of infinite or the largest float weight: the run ends, and leads nowhere over them."""
    top = np.inf if large == "inf" else np.finfo(weight).max
    graph = graphs.make(4, [(0, 1), (1, 2), (2, 3), (0, 3)], np.array([1.5, top, top, 4.0], weight))
    path_sum = float(np.float64(1.5) + np.float64(top))
    assert solve_or_refuse(solve, graph, delta, weight) in ([0, 1.5, path_sum, 4.0], None)


def solve_or_refuse(solve, graph, delta, weight):
    """The distances, or None where the weights are refused with a clear message."""
    path_ends = graph._replace(weights=np.minimum(graph.weights, 1))
    assert (graphs.serial_hops(path_ends, 0) >= 0).all()
    try:
        return solve(graph, 0, "oec", delta, weight).tolist()
    except GraphFileError:
        return None


@pytest.mark.mpi
@pytest.mark.limit(30)
@pytest.mark.parametrize("delta", [1e-9, 1e-300, 1e300])
def test_extreme_delta_with_floats(solve, delta):
    """A bucket narrower than the spacing of floats is still some bucket; the run ends."""
    graph = line([1e9, 0.5, 1e-3, 7e8], np.float64)
    np.testing.assert_array_equal(solve(graph, 0, "oec", delta, "f8"), graphs.serial_distances(graph, 0))


@pytest.mark.mpi
@pytest.mark.limit(30)
@pytest.mark.parametrize(
    ("delta", "weight"),
    parts.share(product([0, -1, float("nan"), float("inf"), 1e30], ["i8", "f8"])),
    ids=str,
)
def test_delta_that_is_no_width(solve, delta, weight):
    """0, negative, not a number: refused. Infinite: refused, or one bucket for all."""
    graph = line([3, 4, 5])._replace(weights=np.array([3, 4, 5], weight))
    if delta > 0:
        try:
            np.testing.assert_array_equal(solve(graph, 0, "oec", delta, weight), [0, 3, 7, 12])
        except OptionError as error:
            assert delta == float("inf") and "--delta" in str(error)
        return
    with pytest.raises(OptionError, match="--delta"):
        solve(graph, 0, "oec", delta, weight)


@pytest.mark.mpi(min_size=2)
@pytest.mark.skipif(parts.WANTED != "cpu", reason="a rank drains one bucket there")
@pytest.mark.parametrize("at_once", [0, 20, 10**6])
def test_edges_before_a_sync(solve, monkeypatch, at_once):
    """However far a rank goes on alone, the distances are the same."""
    monkeypatch.setattr(drains_cpu, "AT_ONCE", at_once)
    rng = np.random.default_rng(2)
    pairs = [(v, v + 1) for v in range(299)] + rng.integers(0, 300, (60, 2)).tolist()
    graph = graphs.both_ways(graphs.make(300, pairs, rng.integers(0, 50, 359)))
    np.testing.assert_array_equal(solve(graph, 0, "cvc", 9), graphs.serial_distances(graph, 0))


@pytest.mark.mpi(min_size=2)
@pytest.mark.skipif(parts.WANTED != "cpu", reason="a rank drains one bucket there")
@pytest.mark.parametrize("weight", ["i4", "f4"])
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc"])
def test_running_ahead(comm, shared_tmp, monkeypatch, policy, weight):
    """Fewer rounds, and the same distances, where ranks may run ahead once fewer and fewer nodes are pending."""
    graph = graphs.random_directed(200, 2400, 8)
    path = graphs.write(shared_tmp / "g.h5", graph, weight=weight)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    monkeypatch.setattr(drains_cpu, "AT_ONCE", 0)
    rounds = []
    for share in 1, 10**9:  # all edges of a rank, none of them
        monkeypatch.setattr(drains_cpu, "SYNCS", share)
        sync = parts.make_sync(part)
        answer = sssp(part, sync, 3, measure(part, sync, 1))
        np.testing.assert_array_equal(parts.gather(part, answer.labels["distance"]), graphs.serial_distances(graph, 3))
        rounds.append(answer.rounds)
    assert rounds[0] < rounds[1]


@pytest.mark.mpi
@policies
def test_zero_weights(solve, policy):
    """Cycles and whole graphs of weight 0."""
    graph = graphs.random_directed()
    for weights in (graph.weights % 2 * 3, graph.weights * 0):
        zeros = graph._replace(weights=weights)
        np.testing.assert_array_equal(solve(zeros, 7, policy), graphs.serial_distances(zeros, 7))
    fractions = graph._replace(weights=(graph.weights % 3).astype(np.float32) / 3)
    np.testing.assert_array_equal(solve(fractions, 7, policy, None, "f4"), graphs.serial_distances(fractions, 7))


@pytest.mark.mpi
@policies
def test_without_weights(solve, policy):
    """Every edge counts 1: the hops of a breadth-first search."""
    graph = graphs.random_directed(60, 150)
    np.testing.assert_array_equal(solve(graph, 3, policy, None, None), graphs.serial_hops(graph, 3))


@pytest.mark.mpi
@pytest.mark.parametrize("weight", ["i1", "i8", "f4"])
def test_negative_weight(solve, weight):
    """Refused on every rank, with the edge."""
    weights = np.array([1, 2, -3, 1], weight)
    with pytest.raises(GraphFileError, match="edge 2 -> 3 has the weight -3"):
        solve(line([0] * 4)._replace(weights=weights), 0, "cvc", weight=weight)


@pytest.mark.mpi
@settings(max_examples=EXAMPLES)
@given(
    graph=graphs.small_graphs(),
    policy=st.sampled_from(list(parts.POLICIES)),
    delta=st.sampled_from([None, 1, 3, 50]),
    weight=st.sampled_from([None, "u1", "i8", "f8"]),
    where=st.integers(0, 11),
)
def test_any_graph(solve, graph, policy, delta, weight, where):
    """Any small graph, with weights from 0 or without, from any source."""
    source = where % graph.num_nodes
    found = solve(graph, source, policy, delta, weight)
    if weight is None:
        np.testing.assert_array_equal(found, graphs.serial_hops(graph, source))
    else:
        as_stored = graph._replace(weights=graph.weights.astype(weight))
        np.testing.assert_array_equal(found, graphs.serial_distances(as_stored, source))


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc", "mixed"])
def test_larger_random_graph(solve, policy):
    """Several buckets and many improvements between ranks."""
    rng = np.random.default_rng(8)
    graph = graphs.make(400, rng.integers(0, 400, (2500, 2)), rng.integers(0, 1000, 2500))
    for delta in (None, 10, 10**6):
        np.testing.assert_array_equal(solve(graph, 0, policy, delta), graphs.serial_distances(graph, 0))
