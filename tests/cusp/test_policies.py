"""Policies: built-in names, users' files, grids; rules mean the same compiled and in Python."""

import sys
from dataclasses import replace
from types import ModuleType

import graphs
import numpy as np
import parts
import pytest
import ranks
import spawn

from cusp.edge_lists.generators import generate
from cusp.errors import OptionError, PolicyError
from cusp.estimates.quality import measure_quality
from cusp.input.edge_slice import read_slice
from cusp.partitioner import partition_graph
from cusp.policies import POLICIES, load_policy
from cusp.policies.compile_rules import compile_policy
from cusp.policies.inspect_rules import arguments_used, attributes_used, fingerprint
from cusp.policies.prop import MastersView, Prop

SIZE = ranks.COMM.size


@pytest.fixture
def user_policy():
    """Function (source text) -> the policy of a user's file with it."""
    return lambda text: load_policy(parts.user_file(text))


def master(line: str) -> str:
    """A master rule of one line."""
    return f"def get_master(prop, node, mstate, masters):\n    {line}\n"


def owner(line: str) -> str:
    """An edge rule of one line."""
    return f"def get_edge_owner(prop, src, dst, src_master, dst_master, estate):\n    {line}\n"


def test_names():
    """Each built-in name is two rules; a pair can be written out."""
    assert {"oec", "iec", "cvc", "hvc"} <= set(POLICIES)
    for name, (master_name, edge_name) in POLICIES.items():
        if "map" in name:
            continue
        policy, pair = load_policy(name), load_policy(f"{master_name}+{edge_name}")
        assert (policy.master, policy.edge) == (pair.master, pair.edge)


@pytest.mark.parametrize(("size", "grid"), [(1, (1, 1)), (2, (2, 1)), (3, (3, 1)), (4, (2, 2)), (6, (3, 2)),
                                            (12, (4, 3)), (7, (7, 1)), (64, (8, 8)), (24, (6, 4))])  # fmt: skip
def test_default_grid(size, grid):
    """The squarest grid with rows >= columns, as in CuSP."""
    assert load_policy("cvc").grid_for(size) == grid


def test_grid_that_does_not_fit():
    """Named with both numbers."""
    assert load_policy("cvc", grid=(3, 4)).grid_for(12) == (3, 4)
    with pytest.raises(OptionError, match="3x4 is for 12 ranks, but there are 8"):
        load_policy("cvc", grid=(3, 4)).grid_for(8)


@pytest.mark.parametrize("name", ["", "OEC", "oec ", "oec+iec", "contiguous+", "+source", "cvc.py", "/"])
def test_unknown(name):
    """Refused, with the names that exist."""
    with pytest.raises(PolicyError):
        load_policy(name)


@pytest.mark.mpi
def test_one_rule_is_enough(user_policy):
    """The missing one is taken from the outgoing edge-cut."""
    oec = load_policy("oec")
    assert user_policy(master("return 0")).edge is oec.edge
    assert user_policy(owner("return 0")).master is oec.master


@pytest.mark.mpi
def test_an_edited_file_is_a_new_policy(comm, shared_tmp):
    """In the same process, under the same name."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    for rank in (0, SIZE - 1):
        if comm.rank == 0:
            (shared_tmp / "mine.py").write_text(master(f"return {rank}"))
        comm.Barrier()
        part = partition_graph(path, load_policy(str(shared_tmp / "mine.py")), comm)
        assert part.num_masters == (60 if comm.rank == rank else 0)


@pytest.mark.mpi
@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("policy", ["oec", "iec", "cvc", "hvc", "random", "random2d"])
def test_compiled_as_in_python(comm, shared_tmp, policy):
    """The plain Python function gives for each edge what the compiled loop gave."""
    graph = graphs.HARD["hub"]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    policy = load_policy(policy, threshold=3)
    part = partition_graph(path, policy, comm)
    edges = read_slice(path, comm)
    prop = make_prop(edges, policy, comm)
    owners: dict[tuple[int, int], int] = {}
    for row in range(edges.indptr.size - 1):
        src = edges.first_node + row
        for dst in edges.targets[edges.indptr[row] : edges.indptr[row + 1]].tolist():
            ends = (policy.master(prop, node, None, None) for node in (src, dst))
            owners[src, dst] = int(policy.edge(prop, src, dst, *ends, None))
    everywhere = {edge: rank for part_of_all in comm.allgather(owners) for edge, rank in part_of_all.items()}
    for p in parts.gather_parts(part):
        assert all(everywhere[u, v] == p.rank for u, v in zip(p.sources.tolist(), p.targets.tolist(), strict=True))


def make_prop(edges, policy, comm) -> Prop:
    """What rules may ask."""
    return Prop(edges, comm.size, comm.rank, policy.grid_for(comm.size), policy.threshold)


@pytest.mark.mpi
@pytest.mark.parametrize("split", ["edges", "nodes"])
def test_prop(comm, shared_tmp, split):
    """Facts about the graph, in Python: sizes, the reader of each node, degrees and neighbours of the slice."""
    graph = graphs.HARD["first_isolated"]()
    edges = read_slice(graphs.write(shared_tmp / "g.h5", graph), comm, split)
    prop = make_prop(edges, load_policy("cvc"), comm)
    assert (prop.num_nodes, prop.num_edges, prop.num_parts) == (graph.num_nodes, graph.num_edges, SIZE)
    assert prop.rows * prop.columns == SIZE
    for node in range(graph.num_nodes):
        own = edges.bounds[comm.rank] <= node < edges.bounds[comm.rank + 1]
        assert edges.bounds[prop.reader(node)] <= node < edges.bounds[prop.reader(node) + 1]
        if own:
            assert prop.out_degree(node) == graph.degrees[node]
            np.testing.assert_array_equal(prop.out_neighbors(node), graph.targets[graph.sources == node])


def test_reader_of_many_nodes():
    """The table of guesses and the search after it, for more nodes than the table has entries."""
    bounds = np.array([0, 0, 17, 17, 5000, 40_000, 99_999, 100_000, 100_000])
    edges = read_nothing(100_000, bounds)
    prop = Prop(edges, bounds.size - 1, 0, (bounds.size - 1, 1), 5)
    for node in [0, 16, 17, 4999, 5000, 39_999, 40_000, 99_998, 99_999, *range(0, 100_000, 777)]:
        assert prop.reader(node) == np.searchsorted(bounds, node, "right") - 1


def read_nothing(num_nodes: int, bounds: np.ndarray):
    """The empty slice of rank 0 of a graph without edges."""
    from cusp.input.edge_slice import EdgeSlice

    nothing = np.empty(0, np.uint32)
    return EdgeSlice(num_nodes, 0, False, bounds, 0, np.zeros(1, np.int64), nothing, None)


@pytest.mark.mpi
def test_parameters_may_have_any_names(comm, shared_tmp, user_policy):
    """Rules are called by position: a user may call the ends of an edge u and v."""
    graph = graphs.random_directed()
    path = graphs.write(shared_tmp / "g.h5", graph)
    text = "def get_edge_owner(p, u, v, mu, mv, state):\n    return (3 * v + mv) % p.num_parts\n"
    text += "def get_master(p, n, s, m):\n    return (n + 1) % p.num_parts\n"
    part = partition_graph(path, user_policy(text), comm)
    for p in parts.gather_parts(part):
        assert ((3 * p.targets + (p.targets + 1) % SIZE) % SIZE == p.rank).all()


@pytest.mark.mpi
def test_edge_rule_is_asked_about_edges_only(comm, shared_tmp, user_policy):
    """A rule that divides by the source's degree: nodes without edges are never asked about."""
    graph = graphs.HARD["last_isolated"]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    parts.check_partition(
        partition_graph(path, user_policy(owner("return 100 // prop.out_degree(src) % prop.num_parts")), comm), graph
    )


@pytest.mark.mpi
def test_master_by_degree(comm, shared_tmp, user_policy):
    """A master rule that asks for a degree, which only the node's reader knows, is right everywhere."""
    graph = graphs.HARD["hub"]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    text = master("return 0 if prop.out_degree(node) > 2 else node % prop.num_parts")
    part = partition_graph(path, user_policy(text + owner("return dst_master")), comm)
    expected = np.where(graph.degrees > 2, 0, np.arange(graph.num_nodes) % SIZE)
    for p in parts.check_partition(part, graph):
        assert (expected[p.gids[: p.num_masters]] == p.rank).all()
        assert (expected[p.targets] == p.rank).all()


@pytest.mark.mpi
def test_helpers_that_call_each_other(comm, shared_tmp, user_policy):
    """Helpers of helpers, and a constant array."""
    text = (
        "import numpy as np\nTABLE = np.arange(5)\ndef a(x):\n    return TABLE[x % 5]\ndef b(x):\n    return a(x) + 1\n"
    )
    graph = graphs.random_directed()
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph(path, user_policy(text + master("return b(node) % prop.num_parts")), comm)
    parts.check_partition(part, graph)
    assert ((part.gids[: part.num_masters] % 5 + 1) % SIZE == comm.rank).all()


@pytest.mark.mpi
@pytest.mark.filterwarnings("ignore:.*numba cannot compile")
def test_helpers_in_a_cycle(comm, shared_tmp, user_policy):
    """Two helpers that call each other: compiled, interpreted or refused, but no endless recursion."""
    text = "def a(x):\n    return b(x - 2) if x > 1 else x\ndef b(x):\n    return a(x) if x > 1 else x\n"
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    try:
        part = partition_graph(path, user_policy(text + master("return a(node) % prop.num_parts")), comm)
    except PolicyError:
        return
    assert (part.gids[: part.num_masters] % 2 % SIZE == comm.rank).all()


@pytest.mark.mpi
@pytest.mark.parametrize("line", ["return float('nan')", "return node / 0.0"])
@pytest.mark.filterwarnings("ignore:.*numba cannot compile")
def test_rank_that_is_not_a_number(comm, shared_tmp, user_policy, line):
    """NaN is not a rank."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    with pytest.raises(PolicyError):
        partition_graph(path, user_policy(master(line)), comm)


HIDDEN = {
    "random": "import random\n" + master("return random.randrange(prop.num_parts)"),
    "random_edges": "import numpy as np\n" + owner("return np.random.randint(0, prop.num_parts)"),
    "list": "seen = []\n" + master("seen.append(node)\n    return len(seen) % prop.num_parts"),
    "dict": "seen = {}\n" + owner("seen[src] = dst\n    return len(seen) % prop.num_parts"),
    "object": "from itertools import count\nnumbers = count()\n" + master("return next(numbers) % prop.num_parts"),
}


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.filterwarnings("ignore:.*numba cannot compile")
def test_hidden_state_is_found(comm, shared_tmp, user_policy, kind):
    """A rule that says something else when it is asked again is an error on every rank, and names the question."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    with pytest.raises(PolicyError, match="get_(master of node|edge_owner of the edge) .* when asked again"):
        partition_graph(path, user_policy(HIDDEN[kind]), comm)


@pytest.mark.mpi
def test_file_in_a_folder_with_a_plus(comm, shared_tmp):
    """A path is a path, also if it has a plus in it."""
    if comm.rank == 0:
        (shared_tmp / "c++").mkdir()
        (shared_tmp / "c++" / "mine.py").write_text(master("return 0"))
    comm.Barrier()
    assert load_policy(str(shared_tmp / "c++" / "mine.py")).edge is load_policy("oec").edge


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["svc", "ldg", "hdrf"])
@pytest.mark.parametrize("rounds", [1, 7])
def test_rules_with_state(comm, shared_tmp, policy, rounds):
    """Every invariant, and the same partition twice, for any number of rounds."""
    graph = graphs.random_directed(100, 900)
    path = graphs.write(shared_tmp / "g.h5", graph)
    chosen = replace(load_policy(policy, threshold=20), rounds=rounds)
    first, second = (parts.check_partition(partition_graph(path, chosen, comm), graph) for _ in range(2))
    assert [p.gids.tolist() for p in first] == [p.gids.tolist() for p in second]


def test_what_rules_look_at():
    """Arguments by their places, and attributes, in helpers too."""
    assert arguments_used(load_policy("iec").edge) == {4}
    assert arguments_used(load_policy("oec").edge) == {3}
    assert "rank" not in attributes_used(load_policy("fec").master)  # a local variable of that name is no attribute
    assert {"out_degree", "threshold"} <= attributes_used(load_policy("hvc").edge)


RULE = """
import numpy
import other
from other import add
def twice(x):
    return 2 * x
def rule_with(inner):
    def get_master(prop, node, mstate, masters):
        return inner(add(node)) + other.LIMIT + other.Kind.LARGE + numpy.int64(3)
    return get_master
get_master = rule_with(twice)
"""
OTHER = """
from numba import njit
LIMIT, TABLE, UNUSED = 5, (1, 2), 0
class Kind:
    LARGE = 7
@njit
def deep(x):
    return [TABLE[0] + k for k in (x,)][0]
def add(x, more=1):
    return deep(x) + more
"""
CHANGES = {
    "a constant of a module": ("LIMIT, TABLE, UNUSED = 5", "LIMIT, TABLE, UNUSED = 6"),
    "an attribute of a class": ("LARGE = 7", "LARGE = 8"),
    "a table in a comprehension": ("(1, 2)", "(3, 2)"),
    "a function of another module": ("deep(x) + more", "deep(x) - more"),
    "a default": ("more=1", "more=2"),
    "a compiled function": ("+ k", "- k"),
    "an enclosed function": ("return 2 * x", "return 3 * x"),
    "a comment": ("import numpy\n", "import numpy  # as it is\n"),
    "what no rule uses": ("UNUSED = 5, (1, 2), 0", "UNUSED = 5, (1, 2), 1"),
}


def fingerprint_of(monkeypatch, change: tuple[str, str] = ("", "")) -> bytes:
    """That of a rule which imports from another file, after a change to one of the files."""
    modules = {}
    for name, text in (("other", OTHER), ("mine", RULE)):
        modules[name] = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, modules[name])
        exec(compile(text.replace(*change), f"{name}.py", "exec"), modules[name].__dict__)
    return fingerprint(modules["mine"].get_master)


@pytest.mark.parametrize("change", CHANGES)
def test_compiled_rules_are_kept_only_while_all_that_they_use_is_the_same(monkeypatch, change):
    """In files that the user's file imports, too."""
    before = fingerprint_of(monkeypatch)
    assert before == fingerprint_of(monkeypatch)
    same = change in ("a comment", "what no rule uses")
    assert (fingerprint_of(monkeypatch, CHANGES[change]) == before) == same


def test_what_is_not_there():
    """Questions about nodes that do not exist, or that this slice does not touch."""
    edges = read_nothing(1000, np.array([0, 1000]))
    index = np.zeros(32, np.uint64)
    prop = Prop(edges, 1, 0, (1, 1), 5, neighbor_index=index)
    view = MastersView(0, np.zeros(0, np.int8), index, np.zeros(0, np.int8))
    for node in (-(10**12), -65, -1, 1000, 1024, 10**12):
        assert prop.reader(node) == prop.place(node) == prop.neighbor_degree(node) == view[node] == -1
        assert prop.in_degree(node) == prop.out_degree(node) == prop.mapped(node) == -1


def test_map_without_a_map():
    """Said before anything is read."""
    with pytest.raises(PolicyError, match="needs --node-map FILE"):
        compile_policy("map")


def test_constants_from_outside_are_not_stale(tmp_path):
    """A policy that reads a file: when that changes, so do its masters, in a new process."""
    graphs.write_here(tmp_path / "g.h5", graphs.random_directed())
    table = tmp_path / "rank.txt"
    text = f"RANK = int(open({str(table)!r}).read())\n" + master("return RANK")
    (tmp_path / "mine.py").write_text(text)
    shown = []
    for rank in (0, 1):
        table.write_text(str(rank))
        done = spawn.mpirun(2, "-m", "cusp", tmp_path / "g.h5", "--policy", tmp_path / "mine.py", timeout=60)
        assert done.returncode == 0, done.stderr
        shown.append([line.split()[1] for line in done.stdout.splitlines()[2:4]])
    assert shown == [["60", "0"], ["0", "60"]]


@pytest.mark.mpi(min_size=2)
def test_hdrf_spreads_a_stream_of_neighbours(comm, shared_tmp):
    """On a ring every edge has an end where the last one went: without a limit one rank would get all of them."""
    nodes = np.arange(3000)
    ring = graphs.both_ways(graphs.make(nodes.size, np.stack([nodes, (nodes + 1) % nodes.size], axis=1)))
    part = partition_graph(graphs.write(shared_tmp / "g.h5", ring), load_policy("hdrf"), comm)
    assert measure_quality(part, comm).edge_balance < 1.25


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "file"), [("cvc", "cartesian.py"), ("hvc", "hybrid.py"), ("fec", "fennel.py")])
def test_file_partitions_as_the_built_in(comm, shared_tmp, name, file):
    """Bit for bit: a policy in a user's file gives every rank the arrays that the built-in one gives it."""
    path = str(shared_tmp / "graph.h5")
    generate("rmat", comm, scale=9, weights="1:9").write(path)
    copy = parts.user_file((parts.FOLDER / "built_in" / file).read_text(), file)
    built_in, own = (
        partition_graph(path, load_policy(policy, threshold=40), comm, csc=True) for policy in (name, copy)
    )
    for field in ("gids", "mirror_starts", "offsets", "targets", "weights", "has_in", "has_out", "degrees"):
        expected, found = getattr(built_in, field), getattr(own, field)
        assert expected.dtype == found.dtype and expected.tobytes() == found.tobytes(), field
    for expected, found in zip(vars(built_in.csc).values(), vars(own.csc).values(), strict=True):
        assert expected.tobytes() == found.tobytes()
    hubs = comm.allreduce(np.count_nonzero(built_in.degrees > 40))
    assert hubs > 0 and parts.SIZE == comm.size


@pytest.mark.mpi
def test_rules_that_are_lambdas(comm, shared_tmp, user_policy):
    """A lambda has no name by which compiled code could find it again; it is a function like others."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed(20, 60))
    policy = user_policy(
        "get_master = lambda prop, node, mstate, masters: node % prop.num_parts\n"
        "get_edge_owner = lambda prop, src, dst, src_master, dst_master, estate: src_master\n"
    )
    part = partition_graph(path, policy, comm)
    assert (part.gids[: part.num_masters] % comm.size == comm.rank).all()
