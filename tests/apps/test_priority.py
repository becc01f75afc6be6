"""Edge operators that drain by priority: answers of other algorithms, in any order, with any number of threads."""

import graphs
import numpy as np
import parts
import pytest
import ranks

import apps.edge_operator
from apps.edge_operator import EdgeOperator
from apps.operators.expressions.bags_cpu import (
    CHUNK,
    SLOTS,
    forget,
    is_empty,
    lowest_bag,
    make_bags,
    put,
    steal_order,
    take,
)
from cusp.errors import OptionError
from cusp.runtime import threads
from cusp.runtime.devices import to_host
from gluon.label import Label
from gluon.plan import make_plan
from gluon.reduction import MAX, MIN, Reduction
from gluon.sync import Sync

FAR = 2**31 - 1
CPU_ONLY = pytest.mark.skipif(parts.DEVICE == "gpu", reason="bags and threads of a CPU")
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
    monkeypatch.setattr(apps.edge_operator, "AT_ONCE", 20)
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
    "own": ("i4", -(2**31), 2**31 - 1, Reduction("most", "max(old, value)", -(2**31), True), "gid % 7"),
}


@pytest.mark.mpi
@pytest.mark.parametrize("kind", KINDS)
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


def relaxed_edges(part, delta, strict=False) -> tuple[int, np.ndarray]:
    """How many edges a drain on one rank relaxes, and the distances."""
    label = Label(part, np.int32, FAR, MIN)
    label.write(0, 0)
    drain = relaxing(delta=delta).drain(part, distance=label)
    drain.strict = strict
    drain.add(label.swap_updated())
    assert not drain.run(1 << 60)
    return drain.edges, parts.gather(part, label.masters())


@CPU_ONLY
def test_order_saves_work(shared_tmp, monkeypatch):
    """In narrow buckets hardly an edge is relaxed twice; in one bucket many are. Threads change neither the answer."""
    graph = wide_graph()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("oec"), ranks.COMM)
    expected = graphs.serial_distances(graph, 0)
    least = np.diff(graph.indptr)[expected >= 0].sum()
    monkeypatch.setattr(threads, "LEAST", 32)
    for number in 1, 2, 3:
        monkeypatch.setattr(threads._Chosen, "threads", number)
        work = {}
        for name, (delta, strict) in {"soft": (2, False), "strict": (2, True), "none": (1e9, False)}.items():
            work[name], found = relaxed_edges(part, delta, strict)
            np.testing.assert_array_equal(np.where(found == FAR, -1, found), expected)
        assert least <= work["strict"] < 1.1 * least
        assert least <= work["soft"] < (1.1 if number == 1 else 2) * least
        assert work["none"] > 1.3 * least


@CPU_ONLY
def test_chunks_run_out(shared_tmp, monkeypatch):
    """Nodes without an entry are found by their bits."""
    import apps.operators.expressions.drains_cpu as drains

    def few(number: int, nodes: int):
        bags = make_bags(number, nodes)
        return bags._replace(nodes=bags.nodes[:3], links=bags.links[:3])

    monkeypatch.setattr(drains, "make_bags", few)
    graph = wide_graph()
    part = parts.partition_graph(graphs.write(shared_tmp / "g.h5", graph), parts.policy_of("oec"), ranks.COMM)
    found = relaxed_edges(part, 3)[1]
    np.testing.assert_array_equal(np.where(found == FAR, -1, found), graphs.serial_distances(graph, 0))


@CPU_ONLY
def test_bags():
    """The lowest bag first, in each the first one in; a thread takes full chunks of lower bags from others."""
    bags, alone = make_bags(2, 1000), np.empty(0, np.int64)
    assert is_empty(bags) and lowest_bag(bags) == SLOTS and take(bags, 0, alone, 0, SLOTS - 1)[0] < 0
    for node in range(CHUNK + 3):
        put(bags, 0, 70, node)
    put(bags, 0, 400, 999)
    assert lowest_bag(bags) == 70 and not is_empty(bags) and take(bags, 0, alone, 0, 69)[0] < 0
    put(bags, 1, 200, 7)
    other = np.array([0])
    chunk, size, slot = take(bags, 1, other, 100, SLOTS - 1)  # lower than its own
    assert (size, slot) == (CHUNK, 70) and bags.nodes[chunk].tolist() == list(range(CHUNK))
    assert take(bags, 1, other, 70, SLOTS - 1)[1:] == (1, 200)  # what is being filled is not for others
    assert take(bags, 1, other, 200, SLOTS - 1)[0] < 0
    assert take(bags, 0, alone, 0, SLOTS - 1)[1:] == (3, 70) and take(bags, 0, alone, 0, SLOTS - 1)[1:] == (1, 400)
    forget(bags)
    assert is_empty(bags)


def test_near_before_far(tmp_path):
    """Threads on the same socket come first, each behind the one that looks; Linux says where cores are."""
    sockets = np.array([0, 0, 1, 1, 0])
    assert [steal_order(thread, sockets).tolist() for thread in range(5)] == [
        [1, 4, 2, 3], [4, 0, 2, 3], [3, 4, 0, 1], [2, 4, 0, 1], [0, 1, 2, 3],
    ]  # fmt: skip
    cores = sorted(threads.os.sched_getaffinity(0))
    for core in cores:
        (tmp_path / f"cpu{core}" / "topology").mkdir(parents=True)
        (tmp_path / f"cpu{core}" / "topology" / "physical_package_id").write_text(f"{core % 2}\n")
    assert threads._sockets(tmp_path) == ({core: core % 2 for core in cores} if len(cores) > 1 else {})
    assert threads.socket_here() in {0, *threads._sockets(threads.Path("/sys/devices/system/cpu")).values()}


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
