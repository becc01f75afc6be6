"""The test set-up itself: whatever goes wrong on one rank, the run ends in seconds and says what it was."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from spawn import ROOT, mpirun

from scripts import mpirun as launcher
from scripts import test as runner

RANKS = 3
HEAD = """
import ctypes, time
import pytest
from hypothesis import given, strategies as st
pytestmark = pytest.mark.mpi
"""


def run_pytest(folder: Path, body: str, ranks: int = RANKS, limit: int = 4):
    """Run a test file with our conftest and a limit for each test; returns its outcome and the seconds it took."""
    (folder / "test_case.py").write_text(HEAD + body)
    started = time.monotonic()
    done = mpirun(
        ranks,
        *("-m", "pytest", "-q", "--with-mpi", "--color=no", "-p", "no:cacheprovider", "-p", "conftest"),
        *("-c", "/dev/null", "--rootdir", folder, folder / "test_case.py"),
        timeout=60,
        env={
            "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}",
            "CUSP_TEST_GRACE": "1",
            "CUSP_TEST_TIMEOUT": str(limit),
            "CUSP_TEST_OUTCOMES": "",
        },
        cwd=folder,
    )
    print(done.stdout, done.stderr, file=sys.stderr, sep="\n")
    return done, time.monotonic() - started


GOES_ON = """
from hypothesis import assume
def test_one_fails(comm):
    assert comm.rank != 1, "only rank 1"
def test_after_a_failure(comm):
    comm.barrier()

@pytest.fixture
def broken(comm):
    assert comm.rank != 2, "no fixture on rank 2"
def test_with_fixture(comm, broken):
    comm.barrier()
def test_after_an_error(comm, shared_tmp):
    assert comm.allgather(str(shared_tmp)) == [str(shared_tmp)] * comm.size

@pytest.fixture
def partly(comm):
    if comm.rank == 1:
        pytest.skip("not on rank 1")
def test_skipped(comm, partly):
    comm.barrier()

@given(number=st.integers(0, 1000))
def test_failing_property(comm, number):
    comm.barrier()
    assert comm.rank != 1 or number < 37, "too large"
@pytest.mark.parametrize("factor", [1, 2])
@given(numbers=st.lists(st.integers(0, 9)))
def test_property(comm, shared_tmp, factor, numbers):
    assume(len(numbers) != 1)
    assert comm.allgather(numbers) == [numbers] * comm.size
"""


@pytest.fixture(scope="module")
def going_on(tmp_path_factory):
    """The outcome of a run in which steps fail that leave the ranks together."""
    return run_pytest(tmp_path_factory.mktemp("case"), GOES_ON)[0]


def test_the_run_goes_on_after_failures(going_on):
    """Every test has its turn; a skip on one rank is one everywhere; properties and assume hold on all ranks."""
    assert going_on.returncode == 1
    assert "2 failed, 4 passed, 1 skipped, 1 error" in going_on.stdout


def test_failure_on_one_rank_is_shown_once(going_on):
    assert "failed on rank 1" in going_on.stdout
    assert going_on.stdout.count("AssertionError: only rank 1") == 1


def test_failure_in_a_fixture_of_one_rank_keeps_the_others_out_of_the_test(going_on):
    assert "no fixture on rank 2" in going_on.stdout


def test_failing_property_ends_with_the_smallest_values(going_on):
    assert "too large" in going_on.stdout and "number=37" in going_on.stdout


def test_failure_before_a_collective_ends_the_job_with_its_assertion(tmp_path):
    body = """
def test_one_fails_early(comm):
    assert comm.rank != 1, "before the barrier"
    comm.barrier()
"""
    done, seconds = run_pytest(tmp_path, body)
    assert done.returncode != 0 and seconds < 20
    assert "AssertionError: before the barrier" in done.stderr
    assert "[rank 1 of 3] FAILED" in done.stderr and "the other ranks are stuck in it" in done.stderr


def test_deadlock_ends_at_the_limit_with_every_stack(tmp_path):
    body = """
def test_nobody_sends(comm):
    wait_for_a_message(comm)
def wait_for_a_message(comm):
    comm.recv(source=(comm.rank + 1) % comm.size)
"""
    done, seconds = run_pytest(tmp_path, body, limit=2)
    assert done.returncode != 0 and 2 < seconds < 25
    assert done.stderr.count("in wait_for_a_message") == RANKS
    for rank in range(RANKS):
        assert f"[rank {rank} of {RANKS}]" in done.stderr


def test_crash_of_one_rank_ends_the_job(tmp_path):
    body = """
def test_crash(comm):
    if comm.rank == 1:
        ctypes.string_at(0)
    comm.barrier()
"""
    done, seconds = run_pytest(tmp_path, body)
    assert done.returncode != 0 and seconds < 20
    assert "Segmentation fault" in done.stderr and "test_crash" in done.stderr


def test_import_error_on_one_rank_stops_every_rank(tmp_path):
    body = """
from cusp.runtime.mpi import MPI
if MPI.COMM_WORLD.rank == 1:
    import no_such_module
def test_any(comm):
    comm.barrier()
"""
    done, seconds = run_pytest(tmp_path, body)
    assert done.returncode != 0 and seconds < 20
    assert "ranks 0 and 1 did not find the same tests" in done.stdout + done.stderr
    assert "no_such_module" in done.stdout + done.stderr


def test_property_that_fails_before_a_collective_ends_the_job(tmp_path):
    body = """
@given(number=st.integers(0, 1000))
def test_property(comm, number):
    assert comm.rank != 1 or number < 37, "too large"
    comm.barrier()
"""
    done, seconds = run_pytest(tmp_path, body)
    assert done.returncode != 0 and seconds < 20
    assert "too large" in done.stdout + done.stderr


def test_unmarked_tests_run_at_one_rank_only(tmp_path):
    body = """
pytestmark = []
def test_alone():
    pass
@pytest.mark.mpi
def test_together(comm):
    pass
"""
    assert "2 passed" in run_pytest(tmp_path, body, ranks=1)[0].stdout
    assert "1 passed, 1 deselected" in run_pytest(tmp_path, body, ranks=2)[0].stdout


def test_a_program_that_goes_on_is_not_ended(tmp_path):
    """The time counts from the last change of the file, however long the whole takes."""
    file = tmp_path / "progress"
    file.touch()
    body = "import sys, time\nfor _ in range(8):\n    time.sleep(0.5); print('x', file=open(sys.argv[1], 'a'))\n"
    started = time.monotonic()
    for stands_still in (False, True):
        arguments = ["-c", body + "time.sleep(60)" * stands_still, str(file)]
        try:
            done = launcher.run(1, arguments, timeout=3, launcher=False, progress=file)
            assert not stands_still and done.returncode == 0
        except subprocess.TimeoutExpired:
            assert stands_still
        assert file.read_text() == "x\n" * 8 * (1 + stands_still)
    assert time.monotonic() - started < 30


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_runner_names_the_test_that_stands_still(tmp_path, capfd, ranks):
    """Tests that finish extend the time; the one that does not is in the message, with the option."""
    body = "def test_stands(comm):\n    time.sleep(600)\n"
    for number in range(4):
        body = f"def test_{number}(comm):\n    time.sleep(4)\n" + body
    (tmp_path / "test_case.py").write_text(HEAD + body)
    arguments = ["-p", "no:cacheprovider", "-p", "conftest", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    variables = {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}", "CUSP_TEST_TIMEOUT": "600"}
    found = runner.run_size(ranks, [*arguments, str(tmp_path / "test_case.py")], 12, variables)
    assert (found.counts["passed"], found.failed) == (4, 1)
    where = (
        f"on {ranks} rank{'s' * (ranks > 1)}; still running: test_case.py::test_stands; --limit SECONDS waits longer"
    )
    assert f"error: no test has finished for 12 s {where}" in capfd.readouterr().err
