"""The test set-up itself: whatever goes wrong on one rank, the run ends in seconds and says what it was."""

import sys
import time
from pathlib import Path

import pytest
from spawn import ROOT, mpirun

RANKS = 3
HEAD = """
import ctypes, time
import pytest
from hypothesis import given, strategies as st
pytestmark = pytest.mark.mpi
"""


def run_pytest(folder: Path, body: str, ranks: int = RANKS):
    """Run a test file with our conftest; returns its outcome and the seconds it took."""
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
            "CUSP_TEST_TIMEOUT": "4",
            "CUSP_TEST_OUTCOMES": "",
        },
        cwd=folder,
    )
    print(done.stdout, done.stderr, file=sys.stderr, sep="\n")
    return done, time.monotonic() - started


def test_failure_on_one_rank_is_shown_once_and_the_run_goes_on(tmp_path):
    body = """
def test_one_fails(comm):
    assert comm.rank != 1, "only rank 1"
def test_next(comm):
    comm.barrier()
"""
    done, _ = run_pytest(tmp_path, body)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "failed on rank 1" in done.stdout
    assert done.stdout.count("AssertionError: only rank 1") == 1


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
    done, seconds = run_pytest(tmp_path, body)
    assert done.returncode != 0 and 4 < seconds < 25
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


def test_failure_in_a_fixture_of_one_rank_keeps_the_others_out_of_the_test(tmp_path):
    body = """
@pytest.fixture
def broken(comm):
    assert comm.rank != 2, "no fixture on rank 2"
def test_with_fixture(comm, broken):
    comm.barrier()
def test_next(comm, shared_tmp):
    assert comm.allgather(str(shared_tmp)) == [str(shared_tmp)] * comm.size
"""
    done, seconds = run_pytest(tmp_path, body)
    assert done.returncode == 1 and seconds < 20
    assert "1 passed, 1 error" in done.stdout and "no fixture on rank 2" in done.stdout


def test_skip_on_one_rank_is_a_skip_everywhere(tmp_path):
    body = """
@pytest.fixture
def partly(comm):
    if comm.rank == 1:
        pytest.skip("not on rank 1")
def test_skipped(comm, partly):
    comm.barrier()
"""
    done, _ = run_pytest(tmp_path, body)
    assert done.returncode == 0 and "1 skipped" in done.stdout


def test_import_error_on_one_rank_stops_every_rank(tmp_path):
    body = """
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 1:
    import no_such_module
def test_any(comm):
    comm.barrier()
"""
    done, seconds = run_pytest(tmp_path, body)
    assert done.returncode != 0 and seconds < 20
    assert "ranks 0 and 1 did not find the same tests" in done.stdout + done.stderr
    assert "no_such_module" in done.stdout + done.stderr


@pytest.mark.parametrize("where", ["before the barrier", "after the barrier"])
def test_failing_property_ends_with_the_values(tmp_path, where):
    barrier = {"before the barrier": ("", "comm.barrier()"), "after the barrier": ("comm.barrier()", "")}
    first, last = barrier[where]
    body = f"""
@given(number=st.integers(0, 1000))
def test_property(comm, number):
    {first or "pass"}
    assert comm.rank != 1 or number < 37, "too large"
    {last or "pass"}
def test_next(comm):
    comm.barrier()
"""
    done, seconds = run_pytest(tmp_path, body)
    assert done.returncode != 0 and seconds < 20
    assert "too large" in done.stdout + done.stderr
    if where == "after the barrier":
        assert "number=37" in done.stdout and "1 failed, 1 passed" in done.stdout


def test_property_and_assume_hold_on_all_ranks(tmp_path):
    body = """
from hypothesis import assume
@pytest.mark.parametrize("factor", [1, 2])
@given(numbers=st.lists(st.integers(0, 9)))
def test_property(comm, shared_tmp, factor, numbers):
    assume(len(numbers) != 1)
    assert comm.allgather(numbers) == [numbers] * comm.size
"""
    done, _ = run_pytest(tmp_path, body)
    assert done.returncode == 0 and "2 passed" in done.stdout


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
