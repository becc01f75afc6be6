"""State of rules: how ranks combine it, when, and what rules may know (cusp/policies/state.py, cusp/neighbors.py)."""

import sys
from collections import namedtuple
from dataclasses import replace

import graphs
import numpy as np
import parts
import pytest
import ranks

from cusp import assign_edges
from cusp.errors import PolicyError
from cusp.partitioner import partition_graph
from cusp.policies import Policy, load_policy
from cusp.policies.inspect_rules import uses_of
from cusp.policies.state import combine_state, copy_state, make_state, start_state
from cusp.runtime.threads import in_parallel, ranges_of_any_size

SIZE = ranks.COMM.size
State = namedtuple("State", "added largest smallest own")
COMBINE = {"largest": "max", "smallest": "min", "own": "local"}

COUNTING = """
from collections import namedtuple
import numpy as np

MState = namedtuple("MState", "nodes")

def make_mstate(prop):
    return MState(np.zeros(prop.num_parts, np.int64))

def get_master(prop, node, mstate, masters):
    best = 0
    for rank in range(prop.num_parts):
        if mstate.nodes[rank] < mstate.nodes[best]:
            best = rank
    mstate.nodes[best] += 1
    return best
"""
KNOWN = """
def get_master(prop, node, mstate, masters):
    known = 0
    for neighbor in prop.out_neighbors(node):
        if masters[neighbor] >= 0:
            known += 1
    return known % prop.num_parts
"""
EDGES = """
from collections import namedtuple
import numpy as np

EState = namedtuple("EState", "edges")

def make_estate(prop):
    return EState(np.zeros(prop.num_parts, np.int64))

def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    best = 0
    for rank in range(prop.num_parts):
        if estate.edges[rank] < estate.edges[best]:
            best = rank
    estate.edges[best] += 1
    return best
"""


@pytest.fixture
def policy():
    """Function (source text, parameters) -> the policy of a user's file with it."""

    def load(text: str, **parameters) -> Policy:
        return load_policy(parts.user_file(text), **parameters)

    return load


@pytest.mark.mpi
def test_combine(comm):
    """Deltas are added, extremes kept, local fields left alone; over two rounds nothing counts twice."""
    state = State(np.array([5, 0]), np.array([1.0]), np.array([9], np.int32), np.array([7]))
    before = copy_state(state)
    for round_ in (1, 2):
        state.added[0] += comm.rank + 1
        state.largest[0] = max(state.largest[0], 10.0 * comm.rank)
        state.smallest[0] = min(state.smallest[0], 4 - comm.rank)
        state.own[0] += comm.rank
        combine_state(state, before, COMBINE, comm)
        assert state.added.tolist() == [5 + round_ * SIZE * (SIZE + 1) // 2, 0]
        assert state.largest[0] == max(1.0, 10.0 * (SIZE - 1))
        assert state.smallest[0] == 4 - (SIZE - 1)
        assert state.own[0] == 7 + round_ * comm.rank
        assert SIZE == 1 or all(np.array_equal(a, b) for a, b in zip(state[:3], before))


@pytest.mark.mpi
@pytest.mark.parametrize("rounds", [1, 3, 1000])
def test_counting_masters(comm, shared_tmp, policy, rounds):
    """With as many rounds as nodes, every rank sees each choice of the others soon: nodes are balanced."""
    graph = graphs.random_directed(120, 600)
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph(path, policy(COUNTING, rounds=rounds), comm)
    parts.check_partition(part, graph)
    spread = comm.allgather(part.num_masters)
    if rounds == 1000:
        assert max(spread) - min(spread) <= 2 * SIZE


@pytest.mark.mpi
def test_masters_of_neighbours(comm, shared_tmp, policy):
    """A serial oracle: own masters are known at once, those of others after the round in which they are assigned."""
    rounds = 4
    graph = graphs.random_directed(90, 700)
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph(path, policy(KNOWN, rounds=rounds), comm)
    found = parts.gather(part, np.full(part.num_masters, comm.rank))
    bounds = np.array(comm.allgather(_first_node(graph, comm.rank)) + [graph.num_nodes])
    expected = np.full(graph.num_nodes, -1)
    exchanged = expected.copy()
    for block in range(rounds):
        for rank in range(SIZE):
            first, size = bounds[rank], bounds[rank + 1] - bounds[rank]
            for node in range(first + size * block // rounds, first + size * (block + 1) // rounds):
                row = graph.targets[graph.indptr[node] : graph.indptr[node + 1]]
                own = (row >= first) & (row < first + size)
                known = np.where(own, expected[row], exchanged[row]) >= 0
                expected[node] = np.count_nonzero(known) % SIZE
        exchanged = expected.copy()
    assert np.array_equal(found, expected)


def _first_node(graph: graphs.Graph, rank: int) -> int:
    first_edge = -(-graph.num_edges * rank // SIZE)
    return int(np.searchsorted(graph.indptr, first_edge))


@pytest.mark.mpi
def test_counting_edges(comm, shared_tmp, policy):
    """Edge state: round robin over the ranks; every rank's share differs by little."""
    graph = graphs.random_directed(100, 2000)
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph(path, policy(EDGES, rounds=50), comm)
    parts.check_partition(part, graph)
    spread = comm.allgather(part.num_local_edges)
    assert max(spread) - min(spread) <= 60 * SIZE


@pytest.mark.mpi
def test_second_pass_knows_the_first(comm, shared_tmp, policy):
    """Restreaming: from the second pass on, the master of every neighbour is known."""
    graph = graphs.random_directed(90, 700)
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph(path, policy(KNOWN, rounds=3, passes=2), comm)
    parts.check_partition(part, graph)
    assert np.array_equal(parts.gather(part, np.full(part.num_masters, comm.rank)), graph.degrees % SIZE)


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["fec", "ldg"])
def test_state_is_fresh_in_each_pass(comm, shared_tmp, name):
    """Several passes of a rule with loads keep every invariant, and repeat bit for bit."""
    graph = graphs.HARD["hub"]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    found = []
    for _ in range(2):
        part = partition_graph(path, load_policy(name, passes=3, rounds=5), comm)
        parts.check_partition(part, graph)
        found.append(part.gids.tolist())
    assert found[0] == found[1]


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def make_mstate(prop):\n    return [1]\n", "namedtuple of arrays"),
        ("def make_mstate(prop):\n    return MState(3)\n", "namedtuple of arrays"),
        ("combine = {'nodes': 'multiply'}\n", "combined by 'multiply'"),
    ],
    ids=["list", "number", "combine"],
)
def test_state_of_the_wrong_kind(comm, shared_tmp, policy, text, message):
    """A state of the wrong kind is named, with what it should be."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    with pytest.raises(PolicyError, match=message):
        partition_graph(path, policy(COUNTING + text), comm)


@pytest.mark.mpi
def test_facts_on_neighbours(comm, shared_tmp, policy):
    """neighbor_degree knows both ends of every edge."""
    rule = (
        "def get_edge_owner(prop, src, dst, src_master, dst_master, estate):\n"
        "    return (prop.neighbor_degree(src) * 3 + prop.neighbor_degree(dst)) % prop.num_parts\n"
    )
    graph = graphs.random_directed(70, 500)
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph(path, policy(rule), comm)
    parts.check_partition(part, graph)
    sources, targets, _ = parts.edges_of(part)
    assert ((graph.degrees[sources] * 3 + graph.degrees[targets]) % SIZE == comm.rank).all()


@pytest.mark.mpi
@pytest.mark.parametrize("file", [{}, {"transpose": True}, {"index": np.int64}, {"symmetric": True}], ids=str)
@pytest.mark.parametrize("memory_limit", [None, 1 << 20])
def test_in_degrees(comm, shared_tmp, policy, file, memory_limit):
    """in_degree knows both ends of every edge and the neighbours of a node, whether or not the file has in-edges."""
    rule = (
        "def get_master(prop, node, mstate, masters):\n"
        "    most = prop.in_degree(node)\n"
        "    for neighbor in prop.out_neighbors(node):\n"
        "        most = max(most, prop.in_degree(neighbor))\n"
        "    return most % prop.num_parts\n"
        "def weigh(prop, src, dst):\n"
        "    return prop.in_degree(src) * 3 + prop.in_degree(dst)\n"
        "def get_edge_owner(prop, src, dst, src_master, dst_master, estate):\n"
        "    return weigh(prop, src, dst) % prop.num_parts\n"
    )
    graph = graphs.random_directed(70, 500)
    graph = graphs.both_ways(graph) if file.get("symmetric") else graph
    path = graphs.write(shared_tmp / "g.h5", graph, **file)
    part = partition_graph(path, policy(rule), comm, memory_limit=memory_limit)
    parts.check_partition(part, graph)
    in_degrees = np.bincount(graph.targets, minlength=graph.num_nodes)
    sources, targets, _ = parts.edges_of(part)
    assert ((in_degrees[sources] * 3 + in_degrees[targets]) % SIZE == comm.rank).all()
    most = in_degrees.copy()
    np.maximum.at(most, graph.sources, in_degrees[graph.targets])
    assert np.array_equal(parts.gather(part, np.full(part.num_masters, comm.rank)), most % SIZE)


@pytest.mark.mpi
@pytest.mark.filterwarnings("ignore:.*numba cannot compile")
def test_overlooked_question(comm, shared_tmp, policy):
    """A question hidden from the inspection of the rule is an error, never the wrong answer."""
    rule = (
        "def get_edge_owner(prop, src, dst, src_master, dst_master, estate):\n"
        "    return getattr(prop, 'in_' + 'degree')(src) % prop.num_parts\n"
    )
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(70, 500))
    with pytest.raises(PolicyError, match="prop.in_degree may be called by a rule"):
        partition_graph(path, policy(rule), comm)


@pytest.mark.mpi
def test_a_master_that_depends_on_who_asks(comm, shared_tmp, policy):
    """prop.rank is the reader's: such a rule is not pure, so its masters are fetched from the readers."""
    graph = graphs.random_directed(60, 400)
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph(path, policy("def get_master(prop, node, mstate, masters):\n    return prop.rank\n"), comm)
    parts.check_partition(part, graph)


One = namedtuple("One", "load")
STATES = {
    "a number": (lambda prop: 3, "must return a namedtuple of arrays, not 3"),
    "no array": (lambda prop: One(3), "must return a namedtuple"),
    "no argument": (lambda: 3, "raised TypeError"),
    "an exit": (lambda prop: sys.exit(0), "raised SystemExit: 0"),
    "text": (lambda prop: One(np.array(["a"])), "of type <U1"),
    "booleans": (lambda prop: One(np.zeros(3, bool)), "of type bool"),
    "every other": (lambda prop: One(np.zeros(6)[::2]), r"strides \(16,\)"),
    "read-only": (lambda prop: One(np.broadcast_to(0.0, 4)), "writeable"),
}


@pytest.mark.parametrize("name", STATES)
def test_states_that_are_refused(name):
    """With what was found."""
    make, pattern = STATES[name]
    with pytest.raises(PolicyError, match=pattern):
        make_state(make, None, {}, "mine")


@pytest.mark.mpi(min_size=2)
def test_state_of_different_sizes(comm):
    """Ranks cannot add up what is not of one size; each may keep its own."""
    policy = load_policy("fec")
    with pytest.raises(PolicyError, match=r"\(1,\)\)} on rank 0, but .*\(2,\)\)} on rank 1"):
        start_state(lambda prop: One(np.zeros(comm.rank + 1)), None, policy, comm)
    alone = replace(policy, combine={"load": "local"})
    assert start_state(lambda prop: One(np.zeros(comm.rank + 1)), None, alone, comm)[0].load.size == comm.rank + 1


LOOKS = """
import numpy as np
from collections import namedtuple

State = namedtuple("State", "color")
combine = {"color": "local"}

def make_estate(prop):
    return State(np.arange(prop.num_places) % 7)

def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    return (estate.color[prop.place(src)] + 3 * color_of(prop, dst, estate)) % prop.num_parts

def color_of(prop, node, estate):
    return estate.color[prop.place(node)]
"""
HELPER_STORES = LOOKS.replace("    return estate.color[", "    estate.color[0] += 1\n    return estate.color[")
CALL_WRITES = LOOKS.replace("    return (estate", "    np.add(estate.color, 1, estate.color)\n    return (estate")
CALLED_BY_NAME = CALL_WRITES.replace("import numpy as np\n", "import numpy as np\nfrom numpy import add\n").replace(
    "np.add", "add"
)
METHOD_FILLS = LOOKS.replace("    return (estate", "    estate.color[:1].fill(3)\n    return (estate")


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (LOOKS, False),
        (HELPER_STORES, True),
        (METHOD_FILLS, True),
        (CALL_WRITES, True),
        (CALLED_BY_NAME, True),
        (EDGES, True),
    ],
)
def test_who_changes_state(text, changes):
    """Found in the rule and in what it calls."""
    assert uses_of(load_policy(parts.user_file(text))).changes == changes


@pytest.mark.parametrize(("name", "changes"), [("hep", False), ("2ps", True), ("hdrf", True), ("oec", False)])
def test_who_of_ours_changes_state(name, changes):
    assert uses_of(load_policy(name)).changes == changes


@pytest.mark.mpi
def test_state_that_only_is_looked_at(comm, shared_tmp, monkeypatch):
    """All threads ask such a rule, without rounds, with the same result."""
    graph = graphs.random_directed(3000, 20_000)
    path, policy = graphs.write(shared_tmp / "g.h5", graph), load_policy(parts.user_file(LOOKS))
    alone = partition_graph(path, policy, comm)
    monkeypatch.setenv("CUSP_THREADS", "3")
    asked: list[int] = []
    monkeypatch.setattr(
        assign_edges, "in_parallel", lambda ask, spans: asked.append(len(spans)) or in_parallel(ask, spans)
    )
    with ranges_of_any_size():
        together = partition_graph(path, policy, comm)
    assert len(asked) == 1 and asked[0] > 1
    assert np.array_equal(alone.gids, together.gids) and np.array_equal(alone.targets, together.targets)
    parts.check_partition(together, graph)
