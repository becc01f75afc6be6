"""Policies that look at the graph before: visits, finish, settle, the order of nodes, state of nodes; 2ps and hep."""

from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import graphs
import numpy as np
import parts
import pytest
import ranks

from cusp.errors import PolicyError
from cusp.estimates.estimate import estimate
from cusp.input.edge_slice import read_slice
from cusp.neighbors import both_directions, find_neighbors
from cusp.policies import load_policy
from cusp.policies.inspect_rules import described
from cusp.policies.state import combine_state, copy_state
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
        ("make_state = 3\n", "not a function"),
    ],
)
def test_mistakes(text, message):
    rule = "def get_master(prop, node, mstate, masters):\n    return 0\n"
    with pytest.raises(PolicyError, match=message):
        parts.partition_graph(
            (np.arange(3), np.arange(3)), load_policy(parts.user_file(rule + text)), ranks.MPI.COMM_SELF
        )


@pytest.mark.parametrize("name", ["visit", "finish", "settle", "make_state", "order"])
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
