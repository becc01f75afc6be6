"""Typical mistakes of users: in policies, algorithms, data and options. Each is one line that says what, where and why.

Those in files of graphs and policies that need compiled code are in ``damage.py``.
"""

import contextlib
import gzip
import re

import graphs
import numpy as np
import parts
import pytest
import spawn

from cusp.apps import betweenness, bfs, harness, pagerank, sssp
from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.harness import Answer
from cusp.apps.library import bfs as run_bfs
from cusp.apps.library import partition_graph
from cusp.errors import InputError, PolicyError, forgiven, together
from cusp.policies import load_policy
from cusp.runtime import debugging
from gluon.checks import LabelError
from gluon.label import Label
from gluon.reduction import ADD, MAX

MASTER = "def get_master(prop, node, mstate, masters):\n    {}\n"
EDGE = "def get_edge_owner(prop, src, dst, src_master, dst_master, estate):\n    {}\n"
STATE = """
import numpy as np
from collections import namedtuple
State = namedtuple("State", "load")
def make_mstate(prop):
    return State(np.zeros(prop.num_parts))
"""
AT = r", at .*mine.py:\d+: "  # the line of the rule
RULES = {
    "misspelt": (MASTER.format("return 0").replace("get_m", "getM"), "only getMaster; did you mean get_master[?]"),
    "none": ("x = 1\n", "defines neither get_master nor get_edge_owner"),
    "one-below": (MASTER.format("return -1 if node == 40 else 0"), "get_master of node 40 is -1, not one of the ranks"),
    "too-large": (MASTER.format("return node // 40 * 99"), "get_master of node 40 is 99, not one of the ranks 0 to"),
    "owner-too-large": (EDGE.format("return 99"), "get_edge_owner of the edge 0 -> .* is 99, not one of"),
    "float": (MASTER.format("return node / 2"), "node 0 raised TypeError: a rank is a whole number, not .*0.0"),
    "text": (MASTER.format("return 'a'"), "node 0 raised TypeError: a rank is a whole number, not 'a'"),
    "nothing": (MASTER.format("if node > 5: return 0"), "node 0 raised TypeError: a rank is a whole number, not None"),
    "divides-by-0": (MASTER.format("return 10 // (node - 40) % 1"), f"node 40 raised .*divide by zero.*{AT}return 10"),
    "past-state": (STATE + MASTER.format("return int(mstate.load[node + 99])"), f"node 0 .*index 99 is.*{AT}return"),
    "before-state": (STATE + MASTER.format("return int(mstate.load[-node - 99])"), f"node 0 .*index -99 is out.*{AT}r"),
    "few-arguments": ("def get_master(prop, node):\n    return 0\n", "has 2 arguments, not 4: prop, node, mstate"),
    "many-arguments": (EDGE.replace("prop,", "prop, more,").format("return 0"), "has 7 arguments, not 6: prop, src"),
    "unknown-name": (MASTER.format("return nod"), f"node 0 raised NameError: name 'nod' is not defined{AT}return nod"),
    "unknown-fact": (MASTER.format("return prop.num_part"), f"node 0 raised AttributeError: .*'num_part'{AT}return"),
    "no-state": (EDGE.format("return estate.load[0]"), f"get_edge_owner of the edge 0 .*'NoneType'.*'load'{AT}return"),
    "calls-itself": (MASTER.format("return get_master(prop, node, mstate, masters)"), "node 0 raised RecursionError"),
    "import": ("import no_such_thing\n", "cannot be run: ModuleNotFoundError: No module named 'no_such_thing'"),
    "syntax": ("def get_master(prop, node)\n    return 0\n", "cannot be run: SyntaxError: expected ':' .*line 1"),
    "combine": (f"combine = {{'load': 'mean'}}\n{STATE}" + MASTER.format("return int(mstate.load[0])"), "by 'mean'; c"),
    "state-as-list": ("def make_mstate(prop):\n    return [0]\n" + MASTER.format("return mstate[0]"), "a namedtuple"),
}  # fmt: skip
HIDDEN = {
    "random": "import random\n" + MASTER.format("return random.randrange(2)"),
    "list": "seen = []\n" + MASTER.format("seen.append(node); return len(seen) % 2"),
    "dict": "seen = {}\n" + MASTER.format("seen[len(seen)] = 1; return len(seen) % 2"),
    "global": "n = 0\n" + MASTER.format("global n; n += 1; return n % 2"),
    "object": "class A:\n    n = 0\n" + MASTER.format("A.n += 1; return A.n % 2"),
    "clock": "import time\n" + MASTER.format("return time.perf_counter_ns() // 100 % 2"),
}


@pytest.fixture
def debug():
    """Within the test, as with ``--debug``: rules are Python, and nothing is compiled."""
    debugging.start(True)
    yield
    debugging.start(False)


def one_line(error: BaseException) -> None:
    assert "\n" not in str(error) and len(str(error)) < 600


@pytest.mark.mpi
@pytest.mark.parametrize("name", parts.share(RULES))
def test_in_a_policy(comm, shared_tmp, debug, name):
    refused(comm, shared_tmp, *RULES[name])


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("name", parts.share(HIDDEN))
def test_what_a_policy_hides(comm, shared_tmp, debug, name):
    refused(
        comm,
        shared_tmp,
        HIDDEN[name],
        "get_master of node .* when asked again; a rule may depend on",
    )


def refused(comm, shared_tmp, text: str, message: str) -> None:
    """A policy file with this text is refused with this message on every rank. Collective."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    if comm.rank == 0:
        (shared_tmp / "mine.py").write_text(text)
    comm.Barrier()
    with pytest.raises(PolicyError, match=message) as caught:
        parts.partition_graph(path, load_policy(str(shared_tmp / "mine.py")), comm)
    one_line(caught.value)


COMPILED = {
    "past-state": (RULES["past-state"][0], RULES["past-state"][1]),
    "divides-by-0": (RULES["divides-by-0"][0], f"node 40 raised ZeroDivisionError: integer .*{AT}return 10"),
}


@pytest.mark.mpi
@pytest.mark.parametrize("name", COMPILED)
def test_in_a_policy_that_is_compiled(comm, shared_tmp, name):
    """The line is found by asking once more, in Python."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    with pytest.raises(PolicyError, match=COMPILED[name][1]):
        parts.partition_graph(path, load_policy(parts.user_file(COMPILED[name][0])), comm)


TABLE = "source,target,weight\n0,1,1\n1,2,{}\n"
EDGES = "".join(f"{i},{i * 7 % 5000}\n" for i in range(5000))
NAMED = "source,target,weight\nAnna,Bert,1.5\n"
ONE = ("g.txt", "0 1\n")
DATA = {
    "headings": (sssp, "g.csv", "foo,bar\n0,1\n", "g.csv has the columns foo, bar; name those that are the source"),
    "no-weight": (sssp, "g.csv", TABLE.format(""), "g.csv: the edge 1 -> 2 has no weight, or one that is not a number"),
    "nan": (sssp, "g.csv", TABLE.format("nan"), "g.csv: the edge 1 -> 2 has no weight, or one that is not a number"),
    "no-weight-of-names": (sssp, "g.csv", f"{NAMED}Bert,Carl,\n", "the edge Bert -> Carl has no weight, or one"),
    "negative": (sssp, "g.csv", TABLE.format("-3"), "the edge 1 -> 2 has the weight -3; shortest paths need"),
    "negative-id": (bfs, "g.csv", "source,target\n0,1\n1,-2\n", "edge 1 goes .* to node -2, but", "--ids", "numbers"),
    "no-id": (bfs, "g.csv", "source,target\n0,1\n,2\n", "g.csv: a value is missing in the columns source, target"),
    "too-many-fields": (bfs, "g.csv", "source,target\n0,1\n1,2,3\n", "line 3: expected 2 columns.*found 3"),
    "empty": (bfs, "g.csv", "", "g.csv: is empty"),
    "no-graph": (bfs, "notes", "hello this is no graph\n", "notes: cannot tell its format; cusp convert takes"),
    "binary": (bfs, "g.csv", bytes(range(256)) * 20, "g.csv: cannot tell its format"),
    "wrong-suffix": (bfs, "g.mtx", "0 1\n1 2\n", "g.mtx, line 1: expected '%%MatrixMarket"),
    "text-as-hdf5": (bfs, "g.h5", "0 1\n", "g.h5: not an HDF5 file"),
    "cut-off": (bfs, "g.csv.gz", gzip.compress(("source,target\n" + EDGES).encode())[:-3000], "damaged gzip file"),
    "missing": (bfs, "g.h5", None, "g.h5: no such file"),
    "source": (bfs, "g.txt", "0 1\n1 2\n", "--source 7: the graph has the nodes 0 to 2", "--source", "7"),
    "source-by-name": (bfs, "g.csv", NAMED, "--source 'Ana': .*similar: Anna", "--source", "Ana"),
    "start-by-name": (pagerank, "g.csv", NAMED, "'Ana': .*similar: Anna; nor is there such a", "--personalize", "Ana"),
    "between-by-name": (betweenness, "g.csv", NAMED, "--source 'Ana': .*similar: Anna", "--source", "Bert", "Ana"),
    "policy": (bfs, *ONE, "--policy cvcc: unknown; choose one of oec, iec", "--policy", "cvcc"),
    "grid": (bfs, *ONE, "--grid 3x5 is for 15 ranks, but there are 1", "--grid", "3x5"),
    "folder": (bfs, *ONE, "no/x.h5: there is no folder no; create it first", "--output", "no/x.h5"),
    "onto-the-input": (bfs, *ONE, "--output g.txt: the suffix of the name decides", "--output", "g.txt"),
    "little-memory": (bfs, "g.h5", graphs.random_directed(), "1 bytes are not enough", "--memory-limit", "1"),
    "memory-of-text": (bfs, *ONE, "--memory-limit: needs a graph file", "--memory-limit", "1G"),
}  # fmt: skip


@pytest.mark.parametrize("name", DATA)
def test_in_data_and_options(comm, tmp_path, monkeypatch, name):
    app, file, content, message, *options = DATA[name]
    monkeypatch.chdir(tmp_path)
    if isinstance(content, graphs.Graph):
        graphs.write_here(tmp_path / file, content)
    elif content is not None:
        (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message) as caught:
        harness.main(app.APP, comm, [file, *options])
    one_line(caught.value)


WORDS = {
    "--polcy cvc": "unrecognized arguments: --polcy cvc; did you mean --policy[?]",
    "--source 1 --sources 3": "argument --sources: not allowed with argument --source",
    "--threads 0": "argument --threads: 0: expected a whole number from 1 to 1024",
    "--device gppu": "argument --device: 'gppu': choose one of auto, cpu, gpu",
    "--timeout 0": "argument --timeout: .*0",
}


@pytest.mark.parametrize("words", WORDS)
def test_in_a_command_line(comm, capfd, words):
    with pytest.raises(SystemExit) as caught:
        harness.main(bfs.APP, comm, ["g.h5", *words.split()])
    error = capfd.readouterr().err
    assert caught.value.code == 2 and error.count("\n") == 1
    assert re.match(f"error: {WORDS[words]}", error)


@pytest.fixture
def graph(comm):
    return partition_graph(([0, 0, 1, 2, 3], [1, 2, 3, 3, 0]), policy="oec", device=parts.DEVICE)


OPERATORS = {
    "misspelt-name": (("src.xx / 2", "dst.x"), {}, "column 1: src.xx is not given; given are x"),
    "assignment": (("x = 2", "dst.x"), {}, '"x = 2", column 3: this is not an expression'),
    "end": (("x / 2", "target.x"), {}, 'into="target.x": expected "dst.NAME" or "src.NAME"'),
    "array": (("x / 2", "dst.x"), {"x": np.zeros(3)}, "x is written, so it must be a Label, not an array"),
    "length": (("x / y", "dst.x"), {"y": np.zeros(99)}, "y is an array of shape .99.* for each of the 4 proxies"),
    "type": (("x / 2", "dst.x"), {"x": np.int32}, "this is a float, and x is int32: write floor"),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_in_an_operator(graph, name):
    texts, given, message = OPERATORS[name]
    part = graph.part
    label = Label(part, given.get("x") if isinstance(given.get("x"), type) else np.float64, 0, MAX)
    arrays = {key: value for key, value in given.items() if isinstance(value, np.ndarray)}
    with pytest.raises(InputError, match=message):
        EdgeOperator(*texts)(part, **({"x": label} | arrays))


def test_in_an_algorithm(graph):
    """Labels, syncs, answers and graphs that are something else."""
    part, sync = graph.part, parts.make_sync(graph.part)
    label = Label(part, np.float64, 0, MAX)
    answer = {"x": np.zeros(99)}
    for wrong, message in (
        (lambda: sync.reduce(label, write="target"), "'target' is no end of an edge; .* did you mean 'dst'[?]"),
        (lambda: sync(label.values), "sync.reduce takes Labels, not ndarray; pass a Label"),
        (lambda: sync.reduce(label, meanwhile=3), "sync.reduce takes steps to iterate over, not int, as meanwhile"),
        (lambda: label.write(10**9, 1), "node 1000000000: the graph has the nodes 0 to 3"),
        (lambda: label.write(-1, 1), "node -1: the graph has the nodes 0 to 3"),
        (lambda: Label(part, object, 0, MAX), "a label holds numbers, not object"),
        (lambda: Label(part, np.float64, 0, max), "<built-in function max> is not a Reduction"),
        (lambda: bfs.APP.check_answer(part, label.values), "bfs: run returned .*ndarray; it returns an Answer"),
        (
            lambda: bfs.APP.check_answer(part, Answer(answer, 0, 0)),
            r"x in the answer has the shape \(99,\), and this rank",
        ),
        (lambda: run_bfs("graph.h5", 0), "bfs takes what partition_graph returned, not str; call bfs.partition_graph"),
        (lambda: partition_graph({0: [1]}), "a graph in memory is a SciPy sparse matrix, .*this is of type dict"),
        (lambda: partition_graph(([0, np.nan], [1, 2])), "sources: that of edge 1 is missing"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            wrong()
        one_line(caught.value)


STEP = EdgeOperator("src.x / 2", into="dst.x")


@pytest.mark.mpi
def test_labels_that_no_sync_brought(comm, graph, debug):
    """--debug finds them on one rank, too."""
    part, sync = graph.part, parts.make_sync(graph.part)

    def step(**end):
        label = Label(part, np.float64, 0, MAX)
        label.write(0, 8)
        for _ in range(2):
            STEP(part, x=label)
            sync.reduce(label, **end)
        return label

    with pytest.warns(UserWarning, match=r"x is read at src, where .* call sync.broadcast\(x, read='src'\) before"):
        step()
    with pytest.warns(UserWarning, match=r"sync.reduce\(write='src'\): an operator wrote at dst; say write='dst'"):
        step(write="src")


@pytest.mark.mpi
@pytest.mark.filterwarnings("error")
def test_labels_that_are_as_they_should_be(graph, debug):
    part, sync = graph.part, parts.make_sync(graph.part)
    label = Label(part, np.float64, 0, MAX)
    label.write(0, 8)
    for _ in range(3):
        STEP(part, x=label)
        sync(label)
    assert sync.total(float(label.masters().sum())) == (8 + 4 + 4 + 2,)


@pytest.mark.mpi(min_size=2)
def test_sums_that_count_twice(comm, graph, debug):
    """A mirror that begins with something else than 0, and is added to."""
    part, label = graph.part, Label(graph.part, np.float64, 1, ADD)
    error = None
    try:
        STEP(part, x=label)
    except LabelError as caught:
        error = str(caught)
    told = [text for text in comm.allgather(error) if text]
    assert told and all("x is a sum, and the mirror of node" in text for text in told)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("others", ["total", "reduce", "the end"])
def test_functions_that_only_one_rank_calls(comm, graph, debug, others):
    """--debug tells all ranks, so that none waits for ever."""
    sync, label = parts.make_sync(graph.part), Label(graph.part, np.float64, 0, MAX)
    calls = {"total": lambda: sync.total(1), "reduce": lambda: sync.reduce(label)}
    does = "calls sync" if others != "the end" else "has come to the end"
    with pytest.raises(
        debugging.CollectiveError, match=f"rank 0 {does}.*; rank 1 calls sync.lowest at tests/house/test_mi"
    ):
        if comm.rank == 1:
            sync.lowest(1)
        else:
            calls.get(others, lambda: debugging.agree_on_end(comm))()


ALONE = """
import os
import numpy as np
from cusp.launch import run_main
from cusp.partitioner import partition_graph
from cusp.runtime import watchdog
from gluon.label import Label
from gluon.plan import make_plan
from gluon.reduction import MAX
from gluon.sync import Sync

watchdog.WAITS = 0.5


def main(comm, argv):
    part = partition_graph(([0, 1], [1, 0]), "oec", comm, device="cpu")
    sync, label = Sync(make_plan(part, comm), comm), Label(part, np.float64, 0, MAX)
    watchdog.watch(1.5, lambda: os._exit(1))
    if comm.rank == 1:
        sync.total(1)
    return 0


run_main(main)
"""
SCRIPT = """
import sys, time
import cusp
from cusp.runtime import watchdog
watchdog.WAITS = 0.5
from cusp.runtime.signals import launched
if launched()[1] == 1 and sys.argv[1] == "start":
    time.sleep(3)
graph = cusp.partition_graph(([0, 1], [1, 0]))
if launched()[1] == 1:
    time.sleep(3)
cusp.bfs(graph, source=0)
"""
TOO_EARLY = "from cusp import EdgeOperator\nEdgeOperator('x', into='target.x')\n"


def test_a_rank_that_waits_says_where(tmp_path):
    """Without --debug, too; and so does one that has come to the end."""
    (tmp_path / "alone.py").write_text(ALONE)
    done = spawn.mpirun(2, tmp_path / "alone.py", timeout=60)
    assert (
        f"[rank 1 of 2] note: has waited 0.5 s for other ranks in sync.total at {tmp_path}/alone.py:20: " in done.stderr
    )
    assert "[rank 0 of 2] note: has waited 0.5 s for other ranks at the end of the program" in done.stderr


@pytest.mark.limit(200)  # to compile, on a busy machine
@pytest.mark.parametrize(("when", "place"), [("start", "_start at cusp/runtime/mpi.py"), ("later", "run at .*")])
def test_a_script_says_where_it_waits(tmp_path, when, place):
    """As programs do: also for ranks that have not come to MPI yet."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = spawn.mpirun(2, tmp_path / "script.py", when, timeout=180)
    note = rf"note: has waited 0.5 s for other ranks in {place}:\d+, called from {tmp_path}/script.py:\d+"
    assert done.returncode == 0 and re.search(rf"\[rank 0 of 2\] {note}", done.stderr), done.stderr


@pytest.mark.mpi
def test_an_error_is_forgiven_only_where_all_have_it(comm):
    """The others would wait for a rank that goes on alone."""
    with forgiven(comm), together(comm):
        raise InputError("of all" if comm.rank == 0 else "later")
    one = pytest.raises(InputError, match="alone") if comm.size > 1 else contextlib.nullcontext()
    with one, forgiven(comm):
        raise InputError("alone")


def test_a_mistake_before_the_program_begins(tmp_path):
    """In a script, it is an exception as of any library; of several ranks, one says so in a line, and all end."""
    (tmp_path / "early.py").write_text(TOO_EARLY)
    done = spawn.mpirun(1, tmp_path / "early.py", launcher=False)
    message = 'into="target.x": expected "dst.NAME" or "src.NAME"'
    assert done.returncode == 1 and f'File "{tmp_path}/early.py", line 2' in done.stderr
    assert done.stderr.splitlines()[-1] == f"cusp.errors.OptionError: {message}"
    done = spawn.mpirun(2, tmp_path / "early.py")
    assert (done.returncode, done.stderr) == (1, f"[rank 0 of 2] error: {message} ({tmp_path}/early.py:2)\n")
