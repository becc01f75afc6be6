"""Edge operators in the order of a priority: answers of other algorithms, in any order, with any number of threads."""

import graphs
import numpy as np
import parts
import pytest
import ranks

from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.operators.expressions import drains_cpu
from cusp.errors import OptionError
from cusp.runtime import threads
from cusp.runtime.devices import to_host
from gluon.label import Label
from gluon.plan import make_plan
from gluon.reduction import MAX, MIN, Reduction
from gluon.sync import Sync

FAR = 2**31 - 1
CPU_ONLY = pytest.mark.skipif(parts.DEVICE == "gpu", reason="threads of a CPU")
WIDTHS = {"chosen": None, "narrow": 0.001, "usual": 4, "one": 1e30}


def relaxing(end: str = "dst", delta: float | None = None) -> EdgeOperator:
    """Shortest paths, the nearest nodes first."""
    return EdgeOperator("distance + weight", f"{end}.distance", priority="distance", delta=delta)


def distances(part, sync, operator, source) -> np.ndarray:
    """By global id, -1 where there is no path."""
    label = Label(part, np.int32, FAR, MIN)
    label.write(source, 0)
    operator.until_quiet(part, sync, distance=label)
    assert sync.total(label.num_updated_masters())[0] == 0
    found = parts.gather(part, label.masters())
    return np.where(found == FAR, -1, found)


@pytest.fixture
def short_runs(monkeypatch):
    """Syncs after few edges, and threads for few."""
    monkeypatch.setattr("cusp.apps.operators.expressions.relaxing.SOME", 20)
    if parts.DEVICE == "cpu":
        monkeypatch.setattr(drains_cpu, "AT_ONCE", 20)
    monkeypatch.setattr(threads, "LEAST", 8)
    monkeypatch.setattr(threads._Chosen, "threads", 2)


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.ONCE)
def test_distances(comm, shared_tmp, short_runs, name, policy):
    """Buckets of any width give what a heap gives."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=name in graphs.SYMMETRIC)
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    sync, source = parts.make_sync(part), graph.num_nodes // 2
    for delta in WIDTHS.values():
        found = distances(part, sync, relaxing(delta=delta), source)
        np.testing.assert_array_equal(found, graphs.serial_distances(graph, source))


@CPU_ONLY
@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("policy", ["oec", "mixed"])
def test_without_rounds(comm, shared_tmp, short_runs, policy):
    """Where ranks do not wait for each other either."""
    graph = graphs.random_directed(500, 3000, seed=3)
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of(policy), comm)
    sync = Sync(make_plan(part, comm), comm, execution="async")
    np.testing.assert_array_equal(distances(part, sync, relaxing(delta=3), 3), graphs.serial_distances(graph, 3))


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "mixed"])
def test_against_edges(comm, shared_tmp, short_runs, policy):
    """With in-edges, an operator that writes at the source drains, too; without them it says what is missing."""
    graph = graphs.HARD["random"]()
    turned = graphs.make(graph.num_nodes, np.stack([graph.targets, graph.sources], axis=1), graph.weights)
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = parts.partition_graph(path, parts.policy_of(policy), comm, csc=True)
    found = distances(part, parts.make_sync(part), relaxing("src"), 3)
    np.testing.assert_array_equal(found, graphs.serial_distances(turned, 3))
    part = parts.partition_graph(path, parts.policy_of(policy), comm)
    with pytest.raises(OptionError, match="ask for csc=True"):
        distances(part, parts.make_sync(part), relaxing("src"), 3)


KINDS = {  # type, first value, value of the source, reduction, priority, oracle
    "floats": ("f8", -np.inf, np.inf, MAX, "-width"),
    "narrow": ("f4", -np.inf, np.inf, MAX, "other - width / scale"),
    "rising": ("f8", -np.inf, np.inf, MAX, "width + gid % 3"),
    "own": ("i4", -(2**31), 2**31 - 1, Reduction("most", "max(old, value)", -(2**31), True), "gid % 7"),
}


@pytest.mark.mpi
@pytest.mark.parametrize(
    "kind",
    parts.share(["floats", "own", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("narrow", "rising"))]),
)
def test_widths(comm, shared_tmp, short_runs, kind):
    """Floats, reductions without an atomic operation of their own, orders that have nothing to do with the answer."""
    dtype, lowest, largest, reduction, priority = KINDS[kind]
    graph = graphs.random_directed(300, 1500, seed=2)
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm)
    given = {"other": np.float64(3), "scale": 2} if "other" in priority else {}
    operator = EdgeOperator("min(width, weight)", "dst.width", priority=priority.replace("gid", "src.gid"))
    width = Label(part, dtype, lowest, reduction)
    width.write(5, largest)
    operator.until_quiet(part, parts.make_sync(part), width=width, **given)
    found = parts.gather(part, width.masters()).astype(np.float64)
    expected = graphs.serial_widths(graph, 5).astype(np.float64)
    reached = expected > -(2.0**63)
    np.testing.assert_array_equal(found > lowest, reached)
    others = reached & (np.arange(graph.num_nodes) != 5)
    np.testing.assert_array_equal(found[others], expected[others])


def run_below(part, operator, label, limit) -> int:
    """Relax below a limit; how many nodes are pending then."""
    drain = operator.drain(part, value=label)
    drain.add(label.swap_updated())
    drain.run_below(limit)
    return drain.count()


@CPU_ONLY
def test_what_has_no_value_yet(shared_tmp):
    """Nodes that begin with the identity are relaxed, too, after all others; and what is not a number comes last."""
    graph = graphs.make(3, [(0, 1), (1, 2)], np.array([7, 5]))
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("oec"), ranks.COMM)
    lightest = EdgeOperator("min(value, weight)", "dst.value", delta=1)
    for dtype, far in (np.int32, FAR), (np.float64, np.inf):
        label = Label(part, dtype, far, MIN)
        label.mark_all()
        assert run_below(part, lightest, label, far) == 0
        assert parts.gather(part, label.masters()).tolist() == [far, 7, 5]
    label = Label(part, np.float64, -5, MAX)
    label.write(0, 9)
    EdgeOperator("min(value, weight)", "dst.value", priority="sqrt(value)").until_quiet(
        part, parts.make_sync(part), value=label
    )
    assert parts.gather(part, label.masters()).tolist() == [9, 7, 5]


@pytest.mark.mpi
def test_an_order_that_turns_round(comm, shared_tmp, short_runs, monkeypatch):
    """A priority that rises when a value becomes better: wrong for speed, not for the answer. On one thread."""
    monkeypatch.setattr(threads._Chosen, "threads", 1)
    graph = graphs.random_directed(300, 1500, seed=2)
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("cvc"), comm)
    operator = EdgeOperator("distance + weight", "dst.distance", priority="-distance", delta=50)
    found = distances(part, parts.make_sync(part), operator, 5)
    np.testing.assert_array_equal(found, graphs.serial_distances(graph, 5))


def test_drain_in_steps(shared_tmp):
    """What is left stays pending; a value that others lower is relaxed again, and one that stays is not."""
    graph = graphs.make(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)], np.array([1, 1, 1, 1, 9]))
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("oec"), ranks.COMM)
    label = Label(part, np.int32, FAR, MIN)
    label.write(0, 0)
    drain = relaxing(delta=1).drain(part, distance=label)
    drain.add(label.swap_updated())
    assert drain.count() == 1 and drain.run(1) and drain.edges == 2  # nodes without edges may be pending or not
    assert sorted(to_host(part.gids[label.take_updated()]).tolist()) == [1, 4]
    while drain.run(1):
        pass
    assert drain.edges == 5 and drain.count() == 0
    assert parts.gather(part, label.masters()).tolist() == [0, 1, 2, 3, 4]
    label.swap_updated()
    label.mark_all()
    drain.add(label.swap_updated())
    assert drain.count() == 0
    label.write(2, 1)
    drain.add(label.swap_updated())
    assert drain.count() == 1 and not drain.run(100)
    assert parts.gather(part, label.masters()).tolist() == [0, 1, 1, 2, 3]


def wide_graph() -> graphs.Graph:
    """Hubs that all threads meet at, and long ways that are better than short ones."""
    random = np.random.default_rng(1)
    ends = (3000 * random.random((30_000, 2)) ** 2).astype(np.int64)
    return graphs.make(3000, ends, random.integers(1, 250, len(ends)))


def relaxed_edges(part, delta) -> tuple[int, np.ndarray]:
    """How many edges a drain on one rank relaxes, and the distances."""
    label = Label(part, np.int32, FAR, MIN)
    label.write(0, 0)
    drain = relaxing(delta=delta).drain(part, distance=label)
    drain.add(label.swap_updated())
    drain.run_all()
    return drain.edges, parts.gather(part, label.masters())


@CPU_ONLY
def test_order_saves_work(shared_tmp, monkeypatch):
    """In narrow buckets hardly an edge is relaxed twice; in one bucket many are. Threads do not change the answer."""
    graph = wide_graph()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("oec"), ranks.COMM)
    expected = graphs.serial_distances(graph, 0)
    least = np.diff(graph.indptr)[expected >= 0].sum()
    monkeypatch.setattr(threads, "LEAST", 32)
    for number in 1, 2, 3:
        monkeypatch.setattr(threads._Chosen, "threads", number)
        work = {}
        for name, delta in {"narrow": 2, "none": 1e9}.items():
            work[name], found = relaxed_edges(part, delta)
            np.testing.assert_array_equal(np.where(found == FAR, -1, found), expected)
        assert least <= work["narrow"] < (1.1 if number == 1 else 1.4) * least
        assert work["none"] > 1.3 * least


def test_mistakes(shared_tmp):
    """What a priority cannot see, and widths that are none."""
    with pytest.raises(OptionError, match='"dst.distance", column 1: dst.distance: a priority is that of a node'):
        EdgeOperator("distance", "dst.distance", priority="dst.distance")
    with pytest.raises(OptionError, match='"distance - weight", column 12: weight: a priority'):
        EdgeOperator("distance", "dst.distance", priority="distance - weight")
    with pytest.raises(OptionError, match="column 1: this is not an expression"):
        EdgeOperator("distance", "dst.distance", priority="distance +")
    for delta in (0, -1, float("inf"), float("nan")):
        with pytest.raises(OptionError, match=f"delta={delta}: the width of a bucket"):
            EdgeOperator("distance", "dst.distance", priority="distance", delta=delta)
    part = parts.partition_graph(
        graphs.write(shared_tmp / "g.h5", graphs.HARD["random"]()), parts.policy_of("oec"), ranks.COMM
    )
    with pytest.raises(OptionError, match='"near", column 1: near is not given; given are distance'):
        EdgeOperator("distance", "dst.distance", priority="near").drain(part, distance=Label(part, "i4", 0, MIN))
