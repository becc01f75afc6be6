"""python -m cusp: the table, figures, exports, comparisons and templates (cusp/__main__.py)."""

import json
from itertools import product

import graphs
import numpy as np
import parts
import pytest
import ranks
import spawn

from cusp.__main__ import main
from cusp.errors import InputError, OptionError, PolicyError
from cusp.estimates.dry_run import dry_run
from cusp.estimates.estimate import estimate
from cusp.estimates.quality import measure_quality
from cusp.input.edge_slice import read_slice
from cusp.input.graph_file import read_header
from cusp.partitioner import partition_graph
from cusp.policies import POLICIES as BUILT_IN
from cusp.policies import load_policy
from cusp.program.compare import comparison_table

SIZE = ranks.COMM.size
NAMES = ["oec", "iec", "cvc", "hvc", "fec", "gvc", "svc", "ldg", "dbh", "hdrf", "random", "random2d"]
CASES = [*product(["random"], NAMES), *product(["hub", "loops_and_doubles", "no_edges"], ["cvc", "svc", "hdrf"])]


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "policy"), parts.share(CASES))
def test_estimate_is_what_is_built(comm, shared_tmp, name, policy):
    """All figures of a comparison equal those of the partition itself."""
    graph = graphs.HARD[name]()
    path = graphs.write(shared_tmp / "g.h5", graph)
    policy = load_policy(policy, threshold=3)
    edges = read_slice(path, comm)
    found = estimate(edges, policy, SIZE, "edges", comm)
    part = partition_graph(path, policy, comm)
    built = measure_quality(part, comm)
    for field in ("masters", "proxies", "edges", "partners", "mirrors_in", "mirrors_out"):
        assert np.array_equal(getattr(found.quality, field), getattr(built, field)), field
    assert found.quality.summary() == built.summary()
    readers = np.searchsorted(edges.bounds, parts.edges_of(part)[0], side="right") - 1
    assert found.quality.moved_edges == comm.allreduce(np.count_nonzero(readers != comm.rank))
    master_of = parts.gather(part, np.full(part.num_masters, comm.rank))
    assert found.cut_edges == np.count_nonzero(master_of[graph.sources] != master_of[graph.targets])


@pytest.mark.mpi
@pytest.mark.parametrize("policy", ["oec", "cvc", "hvc", "random2d", "dbh"])
@pytest.mark.parametrize("num_parts", [1, 6, 70])
def test_more_parts_than_ranks(comm, shared_tmp, policy, num_parts):
    """Rules without state: the figures do not depend on how many ranks computed them."""
    graph = graphs.random_directed(400, 3000)
    path = graphs.write(shared_tmp / "g.h5", graph)
    policy = load_policy(policy, threshold=9)
    found = estimate(read_slice(path, comm), policy, num_parts, "edges", comm)
    alone = estimate(read_slice(path, ranks.MPI.COMM_SELF), policy, num_parts, "edges", ranks.MPI.COMM_SELF)
    assert found.quality.summary() == alone.quality.summary()
    assert found.cut_edges == alone.cut_edges
    assert found.quality.moved_edges == alone.quality.moved_edges
    assert (found.quality.moved_edges == 0) == (policy.name == "oec" or num_parts == 1)
    assert found.quality.edges.sum() == graph.num_edges
    assert found.quality.masters.sum() == graph.num_nodes


def test_comparison_is_a_table():
    """By what they send, no line above 100 characters, the best of a column marked unless all are the same."""
    names = ("oec", "folder/of/somebody/with_a_very_long_name_indeed.py", "hdrf")
    figures = [
        {
            "policy": name, "cut_edges": cut, "replication": 2.0, "node_balance": 1.0, "edge_balance": 1.004,
            "master_balance": 1.0 + cut / 1e6, "partners": 3.0, "mb_a_round": sent, "memory_mb": 123456.0,
            "seconds": 1.0,
        }
        for name, cut, sent in zip(names, (10**6, 0, 10**5), (12345.678, 1.0, 7.0))
    ]  # fmt: skip
    lines = comparison_table("g.h5", 4, 10**6, figures).splitlines()
    assert [line.split()[0] for line in lines[3:]] == ["with_a_very…_indeed.py", "hdrf", "oec"]
    assert max(map(len, lines)) <= 100 and len({len(line) for line in lines[3:]}) <= 2
    assert "in 4 parts" in lines[0]
    columns = [line.split()[1:] for line in lines[3:]]
    assert [values[4] for values in columns] == ["0.0%*", "10.0%", "100.0%"]
    assert [values[3] for values in columns] == ["1.00*", "1.10", "2.00"]
    assert {values[0] for values in columns} == {"2.000"}
    tiny = [
        entry | {"mb_a_round": size, "memory_mb": 9.3e-5 + size} for entry, size in zip(figures, (2e-5, 3e-5, 4e-5))
    ]
    titles, *rows = comparison_table("few.csv", 4, 7, tiny).splitlines()[2:]
    assert {len(row.split()) for row in rows} == {len(titles.replace("cut edges", "cut").split())}  # none touch


@pytest.mark.mpi
def test_several_numbers_of_parts(comm, shared_tmp, capfd):
    """A table and rows for each, of all policies that need no file; on several ranks, of some."""
    path, rows = graphs.write(shared_tmp / "g.h5", graphs.random_directed()), shared_tmp / "rows.json"
    policies = "all" if comm.size == 1 else "oec,hdrf,fec,random2d"
    assert main(comm, ["compare", path, "--ranks", "5,2", "--policies", policies, "--json", str(rows)]) == 0
    comm.Barrier()
    found = json.loads(rows.read_text())
    assert [row["parts"] for row in found] == [5] * len(found[: len(found) // 2]) + [2] * (len(found) // 2)
    assert {row["policy"] for row in found} >= {"oec", "hdrf", "fec", "random2d"}
    assert all(row["replication"] >= 1 and row["cut_edges"] >= 0 for row in found)
    if comm.rank == 0:
        out = capfd.readouterr().out
        assert out.index("in 5 parts") < out.index("in 2 parts")
    for wrong in ("", "4,,8", "x", "0"):
        with pytest.raises(InputError, match="--ranks"):
            main(comm, ["compare", path, f"--ranks={wrong},"])


@pytest.mark.mpi
def test_figures_in_files(comm, shared_tmp):
    """--json of a partition and of a comparison, by the same names."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    assert main(comm, [path, "--policy", "cvc", "--json", str(shared_tmp / "one.json")]) == 0
    assert main(comm, ["compare", path, "--policies", "oec,cvc", "--json", str(shared_tmp / "two.json")]) == 0
    comm.Barrier()
    one = json.loads((shared_tmp / "one.json").read_text())
    both = json.loads((shared_tmp / "two.json").read_text())
    assert [row["policy"] for row in both] == ["oec", "cvc"]
    for name in (
        "replication",
        "node_balance",
        "edge_balance",
        "master_balance",
        "partners",
        "mb_a_round",
        "memory_mb",
    ):
        assert one[name] == both[1][name]


BY_IN_DEGREE = """
def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    return (prop.in_degree(src) * 3 + prop.in_degree(dst)) % prop.num_parts
"""
STATE_AND_IN_DEGREE = """
from collections import namedtuple
import numpy as np

State = namedtuple("State", "load")
combine = {"load": "add"}

def make_mstate(prop):
    return State(np.zeros(prop.num_parts, np.int64))

make_estate = make_mstate

def lightest(state, weight):
    best = 0
    for rank in range(state.load.size):
        if state.load[rank] < state.load[best]:
            best = rank
    state.load[best] += weight
    return best

def get_master(prop, node, mstate, masters):
    for neighbor in prop.out_neighbors(node):
        if prop.in_degree(neighbor) > 6 and masters[neighbor] >= 0:
            return masters[neighbor]
    return lightest(mstate, 1 + prop.in_degree(node))

def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    if prop.in_degree(dst) > prop.in_degree(src):
        return lightest(estate, prop.in_degree(dst))
    return src_master
"""


@pytest.mark.mpi
@pytest.mark.parametrize("file", [{}, {"transpose": True}], ids=["counted", "read"])
@pytest.mark.parametrize("text", [BY_IN_DEGREE, STATE_AND_IN_DEGREE], ids=["pure", "state"])
def test_estimates_know_in_degrees(comm, shared_tmp, text, file):
    """compare, a dry run and the partition itself agree in all figures."""
    graph = graphs.random_directed(300, 2400, seed=5)
    path = graphs.write(shared_tmp / "g.h5", graph, **file)
    name, json_file = parts.user_file(text), shared_tmp / "compared.json"
    part = partition_graph(path, load_policy(name), comm)
    built = measure_quality(part, comm)
    dry = dry_run(read_header(path), load_policy(name), SIZE, "edges", comm).quality
    for field in ("masters", "proxies", "edges", "partners", "mirrors_in", "mirrors_out"):
        assert np.array_equal(getattr(dry, field), getattr(built, field)), field
    assert main(comm, ["compare", path, "--policies", f"oec,{name}", "--json", str(json_file)]) == 0
    comm.Barrier()
    compared = json.loads(json_file.read_text())[1]
    assert {key: compared[key] for key in built.summary()} == built.summary() == dry.summary()
    in_degrees = np.bincount(graph.targets, minlength=graph.num_nodes)
    for p in parts.check_partition(part, graph):
        if text == BY_IN_DEGREE:
            assert ((in_degrees[p.sources] * 3 + in_degrees[p.targets]) % SIZE == p.rank).all()


@pytest.mark.mpi
@pytest.mark.parametrize("form", ["metis", "distdgl", "parquet"])
def test_export_and_back(comm, shared_tmp, form):
    """What was exported is who is master; as a node map it gives the same masters again."""
    graph = graphs.random_directed()
    path = graphs.write(shared_tmp / "g.h5", graph)
    part = partition_graph(path, load_policy("random"), comm)
    expected = parts.gather(part, np.full(part.num_masters, comm.rank, np.int32))
    to = str(shared_tmp / "who")
    assert main(comm, [path, "--policy", "random", "--export", form, "--export-to", to]) == 0
    comm.Barrier()
    if form == "parquet":
        found = pytest.importorskip("pyarrow.parquet").read_table(to + ".parquet")
        assert found["node"].to_pylist() == list(range(graph.num_nodes))
        assert found["rank"].to_pylist() == expected.tolist()
        return
    file = f"{to}.part.{SIZE}" if form == "metis" else f"{to}.npy"
    if form == "distdgl":
        assert json.loads((shared_tmp / "who.json").read_text())["num_parts"] == SIZE
    again = partition_graph(path, load_policy("map", node_map=file), comm)
    assert np.array_equal(parts.gather(again, np.full(again.num_masters, comm.rank, np.int32)), expected)
    parts.check_partition(again, graph)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0\n", "has 1 ranks"),
        ("x\n" * 60, "line 1: expected the rank"),
        ("0\n" * 39 + "0.5\n" + "0\n" * 20, "line 40: expected the rank"),
        ("0\n4294967296\n" * 30, "line 2: expected the rank"),
        ("9\n" * 60, "not one of"),
        (None, "no such file"),
    ],
    ids=["short", "text", "fraction", "large", "rank", "missing"],
)
def test_bad_node_map(comm, shared_tmp, content, message):
    """Too short, not numbers, a rank that does not exist, no file."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    if comm.rank == 0 and content is not None:
        (shared_tmp / "map.txt").write_text(content)
    comm.Barrier()
    with pytest.raises(PolicyError, match=message):
        partition_graph(path, load_policy("map", node_map=str(shared_tmp / "map.txt")), comm)


@pytest.mark.mpi
def test_list_of_policies(comm, capsys):
    """Each built-in policy has a line with what its rules do."""
    assert main(comm, ["policies"]) == 0
    if comm.rank == 0:
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines][: len(BUILT_IN)] == list(BUILT_IN)
        assert all(len(line) > 60 for line in lines[: len(BUILT_IN)])


def test_template_runs(tmp_path, monkeypatch):
    """new-policy writes a policy and a test that passes on 2 ranks; a second time it refuses."""
    monkeypatch.chdir(tmp_path)
    assert main(ranks.COMM, ["new-policy", "mine"]) == 0
    done = spawn.mpirun(2, "test_mine.py", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("ok:"), done.stderr
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["mine.py", "test_mine.py"]
    with pytest.raises(OptionError, match="exists already"):
        main(ranks.COMM, ["new-policy", "mine"])


@pytest.mark.mpi
def test_name_that_is_not_a_name(comm):
    """new-policy takes Python names only."""
    with pytest.raises(OptionError, match="not a name"):
        main(comm, ["new-policy", "a-b"])
