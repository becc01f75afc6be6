"""A rank that hangs is reported by the others after ``--timeout``, in any phase: stopped, or in a loop for ever."""

import time

import graphs
import numpy as np
import parts
import pytest
from spawn import mpirun

# Rank 1 hangs when it comes to a phase of the real graph; the rehearsal on a tiny one shows no progress.
PROGRAM = """
import os, signal, sys
from cusp.apps import bfs, harness
from cusp.launch import run_main
from gluon.sync import Sync

def hang(*arguments, **options):
    {how}

def progress(rank, text):
    if rank == 1 and text == {text!r}:
        if text:
            hang()
        Sync._exchange = hang

harness.report.progress = progress
run_main(lambda comm, argv: harness.main(bfs.APP, comm, argv))
"""
PARTITION = "assign_masters|assign_edges|allocate|construct"  # where the others wait
STOP, LOOP = "os.kill(os.getpid(), signal.SIGSTOP)", "while True: pass"
RULE = """
def get_master(prop, node, mstate, masters):
    return node * prop.num_parts // prop.num_nodes


def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    turns = 0
    while src >= 500 and turns >= 0:
        turns = (turns + 1) % 1000
    return dst_master
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder with a graph and a policy; all that a run needs is compiled, for that would be no progress either."""
    folder = tmp_path_factory.mktemp("hangs")
    graphs.write_here(folder / "small.h5", graphs.random_directed(400, 4000))
    graphs.write_here(folder / "graph.h5", graphs.random_directed(1000, 10_000))
    for policy in ("oec", parts.user_file(RULE)):
        done = mpirun(2, "-m", "cusp.apps.bfs", folder / "small.h5", "--policy", policy, "--verify")
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.limit(300)  # to compile, on a busy machine
@pytest.mark.parametrize(
    ("text", "how", "policy", "phase"),
    [
        ("nothing", STOP, RULE, PARTITION),
        ("", STOP, "oec", "run"),
        pytest.param("verifying", LOOP, "oec", "verify", marks=pytest.mark.slow),
    ],
    ids=["rule-loop", "sync-stop", "verify-loop"],
)
def test_a_rank_that_hangs_is_reported_by_the_others(compiled, tmp_path, text, how, policy, phase):
    (tmp_path / "program.py").write_text(PROGRAM.format(text=text, how=how))
    policy = parts.user_file(policy) if policy == RULE else policy
    began = time.monotonic()
    done = mpirun(
        2, tmp_path / "program.py", compiled / "graph.h5", "--source", "1", "--policy", policy, "--verify",
        "--timeout", "3", timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and time.monotonic() - began < 15, done.stderr
    told = [line for line in done.stderr.splitlines() if "error: --timeout 3: no progress for that many" in line]
    by_rank = {line.split()[1]: line for line in told}
    assert "0" in by_rank and ("1" in by_rank) == (how == LOOP or policy != "oec"), done.stderr
    assert any(f'in the phase "{name}"' in by_rank["0"] for name in phase.split("|")), done.stderr


IN_SEARCH = """
import os, signal
from cusp.apps import sssp, harness
from cusp.apps.operators.expressions.peers import search_cpu
from cusp.launch import run_main
from gluon.mail.post import Post

def stop(*arguments, **options):
    os.kill(os.getpid(), signal.SIGSTOP)

def progress(rank, text):
    if rank == 1 and text.startswith("sssp, run"):
        Post.send = search_cpu.pauses = stop

harness.report.progress = progress
run_main(lambda comm, argv: harness.main(sssp.APP, comm, argv))
"""


@pytest.mark.limit(300)
@pytest.mark.parametrize("transport", [pytest.param("mpi", marks=pytest.mark.slow), "peer"])
def test_without_rounds_a_rank_that_waits_makes_no_progress(compiled, tmp_path, transport):
    """However often it looks whether something has come."""
    (tmp_path / "program.py").write_text(IN_SEARCH)
    path = graphs.make(400, [(node, node + 1) for node in range(399)], np.ones(399, np.int32))
    words = [graphs.write(tmp_path / "path.h5", path), "--source", "1"]
    words += ["--execution", "async", "--transport", transport]
    assert mpirun(2, "-m", "cusp.apps.sssp", *words).returncode == 0  # compiles
    done = mpirun(2, tmp_path / "program.py", *words, "--timeout", "3", timeout=60)
    assert done.returncode == 1 and "[rank 0 of 2] error: --timeout 3: no progress" in done.stderr, done.stderr
