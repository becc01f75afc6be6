"""Several hosts, as scripts/hosts.py makes them on one machine: answers, a lost host, and a link that fails."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import graphs
import pytest
import spawn

from scripts import mpirun
from scripts.hosts import Hosts, HostsError


@pytest.fixture(scope="module", autouse=True)
def allowed():
    """Skip where this machine lets us make no hosts."""
    try:
        with Hosts(1):
            pass
    except HostsError as error:
        pytest.skip(f"no hosts can be made here: {error}")


ANSWERS = """
import json, socket, sys
import compile_once
import cusp
from cusp.launch import run_main
from cusp.runtime.mpi import MPI

SEARCHES = [cusp.bfs, cusp.sssp, cusp.widest, cusp.betweenness]
OTHERS = [cusp.pagerank, cusp.cc, cusp.scc, cusp.kcore, cusp.triangles, cusp.communities]

def main(comm, argv):
    graph = cusp.partition_graph(argv[0], policy=argv[1], comm=comm, transport="hosts")
    for search in SEARCHES[: int(argv[2])]:
        search(graph, source=0, verify=True)
    for app in OTHERS[: int(argv[2])]:
        app(graph, verify=True)
    for app, source in ((cusp.bfs, [0]), (cusp.sssp, [0]), (cusp.cc, []), (cusp.kcore, [])):
        app(graph, *source, verify=True, execution="async")
    near = comm.Split_type(MPI.COMM_TYPE_SHARED)
    found = comm.gather((socket.gethostname(), near.size, graph.plan.transport))
    if comm.rank == 0:
        print(json.dumps(found))

compile_once.install()
run_main(main)
"""


def start(hosts, ranks, *words, **options):
    """Start a Python program on all hosts."""
    env = mpirun.environment({"PYTHONPATH": f"{spawn.ROOT}:{spawn.ROOT / 'tests'}", "PYTHONUNBUFFERED": "1"})
    return subprocess.Popen(
        [*hosts.launcher(ranks), sys.executable, *map(str, words)], cwd=spawn.ROOT, text=True, stdin=subprocess.DEVNULL,
        env=env, start_new_session=True, **options,
    )  # fmt: skip


@contextlib.contextmanager
def endless(hosts, folder, *words):
    """PageRank on two hosts of two ranks that goes on for ever, once it runs; it writes its output into a file."""
    graphs.write_here(folder / "g.h5", graphs.random_directed(400, 4000))
    said = folder / "said"
    words = (
        "-m",
        "cusp.apps.pagerank",
        folder / "g.h5",
        "--iterations",
        10**9,
        "--tolerance",
        0,
        "--transport",
        "hosts",
        *words,
    )
    with said.open("w") as out:
        process = start(hosts, 4, *words, stdout=out, stderr=out)
        try:
            while "device: " not in said.read_text():
                assert process.poll() is None, said.read_text()
                time.sleep(0.1)
            sent = hosts.sent()[1]
            while hosts.sent()[1] <= sent:
                time.sleep(0.1)
            yield process, said
        finally:
            mpirun.kill_session(process)


@pytest.mark.limit(300)
@pytest.mark.parametrize(
    ("ranks", "policy", "most"),
    [
        ((2, 2), "cvc", 2),
        ((1, 2, 1), "hvc", 1),
        *(pytest.param(*case, 9, marks=pytest.mark.slow) for case in (((2, 2), "cvc"), ((1, 2, 1), "hvc"))),
    ],
)
def test_answers(tmp_path, ranks, policy, most):
    """Algorithms of every kind are right; ranks of a host share memory, and others have only the network."""
    (tmp_path / "program.py").write_text(ANSWERS)
    graphs.write_here(tmp_path / "g.h5", graphs.random_directed(300, 1500))
    with Hosts(len(ranks), rate="1gbit") as hosts:
        process = start(
            hosts, ranks, tmp_path / "program.py", tmp_path / "g.h5", policy, most, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        out, err = process.communicate(timeout=250)
        assert process.returncode == 0, err
        shares = [[f"host{host}", share, "hosts"] for host, share in enumerate(ranks, 1) for _ in range(share)]
        assert json.loads(out) == shares
        assert min(hosts.sent()) > 10_000


def test_a_lost_host(tmp_path):
    """Its power fails: all others end within seconds, with a code that is not 0."""
    with Hosts(2) as hosts, endless(hosts, tmp_path) as (process, said):
        hosts.kill(2)
        assert process.wait(10) != 0, said.read_text()
        assert "Traceback" not in said.read_text()


@pytest.mark.limit(200)
@pytest.mark.parametrize(("seconds", "longer"), [(1, 4), pytest.param(20, 70, marks=pytest.mark.slow)])
def test_a_lost_link(tmp_path, seconds, longer):
    """Pulled out for a moment, nothing is lost; for longer than --timeout, the job ends, and who is heard says so."""
    with Hosts(2) as hosts, endless(hosts, tmp_path, "--timeout", longer) as (process, said):
        hosts.connect(2, up=False)
        time.sleep(seconds)
        hosts.connect(2, up=True)
        time.sleep(2 * seconds)  # TCP doubles the time after which it tries again
        sent = hosts.sent()[1]  # what only the other host sends again and again does not count
        time.sleep(0.5)
        assert process.poll() is None and hosts.sent()[1] > sent, said.read_text()
        hosts.connect(2, up=False)
        assert process.wait(5 * longer) not in (0, -signal.SIGKILL), said.read_text()
        text = said.read_text()
        assert text.count(f"error: --timeout {longer}: no progress") in (1, 2) and "Traceback" not in text


def test_nothing_is_left():
    """When the block ends, also by an error, there is no process of a host."""
    with pytest.raises(HostsError, match="rate sideways"), Hosts(1, rate="sideways"):
        pass
    with Hosts(2) as hosts:
        process = start(hosts, 2, "-c", "import time; time.sleep(100)")
        first = [*hosts.first]
        time.sleep(1)
    assert process.wait(10) != 0
    deadline = time.monotonic() + 10
    while any(map(os.path.exists, (f"/proc/{number}" for number in first))):
        assert time.monotonic() < deadline, first
        time.sleep(0.1)
