"""``--trace``: what is in the file, whether it is true, what it leaves alone, and what goes wrong."""

import json
import math
import signal
import subprocess
import sys
import time
from collections import defaultdict

import graphs
import numpy as np
import parts
import pytest
import spawn

from cusp import __main__ as cusp_program
from cusp.apps import bfs, cc, kcore, pagerank, scc, sssp, widest
from cusp.apps.harness import main
from cusp.apps.library import bfs as bfs_of
from cusp.apps.library import partition_graph
from cusp.apps.run.app import Answer, App
from cusp.errors import InputError, OptionError
from cusp.output.whole_file import OutputError
from cusp.program import traced as traced_module
from cusp.program.report import waiting
from cusp.program.traced import clock_offset, traced
from cusp.runtime import timeline
from cusp.runtime.mpi import MPI
from scripts.mpirun import environment

APPS = {app.name: app for app in (bfs.APP, sssp.APP, cc.APP, scc.APP, pagerank.APP, kcore.APP, widest.APP)}
ROUND_OFF = 0.01  # microseconds


@pytest.fixture
def run(comm, shared_tmp, capfd):
    """Function (app, graph, arguments) -> events and output of a traced run on all ranks."""

    def events(app: App, graph: graphs.Graph, *arguments) -> tuple[list[dict], str]:
        path, trace = graphs.write(shared_tmp / "g.h5", graph), shared_tmp / "trace.json"
        assert main(app, comm, [path, "--trace", str(trace), *map(str, arguments)]) == 0
        comm.Barrier()
        return events_of(trace), capfd.readouterr().out

    return events


def events_of(path) -> list[dict]:
    """The events of a file, which must be of the format."""
    content = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert content.keys() == {"displayTimeUnit", "traceEvents"}
    for event in content["traceEvents"]:
        assert event["ph"] in "MX" and isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] == "X":
            assert event["ts"] >= 0 and event["dur"] >= 0 and event["name"] and isinstance(event["args"], dict)
    return content["traceEvents"]


def lines_of(events: list[dict]) -> dict[tuple[int, int], list[dict]]:
    """The spans by rank and thread, outer ones before those in them."""
    lines = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            lines[event["pid"], event["tid"]].append(event)
    return {key: sorted(line, key=lambda event: (event["ts"], -event["dur"])) for key, line in lines.items()}


def inside(events: list[dict], outer: dict) -> list[dict]:
    """What happens on the thread of a span while it lasts, apart from the span."""
    first, last = outer["ts"] - ROUND_OFF, outer["ts"] + outer["dur"] + ROUND_OFF
    line = lines_of(events)[outer["pid"], outer["tid"]]
    return [event for event in line if event is not outer and first <= event["ts"] and end_of(event) <= last]


def end_of(event: dict) -> float:
    """When a span ends."""
    return event["ts"] + event["dur"]


def named(events: list[dict], name: str, rank: int) -> list[dict]:
    """The spans of a rank that have a name."""
    return [event for event in events if event["ph"] == "X" and (event["name"], event["pid"]) == (name, rank)]


@pytest.mark.mpi
def test_spans_nest_and_all_ranks_are_there(run, comm):
    """On each thread a span ends before the one around it; ranks and threads have names."""
    events, _ = run(bfs.APP, graphs.random_directed(), "--trials", 2, "--verify", "--policy", "cvc")
    for line in lines_of(events).values():
        ends = [math.inf]
        for event in line:
            while ends[-1] <= event["ts"] + ROUND_OFF:
                ends.pop()
            assert end_of(event) <= ends[-1] + ROUND_OFF, event
            ends.append(end_of(event))
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert [processes[rank].split(" on ")[0] for rank in range(comm.size)] == [f"rank {r}" for r in range(comm.size)]
    threads = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert threads == lines_of(events).keys()
    for rank in range(comm.size):
        phases = [event["name"] for event in events if event.get("cat") == "phase" and event["pid"] == rank]
        for name in ("start-up", "read", "assign_masters", "construct", "plan", "partition", "verify"):
            assert name in phases
        runs = named(events, "run", rank)
        assert [event["args"]["trial"] for event in runs] == [0, 1]
        assert end_of(runs[0]) < named(events, "verify", rank)[0]["ts"] < runs[1]["ts"]


@pytest.mark.mpi
def test_all_ranks_go_by_one_clock(run, comm):
    """A run ends in a collective call: nobody leaves it before the last has come."""
    events, _ = run(bfs.APP, graphs.random_directed())
    runs = [named(events, "run", rank)[0] for rank in range(comm.size)]
    last_calls = [[event for event in inside(events, run) if event["name"] == "allreduce"][-1] for run in runs]
    assert max(event["ts"] for event in last_calls) <= min(map(end_of, last_calls))


@pytest.mark.mpi
@pytest.mark.parametrize("name", list(APPS))
def test_rounds_are_those_of_the_answer(run, comm, shared_tmp, name):
    """Every round is a span, with what it sent; or all are in one drain."""
    events, _ = run(APPS[name], graphs.HARD["random"](), "--rows", shared_tmp / "rows")
    row = json.loads((shared_tmp / "rows").read_text())
    messages = size = 0
    for rank in range(comm.size):
        [whole] = named(events, "run", rank)
        assert whole["args"]["rounds"] == row["rounds"]
        rounds = [event for event in inside(events, whole) if event["cat"] == "round"]
        drains = [event for event in inside(events, whole) if event["cat"] == "operator" and "rounds" in event["args"]]
        if drains:
            assert not rounds and sum(drain["args"]["rounds"] for drain in drains) == row["rounds"]
        else:
            assert [event["name"] for event in rounds] == [f"round {n}" for n in range(1, row["rounds"] + 1)]
        for event in rounds + drains:
            messages, size = messages + event["args"]["messages"], size + event["args"]["bytes"]
        for one in rounds:
            assert {"operator", "sync"} <= {event["cat"] for event in inside(events, one)}
    if name != "scc":  # which also sends before its first round
        assert size / 1e6 == pytest.approx(row["mb_reduced"] + row["mb_broadcast"])
        if parts.DEVICE == "gpu" and drains and name in ("sssp", "widest"):
            messages += comm.size * (comm.size - 1)  # the first search over peers exchanges where mirrors are
        assert messages == row["messages"] or (name == "cc" and messages < row["messages"])  # its figures travel, too


@pytest.mark.mpi(min_size=2)
def test_steps_of_an_exchange(run, comm):
    """Extract, exchange and combine follow each other in a reduce."""
    events, _ = run(widest.APP, graphs.HARD["random"](), "--transport", "mpi")
    whole = named(events, "run", comm.rank)[0]
    exchanges = [event for event in inside(events, whole) if event["name"] in ("reduce", "broadcast")]
    assert len(exchanges) == 2 * whole["args"]["rounds"] > 0
    for event in exchanges:
        steps = [step["name"] for step in inside(events, event)]
        expected = ["extract", "exchange", "combine"]
        assert [step for step in steps if step in expected] == (expected if "exchange" in steps else [])
    assert any(len(inside(events, event)) >= 3 for event in exchanges)


def sleepy(part, sync, source, prepared, options) -> Answer:
    """The last rank is late for a sum by 0.3 s."""
    if sync.comm.rank == sync.comm.size - 1:
        time.sleep(0.3)
    sync.total(1)
    return Answer({}, None, 1)


@pytest.mark.mpi(min_size=2)
def test_waiting_is_measured(run, comm):
    """Those who wait for a late rank waited for as long as it slept, and the late one did not."""
    app = App(name="late", summary="late", run=sleepy, verify=lambda *arguments: None, needs_source=False)
    events, out = run(app, graphs.HARD["random"]())
    for rank in range(comm.size):
        [whole] = named(events, "run", rank)
        outermost: list[dict] = []
        for event in inside(events, whole):
            if event["cat"] == "wait" and (not outermost or event["ts"] >= end_of(outermost[-1])):
                outermost.append(event)
        assert whole["args"]["waited_us"] == pytest.approx(sum(event["dur"] for event in outermost), abs=1)
        late = rank == comm.size - 1
        assert (whole["args"]["waited_us"] < 150_000) if late else (whole["args"]["waited_us"] > 200_000)
    if comm.rank == 0:
        [line] = [line for line in out.splitlines() if line.startswith("waiting: ")]
        words = line.removeprefix("waiting: ").split(", ")
        assert len(words) == comm.size and int(words[0].split()[2]) > 60
        assert int(words[-1].split()[2]) < 50


@pytest.mark.parametrize("size", [1, 3, 16, 17, 100])
def test_line_about_waiting(size):
    """Every rank if there are few, else the extremes and the mean."""
    line = waiting([rank / size for rank in range(size)], 2.0)
    assert line.startswith("waiting: rank 0 0 %") and line.endswith(" of 2 s")
    assert line.count("rank") == (size if size <= 16 else 2)
    assert ("on average" in line) == (size > 16)
    assert waiting([0.0], 0.0) == "waiting: rank 0 0 % of 0 s"


@pytest.mark.mpi
def test_partitioner(comm, shared_tmp, capfd):
    """The phases of the table, in their order; what is read, kept and sent is as without a trace."""
    path, trace = graphs.write(shared_tmp / "g.h5", graphs.random_directed()), shared_tmp / "t.json"
    arguments = [path, "--policy", "cvc", "--device", parts.WANTED, "--json"]
    assert cusp_program.main(comm, [*arguments, str(shared_tmp / "a"), "--trace", str(trace)]) == 0
    assert cusp_program.main(comm, [*arguments, str(shared_tmp / "b")]) == 0
    comm.Barrier()
    out = capfd.readouterr().out
    with_trace, without = (json.loads((shared_tmp / name).read_text()) for name in "ab")
    assert with_trace["replication"] == without["replication"]
    events = events_of(trace)
    for rank in range(comm.size):
        [whole] = named(events, "partition", rank)
        phases = [event for event in inside(events, whole) if event["cat"] == "phase"]
        assert [phase["name"] for phase in phases] == list(with_trace["phases"])
        for phase in phases:
            assert phase["dur"] <= with_trace["phases"][phase["name"]] * 1e6  # that of the slowest rank
    assert (f"wrote the timeline to {trace}" in out) == (comm.rank == 0)


@pytest.mark.mpi
def test_without_the_option(comm, shared_tmp, monkeypatch):
    """No clock of a timeline is read, nothing is wrapped, no file appears."""
    monkeypatch.setattr(timeline, "now", lambda: pytest.fail("the clock was read"))
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    for app in (bfs.APP, widest.APP):
        main(app, comm, [path, "--verify"])
    comm.Barrier()
    assert [file.name for file in shared_tmp.iterdir()] == ["g.h5"]
    assert timeline.running() is None


@pytest.mark.mpi
def test_the_answer_is_the_same(run, comm, shared_tmp):
    """With a trace and without; and a run after a traced one leaves no spans."""
    graph, source = graphs.random_directed(), 3
    part = partition_graph((graph.sources, graph.targets), "cvc", comm=comm, num_nodes=graph.num_nodes,
                           device=parts.WANTED)  # fmt: skip
    plain = bfs_of(part, source=source)
    seen = bfs_of(part, source=source, trace=str(shared_tmp / "t.json"))
    again = bfs_of(part, source=source)
    comm.Barrier()
    for found in (plain, seen, again):
        np.testing.assert_array_equal(found.hops, graphs.serial_hops(graph, source))
    [whole] = named(events_of(shared_tmp / "t.json"), "run", comm.rank)
    assert whole["args"]["rounds"] == seen.rounds == plain.rounds == again.rounds


@pytest.mark.mpi
def test_no_file_after_an_error(comm, shared_tmp):
    """A run that fails writes nothing, and leaves an older file as it was; the next trace works."""
    trace = shared_tmp / "t.json"
    if comm.rank == 0:
        trace.write_text("old")
    comm.Barrier()
    with pytest.raises(InputError, match="none"):
        main(bfs.APP, comm, [graphs.write(shared_tmp / "g.h5", graphs.HARD["no_edges"]()), "--trace", str(trace)])
    comm.Barrier()
    assert trace.read_text() == "old" and timeline.running() is None
    assert {file.name for file in shared_tmp.iterdir()} == {"t.json", "g.h5"}
    with traced(comm, trace, say=False) as traced_comm:
        traced_comm.Barrier()
    comm.Barrier()
    assert len(named(events_of(trace), "Barrier", comm.rank)) == 1


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["missing/t.json", ".", "g.h5"])
def test_refused(comm, shared_tmp, name):
    """Before any work: where no file can be made, and the graph itself."""
    path = graphs.write(shared_tmp / "g.h5", graphs.random_directed())
    for program in (cusp_program.main, lambda comm, argv: main(bfs.APP, comm, argv)):
        with pytest.raises(OutputError, match="folder|is the file of the input"):
            program(comm, [path, "--trace", str(shared_tmp / name)])


@pytest.mark.mpi
def test_a_trace_inside_a_trace(comm, shared_tmp):
    """Is refused, on every rank; the outer one is written all the same."""
    with traced(comm, shared_tmp / "outer", say=False) as outer:
        with pytest.raises(OptionError, match="another trace is running"), traced(outer, shared_tmp / "inner"):
            pass
    comm.Barrier()
    assert events_of(shared_tmp / "outer") and not (shared_tmp / "inner").exists()


@pytest.mark.mpi
def test_too_many_spans(comm, shared_tmp, monkeypatch, capfd):
    """Those that do not fit are left out, with a warning; phases never are, and waits are all counted."""
    monkeypatch.setattr(traced_module, "MOST", 3 * comm.size)
    with traced(comm, shared_tmp / "t"):
        with timeline.phase("run"):
            for _ in range(10):
                timeline.call("nap", timeline.WAIT, None, time.sleep, 0.002)
    comm.Barrier()
    events = events_of(shared_tmp / "t")
    assert len(named(events, "nap", comm.rank)) == 3
    [whole] = named(events, "run", comm.rank)
    assert whole["args"]["waited_us"] >= 20_000
    if comm.rank == 0:
        assert f"omits the last {7 * comm.size} spans" in capfd.readouterr().err


class Apart(MPI.Intracomm):
    """Ranks that seem to be on a host each."""

    def Split_type(self, *arguments):  # noqa: N802
        return MPI.COMM_SELF.Dup()


@pytest.mark.mpi(min_size=2)
def test_clocks_of_other_hosts(comm):
    """A clock that is a second ahead is found to be so, to within the time of a message."""
    ahead = 1_000_000_000 * comm.rank
    assert clock_offset(Apart(comm), lambda: timeline.now() + ahead) == pytest.approx(-ahead, abs=50_000_000)


@pytest.mark.mpi
def test_clocks_of_one_host(comm):
    """Are one."""
    assert clock_offset(comm) == 0


SLEEPER = """
import time
from cusp.launch import run_main
from cusp.program.traced import traced

def main(comm, argv):
    with traced(comm, "t.json"):
        print("begun", flush=True)
        time.sleep(60)

run_main(main)
"""


@pytest.mark.parametrize("interrupt", [signal.default_int_handler, signal.SIG_IGN])
def test_ended_in_the_middle(tmp_path, interrupt):
    """A signal during a run leaves no file, nor half of one; also where SIGINT is ignored, as in the background."""
    command, variables = [sys.executable, "-c", SLEEPER], environment({"PYTHONPATH": str(spawn.ROOT)})
    before = signal.signal(signal.SIGINT, interrupt)  # a child inherits what is ignored
    process = subprocess.Popen(command, cwd=tmp_path, env=variables, stdout=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    with process:
        try:
            assert process.stdout and process.stdout.readline() == "begun\n"
            process.terminate()
            assert process.wait(30) == 128 + signal.SIGTERM
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []
