"""How a program starts and ends on one rank and on several (cusp/launch.py)."""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import pytest
from spawn import ROOT, mpirun

from cusp.launch import num_seconds
from scripts.mpirun import environment

HEAD = """
import argparse, os, signal, sys, time
from cusp.launch import parse_together, run_main
from cusp.errors import InputError, raise_together
def main(comm, argv):
"""
TAIL = """
if __name__ == "__main__":
    run_main(main)
"""


def run_program(folder: Path, body: str, ranks: int, *args: str, **options):
    """Run a program whose ``main`` has this body; returns its outcome and the seconds it took."""
    program = folder / "program.py"
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    program.write_text(HEAD + lines + TAIL)
    started = time.monotonic()
    done = mpirun(ranks, program, *args, timeout=60, launcher=ranks > 1, **options)
    print(done.stdout, done.stderr, file=sys.stderr, sep="\n")
    return done, time.monotonic() - started


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("0.5", 0.5), ("1e-9", 1e-9), ("30s", 30), ("1.5min", 90), ("2 h", 7200), ("1d", 86_400)],
)
def test_times(text, seconds):
    assert num_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1", "5m", "min", "nan", "inf", "1e999", "1.2.3", "2 hh"])
def test_what_is_no_time(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected a time above 0, such as 90, 30s, 5min or 2h"):
        num_seconds(text)


def said(done) -> str:
    """What the program wrote to stderr, without what some launchers add about exit codes."""
    return done.stderr.split("-" * 70)[0].strip()


@pytest.mark.parametrize("ranks", [1, 3])
def test_return_value_is_the_exit_code(tmp_path, ranks):
    body = "sys.stdout.write(f'rank {comm.rank} {argv}\\n')"
    done, _ = run_program(tmp_path, body, ranks, "a", "--b")
    assert done.returncode == 0 and done.stderr == ""
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} ['a', '--b']" for rank in range(ranks)]
    assert run_program(tmp_path, "return 7", ranks)[0].returncode == 7


@pytest.mark.parametrize("ranks", [1, 2])
def test_input_error_of_all_ranks_is_said_once(tmp_path, ranks):
    done, _ = run_program(tmp_path, "raise_together(comm, InputError('g.h5: no such file'))", ranks)
    where = f" (rank 0 of {ranks})" if ranks > 1 else ""
    assert (done.returncode, said(done)) == (1, f"error: g.h5: no such file{where}")


def test_input_error_of_one_rank_is_said_by_rank_0(tmp_path):
    body = "if comm.rank == 1:\n    raise InputError('bad weight')\nreturn 0"
    done, _ = run_program(tmp_path, body, 3)
    assert (done.returncode, said(done)) == (1, "error: bad weight")


def test_input_error_of_one_rank_does_not_hang_the_others(tmp_path):
    body = "if comm.rank == 1:\n    raise InputError('bad weight')\ncomm.barrier()"
    done, seconds = run_program(tmp_path, body, 3)
    assert done.returncode != 0 and seconds < 15
    assert "[rank 1 of 3] error: bad weight" in done.stderr and "Traceback" not in done.stderr


def test_uncaught_error_on_one_rank_ends_the_job(tmp_path):
    body = "if comm.rank == 1:\n    1 / 0\ncomm.barrier()"
    done, seconds = run_program(tmp_path, body, 3)
    assert done.returncode != 0 and seconds < 10
    assert "[rank 1 of 3] ZeroDivisionError: division by zero" in done.stderr
    assert done.stderr.count("Traceback") == 1


def test_uncaught_error_keeps_what_was_printed_before(tmp_path):
    done, _ = run_program(tmp_path, "print('so far')\n1 / 0", 1)
    assert done.returncode == 1 and done.stdout == "so far\n" and "ZeroDivisionError" in done.stderr


@pytest.mark.parametrize("ranks", [1, 3])
def test_exit_code_is_honoured_on_all_ranks(tmp_path, ranks):
    assert run_program(tmp_path, "sys.exit(5)", ranks)[0].returncode == 5
    assert run_program(tmp_path, "sys.exit()", ranks)[0].returncode == 0
    done, _ = run_program(tmp_path, "sys.exit('enough')", ranks)
    assert (done.returncode, said(done)) == (1, "enough")


def test_exit_of_one_rank_does_not_hang_the_others(tmp_path):
    done, seconds = run_program(tmp_path, "if comm.rank == 1:\n    sys.exit(5)\ncomm.barrier()", 2)
    assert done.returncode == 5 and seconds < 15
    assert "[rank 1 of 2] left with exit code 5" in done.stderr


PARSE = """
parser = argparse.ArgumentParser(prog="program")
parser.add_argument("--count", type=int, default=3)
options = parse_together(comm, parser, argv)
sys.stdout.write(f"count {options.count}\\n")
return 0
"""


@pytest.mark.parametrize("ranks", [1, 3])
def test_usage_is_printed_once(tmp_path, ranks):
    done, _ = run_program(tmp_path, PARSE, ranks, "--count", "x")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("usage:") == 1 and done.stderr.count("invalid int value") == 1
    done, _ = run_program(tmp_path, PARSE, ranks, "--help")
    assert done.returncode == 0 and done.stdout.count("usage:") == 1 and done.stderr == ""
    done, _ = run_program(tmp_path, PARSE, ranks, "--count", "4")
    assert done.returncode == 0 and done.stdout.split() == ["count", "4"] * ranks


@pytest.mark.parametrize("size", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_ranks_that_do_not_know_each_other_are_stopped(tmp_path, size):
    rank = {"PMI_SIZE": "PMI_RANK", "OMPI_COMM_WORLD_SIZE": "OMPI_COMM_WORLD_RANK"}.get(size, "SLURM_PROCID")
    done, _ = run_program(tmp_path, "print('ran')", 1, env={size: "4", rank: "0"})
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("error: the launcher started 4 ranks, but MPI sees 1")
    assert "mpirun:" in done.stderr and "loaded:" in done.stderr and "RuntimeWarning" not in done.stderr
    done, _ = run_program(tmp_path, "print('ran')", 1, env={size: "4", rank: "2"})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_slurm_allocation_without_a_step_is_no_launcher(tmp_path):
    done, _ = run_program(tmp_path, "print('ran')", 1, env={"SLURM_NTASKS": "4", "SLURM_PROCID": "0"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


@pytest.mark.parametrize("ranks", [1, 2])
def test_interrupt_is_quiet(tmp_path, ranks):
    body = "signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it\n"
    body += "if comm.rank == 0:\n    os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(30)"
    done, seconds = run_program(tmp_path, body, ranks)
    assert done.returncode == 130 and seconds < 15
    assert "Traceback" not in done.stderr


def test_what_a_launcher_inherits(monkeypatch):
    """A rank's place stays behind; what a user told Open MPI goes along."""
    for name in (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_MCA_orte_jobid",
        "PMI_RANK",
        "OMPI_MCA_plm",
        "OMPI_MCA_btl_tcp_if_include",
    ):
        monkeypatch.setenv(name, "1")
    kept = {name for name in environment() if name.startswith(("OMPI_MCA_", "OMPI_COMM", "PMI_"))}
    assert kept == {"OMPI_MCA_plm", "OMPI_MCA_btl_tcp_if_include"}


def test_closed_output_is_quiet(tmp_path):
    (tmp_path / "program.py").write_text(
        HEAD + "    for number in range(100_000):\n        print(number)\n    return 0\n" + TAIL
    )
    line = f"{sys.executable} {tmp_path / 'program.py'} | head -n 1"
    variables = environment({"PYTHONPATH": str(ROOT)})
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60, env=variables)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_exit_code_0_of_one_rank_does_not_hang_the_others(tmp_path):
    done, seconds = run_program(tmp_path, "if comm.rank == 1:\n    sys.exit(0)\ncomm.barrier()", 2)
    assert done.returncode == 1 and seconds < 15
    assert "[rank 1 of 2] left with exit code 0, and other ranks wait for it" in done.stderr


def test_exit_in_a_block_of_all_ranks_is_an_error(tmp_path):
    body = "from cusp.errors import together\nwith together(comm):\n    if comm.rank == 1: sys.exit(0)"
    done, _ = run_program(tmp_path, body, 2)
    assert done.returncode == 1
    assert said(done) == "error: sys.exit(0) was called, which would leave other ranks waiting (rank 1 of 2)"


def test_error_of_one_rank_before_the_program_begins_ends_the_job(tmp_path):
    """From the first use of the library on."""
    (tmp_path / "program.py").write_text(
        "import os\nfrom cusp import run_main\nif os.environ['PMI_RANK'] == '1':\n    import no_such_module\n"
        + HEAD
        + "    pass\n"
        + TAIL
    )
    started = time.monotonic()
    done = mpirun(3, tmp_path / "program.py", timeout=60)
    assert done.returncode == 1 and time.monotonic() - started < 15
    assert done.stderr.count("Traceback") == 1 and "no_such_module" in done.stderr


@pytest.mark.parametrize("number", ["INT", "TERM"])
@pytest.mark.parametrize("rank", [0, 1])
def test_signal_to_one_rank_ends_those_that_wait_for_it(tmp_path, number, rank):
    """The one that is told may itself wait in MPI, where Python's handlers are not called."""
    body = (
        f"if comm.rank == {rank}:\n    subprocess.Popen(['sh', '-c', f'sleep 0.2; kill -{number} {{os.getpid()}}'])\n"
    )
    done, seconds = run_program(tmp_path, "import subprocess\n" + body + "if comm.rank < 2:\n    comm.barrier()", 3)
    assert done.returncode == {"INT": 130, "TERM": 143}[number] and seconds < 10
    assert said(done) == {"INT": "", "TERM": f"[rank {rank} of 3] error: ended by SIGTERM"}[number]


@pytest.mark.parametrize("hang", ["os.kill(os.getpid(), signal.SIGSTOP)", "while True: pass"])
def test_a_rank_that_hangs_is_reported(tmp_path, hang):
    body = f"""
from cusp.program.cli import add_watching
from cusp.runtime.timeline import Stopwatch
parser = argparse.ArgumentParser()
add_watching(parser)
parse_together(comm, parser, argv)
with Stopwatch()("waiting"):
    if comm.rank == 1:
        {hang}
    comm.barrier()
"""
    done, seconds = run_program(tmp_path, body, 2, "--timeout", "1")
    assert done.returncode == 1 and seconds < 12
    line = '[rank {} of 2] error: --timeout 1: no progress for that many seconds in the phase "waiting", after 1 steps'
    assert line.format(0) in done.stderr
    assert (line.format(1) in done.stderr) == ("SIGSTOP" not in hang)


def test_a_full_disk_under_the_output_is_an_error(tmp_path):
    """Also what is still to be printed at the end."""
    (tmp_path / "program.py").write_text(HEAD + "    print('x')\n" + TAIL)
    with open("/dev/full", "w") as full:
        line = [sys.executable, tmp_path / "program.py"]
        variables = environment({"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""})
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, env=variables)
    assert (done.returncode, done.stderr) == (
        1, "error: standard output: cannot be written: No space left on device\n",
    )  # fmt: skip


def test_files_are_not_taken_for_a_closed_output(tmp_path):
    (tmp_path / "program.py").write_text(
        HEAD + "    print(open('file', 'w').fileno(), file=open('seen', 'w'))\n" + TAIL
    )
    line = f"{sys.executable} program.py <&- >&- 2>&-"
    done = subprocess.run(line, shell=True, cwd=tmp_path, timeout=60, env=environment({"PYTHONPATH": str(ROOT)}))
    assert done.returncode == 0 and int((tmp_path / "seen").read_text()) > 2
