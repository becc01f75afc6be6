"""cusp warm-up: later commands compile nothing; what it refuses."""

import re

import graphs
import numpy as np
import pytest
from spawn import mpirun

from cusp.apps import warm_up
from cusp.commands.command import APPS, COMMANDS

COMMAND = ["-m", "cusp.apps.warm_up", "--device", "cpu"]


@pytest.fixture
def compiled(tmp_path):
    """Function (ranks, arguments) -> number of functions that a command compiled, with the cache of this test."""
    env = {"CUSP_CACHE": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": "", "CUSP_THREADS": "2"}

    def run(ranks: int, *arguments) -> int:
        done = mpirun(ranks, *arguments, launcher=ranks > 1, env=env, cwd=tmp_path, timeout=280)
        assert done.returncode == 0, done.stderr
        found = re.search(r"start-up: .* s to (compile (\d+) functions|load compiled code)", done.stdout)
        return int(found[2] or 0) if found else -1

    return run


@pytest.mark.slow
@pytest.mark.limit(300)
@pytest.mark.parametrize("ranks", [1, 2])
def test_later_commands_compile_nothing(tmp_path, compiled, ranks):
    """Of graphs with few and with many edges, directed and not, whose weights are of a type of the list."""
    compiled(ranks, *COMMAND, "--apps", "kcore,sssp", "--weights", "none,uint8")
    assert len([*(tmp_path / "cache").rglob("*.nbc")]) > 20
    many = graphs.both_ways(graphs.random_directed(400, 4000))
    for name, graph in {"few": graphs.HARD["path"](), "many": many}.items():
        graphs.write_here(tmp_path / f"{name}.h5", graph, weight=np.uint8)
        for app in ("kcore", "sssp"):
            assert compiled(ranks, "-m", f"cusp.apps.{app}", f"{name}.h5", "--device", "cpu", "--verify") == 0
    assert compiled(ranks, "-m", "cusp.apps.scc", "few.h5", "--device", "cpu") > 0


@pytest.mark.slow
@pytest.mark.limit(300)
def test_the_types_of_a_file(tmp_path, compiled):
    """Are those that are compiled for."""
    graphs.write_here(tmp_path / "g.h5", graphs.random_directed(), weight=np.int16)
    compiled(1, *COMMAND, "g.h5", "--apps", "widest")
    assert compiled(1, "-m", "cusp.apps.widest", "g.h5", "--device", "cpu") == 0


def test_every_algorithm_is_known():
    """A new one needs nothing, or its required options in a table here."""
    assert {*warm_up.ALGORITHMS} | {"maze"} == {name for name, command in COMMANDS.items() if command.group == APPS}
    for name in warm_up.ALGORITHMS:
        assert warm_up.app_of(name).name == name and warm_up.defaults_of(name).verify
    parser = warm_up.make_parser()
    jobs = warm_up.jobs_of(parser.parse_args(["--apps", "cc,sssp", "--weights", "none,int64"]))
    assert [(job.app, job.weights) for job in jobs] == [("sssp", "none"), ("sssp", "int64"), ("cc", "none")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--apps", "bfs,bsf"], "--apps: 'bsf' is none of bfs, sssp, "),
        (["--weights", "uint7"], "--weights: 'uint7' is none of none, uint8, "),
        (["--at-once", "0"], "--at-once 0: expected at least 1"),
        (["--apps", "bfs,cc", "--at-once", "2", "no.h5"], "no.h5: no such file"),
        (["--apps", "bfs", "no.h5"], "no.h5: no such file"),
    ],
)
def test_what_is_refused(tmp_path, arguments, message):
    """In one line, also if a process of its own finds it."""
    done = mpirun(1, *COMMAND, *arguments, launcher=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr and done.stderr.count("\n") == 1
