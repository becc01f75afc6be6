"""Policies that look at the graph before: visits, finish, settle, the order of nodes, state of nodes; 2ps and hep."""

import tracemalloc
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import graphs
import numpy as np
import parts
import pytest
import ranks

from cusp.errors import OptionError, PolicyError
from cusp.estimates.estimate import estimate
from cusp.input.edge_slice import read_slice
from cusp.neighbors import both_directions, find_neighbors
from cusp.policies import load_policy
from cusp.policies.compile_rules import compile_policy
from cusp.policies.cuts import expansion
from cusp.policies.inspect_rules import described
from cusp.policies.state import combine_state, copy_state
from cusp.prepare_rules import gather_facts, memory_needed, with_threshold
from cusp.runtime import watchdog

SIZE = ranks.COMM.size
TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "policies.md"
LOWEST = """
from collections import namedtuple
import numpy as np

State = namedtuple("State", "lowest calls seen")
combine = {"lowest": "reader", "seen": "or"}
order = "degree"

def make_state(prop):
    return State(np.full(prop.num_places, -1), np.zeros(2, np.int64), np.zeros((prop.num_places, 2), np.int64))

def visit(prop, node, state):
    lowest = node
    for other in prop.all_neighbors(node):
        state.seen[prop.place(other), 1] |= 1 << prop.rank
        if state.lowest[prop.place(other)] >= 0:
            lowest = min(lowest, state.lowest[prop.place(other)])
    state.lowest[prop.place(node)] = lowest
    state.calls[0] += 1

def finish(prop, state, comm):
    state.calls[1] += comm.rank + 1

def get_master(prop, node, state, masters):
    assert state.calls[0] == PASSES * prop.num_nodes and state.calls[1] == prop.num_parts * (prop.num_parts + 1) // 2
    return state.lowest[prop.place(node)] % prop.num_parts

def settle(prop, state, comm):
    state.calls[1] += comm.rank + 1

def get_edge_owner(prop, src, dst, src_master, dst_master, state):
    assert state.calls[1] == prop.num_parts * (prop.num_parts + 1)
    return src_master
"""


def components(graph: graphs.Graph) -> np.ndarray:
    """The lowest node that each is connected to."""
    lowest = np.arange(graph.num_nodes)
    for _ in range(graph.num_nodes):
        np.minimum.at(lowest, graph.sources, lowest[graph.targets])
        np.minimum.at(lowest, graph.targets, lowest[graph.sources])
    return lowest


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["two_islands", "loops_and_doubles"])
def test_visits(comm, shared_tmp, name):
    """In as many passes as there are nodes, each node learns the lowest of its component, along edges both ways."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=name in graphs.SYMMETRIC)
    passes = graph.num_nodes
    policy = load_policy(parts.user_file(LOWEST.replace("PASSES", str(passes))), passes=passes, rounds=2, strict=True)
    held = parts.gather_parts(parts.partition_graph(path, policy, comm, weights=False))
    for part in held:
        assert (components(graph)[part.gids[: part.num_masters]] % SIZE == part.rank).all()


@pytest.mark.mpi
def test_state_of_nodes(comm, shared_tmp):
    """What a reader says of its nodes, what any rank adds, and what is dealt out."""
    kind = namedtuple("State", "said bits room")
    graph = graphs.random_directed()
    edges = read_slice(graphs.write(shared_tmp / "g.h5", graph), comm)
    indptr, both = both_directions(edges, comm)
    neighbors = find_neighbors(edges, comm, both)
    mine = np.arange(edges.first_node, edges.first_node + neighbors.rows)
    other = np.setdiff1d(both, mine)
    places = np.concatenate([mine, other])
    assert neighbors.size == other.size
    for row, node in enumerate(mine):
        ends = np.concatenate([graph.targets[graph.sources == node], graph.sources[graph.targets == node]])
        assert sorted(both[indptr[row] : indptr[row + 1]]) == sorted(ends)
    state = kind(places * 0, np.zeros((places.size, 2), np.uint64), np.array([7 + comm.rank]))
    before = copy_state(state)
    state.said[:] = places * 10 + comm.rank
    state.bits[:, 1] = 1 << comm.rank
    combine_state(state, before, {"said": "reader", "bits": "or", "room": "split"}, comm, neighbors)
    reader = np.searchsorted(edges.bounds, places, side="right") - 1
    assert np.array_equal(state.said, places * 10 + reader)
    touched = comm.allgather(places)
    for place, node in enumerate(places):
        assert state.bits[place].tolist() == [0, sum(1 << rank for rank in range(SIZE) if node in touched[rank])]
    assert comm.allreduce(int(state.room[0])) == sum(range(7, 7 + SIZE))
    assert SIZE == 1 or all(np.array_equal(now, known) for now, known in zip(state, before))
    assert max(comm.allgather(int(state.room[0]))) - min(comm.allgather(int(state.room[0]))) <= 1


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["2ps", "hep"])
def test_fewer_replicas(comm, shared_tmp, name):
    """In 2 and 16 parts: fewer than by dbh, the limit on edges is kept, and ranks make little difference."""
    graph = graphs.both_ways(graphs.random_directed(600, 2400))
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    policies = [load_policy(policy, threshold=200, rounds=20) for policy in (name, "dbh")]
    for size in (2, 16):
        found, other = (
            estimate(read_slice(path, comm, weights=False), policy, size, "edges", comm).quality for policy in policies
        )
        assert found.replication < 0.95 * other.replication
        print(name, size, found.replication / other.replication, found.edge_balance)
        assert found.edge_balance <= 1.12
        alone = estimate(
            read_slice(path, ranks.MPI.COMM_SELF, weights=False), policies[0], size, "edges", ranks.MPI.COMM_SELF
        ).quality
        assert found.replication == pytest.approx(alone.replication, rel=0.0 if name == "hep" else 0.06)


def uneven_degrees(symmetric: bool = False) -> graphs.Graph:
    """Many edges of a few nodes."""
    ends = np.random.default_rng(1).random((20_000, 2)) ** 3 * 400
    graph = graphs.make(400, ends.astype(np.int64))
    return graphs.both_ways(graph) if symmetric else graph


@pytest.mark.mpi
def test_slack_balances_nodes(comm, shared_tmp):
    """If no part may be ahead of the others while edges are dealt out, they get nodes alike, too."""
    graph = graphs.make(4000, (np.random.default_rng(1).random((30_000, 2)) ** 4 * 4000).astype(np.int64))
    path = graphs.write(shared_tmp / "g.h5", graphs.both_ways(graph), symmetric=True)
    least, most = (
        estimate(read_slice(path, comm, weights=False), load_policy("2ps", slack=slack, rounds=20), 8, "edges", comm)
        for slack in (0, 100)
    )
    assert least.quality.node_balance < min(1.07, most.quality.node_balance)
    assert least.quality.edge_balance < 1.01 and least.quality.replication < 1.2 * most.quality.replication


def collected(graph: graphs.Graph, symmetric: bool, thresholds: np.ndarray) -> np.ndarray:
    """How many edges, loops apart, have both ends with at most so many edges."""
    ends = np.sort(np.stack([graph.sources, graph.targets]), axis=0)
    degrees = np.bincount(ends.ravel()) // (1 + symmetric)
    higher = degrees[ends[:, ends[0] < ends[1]]].max(axis=0)
    return (higher[:, None] <= thresholds).sum(axis=0) // (1 + symmetric)


@pytest.mark.mpi
@pytest.mark.parametrize("symmetric", [False, True])
def test_threshold_follows_from_memory(comm, shared_tmp, symmetric):
    """The highest that keeps the limit; a hundred times the mean degree at most; that of the user, if there is one."""
    graph = uneven_degrees(symmetric)
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=symmetric)
    edges = read_slice(path, comm, weights=False)
    rules = gather_facts(edges, compile_policy("hep"), comm)
    thresholds = np.arange(0, 20_000, 7)
    needed, found = memory_needed(rules, thresholds, comm)
    assert np.array_equal(found, collected(graph, symmetric, thresholds))
    assert (np.diff(needed) >= 0).all() and needed[0] < 300_000 < needed[-1]
    chosen = with_threshold(rules, 300_000, comm).prop.threshold
    assert [size <= 300_000 for size in memory_needed(rules, np.array([chosen, chosen + 1]), comm)[0]] == [True, False]
    for limit in (None, 10**9):
        assert with_threshold(rules, limit, comm).prop.threshold == 100 * 2 * 20_000 // 400
    given = gather_facts(edges, compile_policy(load_policy("hep", threshold=17)), comm)
    assert with_threshold(given, 300_000, comm).prop.threshold == 17
    limited = parts.partition_graph(path, "hep", comm, weights=False, memory_limit=300_000)
    same = parts.partition_graph(path, load_policy("hep", threshold=chosen), comm, weights=False)
    assert np.array_equal(limited.gids, same.gids) and np.array_equal(limited.targets, same.targets)
    with pytest.raises(OptionError, match=f"5,000 bytes are not enough for policy hep, .* {needed[0]:,} besides"):
        with_threshold(rules, 5000, comm)


@pytest.mark.parametrize("num_parts", [1, 2, 16])
@pytest.mark.parametrize("threshold", [5, 100, 10_000])
def test_memory_of_hep(tmp_path, threshold, num_parts):
    """What it says of itself bounds what it allocates, and not much else does."""
    graphs.write_here(tmp_path / "g.h5", uneven_degrees())
    edges = read_slice(tmp_path / "g.h5", ranks.MPI.COMM_SELF, weights=False)
    compiled = compile_policy(load_policy("hep", threshold=threshold))
    bounds = np.linspace(0, edges.num_nodes, num_parts + 1).astype(np.int64)
    rules = gather_facts(edges, compiled, ranks.MPI.COMM_SELF, bounds)
    state = expansion.make_state(rules.prop)
    expansion.finish(rules.prop, state, ranks.MPI.COMM_SELF)  # loads compiled code
    tracemalloc.start()
    expansion.finish(rules.prop, state, ranks.MPI.COMM_SELF)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    (needed,), _ = memory_needed(rules, np.array([threshold]), ranks.MPI.COMM_SELF)
    assert 0.6 * needed < peak < needed + 20_000


@pytest.mark.mpi
def test_file_of_the_tutorial(comm, shared_tmp):
    """It puts each of two islands on one rank, if there are two."""
    text = TUTORIAL.read_text().split("`clusters.py`:\n\n```python\n")[1].split("```")[0]
    graph = graphs.HARD["two_islands"]()
    path = graphs.write(shared_tmp / "g.h5", graph, symmetric=True)
    part = parts.partition_graph(
        path, load_policy(parts.user_file(text, "clusters.py"), rounds=5, strict=True), comm, weights=False
    )
    parts.check_partition(part, graph, weighted=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def visit(prop, node, state):\n    pass\n", "visit has no state"),
        ("order = 'random'\n", "choose one of"),
        ("make_state = make_mstate = print\n", "leave one of them out"),
        ("make_state = print\ndef visit(prop):\n    pass\n", "visit has 1 arguments, not 3"),
        ("def settle(prop, state, comm):\n    pass\n", "settle has no state"),
        ("def memory(prop):\n    pass\n", "memory has 1 arguments, not 3"),
        ("make_state = 3\n", "not a function"),
    ],
)
def test_mistakes(text, message):
    rule = "def get_master(prop, node, mstate, masters):\n    return 0\n"
    with pytest.raises(PolicyError, match=message):
        parts.partition_graph(
            (np.arange(3), np.arange(3)), load_policy(parts.user_file(rule + text)), ranks.MPI.COMM_SELF
        )


@pytest.mark.parametrize("name", ["visit", "finish", "settle", "memory", "make_state", "order"])
def test_ranks_compare_phases(name):
    """A policy is another one if what it does before, or in which order, is."""
    policy = load_policy("2ps")
    assert described(policy) == described(load_policy("2ps"))
    other = replace(policy, **{name: "" if name == "order" else lambda *given: None})
    assert described(policy) != described(other)


@pytest.mark.parametrize("name", ["2ps", "hep"])
def test_what_the_library_counts_is_no_part_of_a_policy(name):
    """Ranks may have taken different numbers of steps when they compare."""
    before = described(load_policy(name))
    for _ in range(3):
        watchdog.step()
    assert described(load_policy(name)) == before
