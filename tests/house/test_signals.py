"""How programs end while they start, and what the next start removes (cusp/runtime/signals.py, leftovers.py)."""

import mmap
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from spawn import ROOT, mpirun

from cusp.runtime import leftovers
from scripts.mpirun import command, environment, is_open_mpi, kill_session

SLOW = "import sys, time\nsys.stdout.write('x')\nsys.stdout.flush()\ntime.sleep(60)\n"  # a module that takes its time


def start(tmp_path, module: str, *options: str) -> subprocess.Popen:
    """A program that is at its first imports."""
    (tmp_path / "mpi4py.py").write_text(SLOW)
    variables = environment({"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, *options, "-m", module], stdout=pipe, stderr=pipe, text=True, env=variables, cwd=ROOT
    )
    assert process.stdout and process.stdout.read(1) == "x"
    return process


# The modules that our handlers need take their time.
FIRST = """
import sys, time
class Late:
    def find_spec(self, name, path, target=None):
        if name == "cusp.errors":
            sys.stdout.write("x")
            sys.stdout.flush()
            time.sleep(1)
sys.meta_path.insert(0, Late())
"""
WAITS = "from cusp.runtime.mpi import MPI; import os, time; os.write(1, b'%d\\n' % os.getpid()); time.sleep(100)"


@pytest.mark.parametrize("module", ["cusp.apps.bfs", "cusp", "cusp.commands.convert"])
def test_interrupt_while_modules_load_is_quiet(tmp_path, module):
    process = start(tmp_path, module)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10) == ("", "") and process.returncode == 130


def test_termination_while_modules_load_is_one_line(tmp_path):
    process = start(tmp_path, "cusp.apps.bfs")
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=10) == ("", "error: ended by SIGTERM\n") and process.returncode == 143


# Rank 1 comes to its imports of cusp or of MPI when rank 0 waits for it in MPI_Init.
LATE = """
import os, sys, time
class Late:
    def find_spec(self, name, path, target=None):
        if name == "{module}":
            sys.stdout.write(name)
            sys.stdout.flush()
            {then}
if (os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK")) == "1":
    sys.meta_path.insert(0, Late())
"""
AS_IN_SITE = "try: time.sleep(60)\n            except KeyboardInterrupt: os._exit(1)"  # as Python in its first moments


@pytest.mark.parametrize(
    ("module", "then"), [("mpi4py", "time.sleep(60)"), ("cusp", "time.sleep(60)"), ("cusp", AS_IN_SITE)]
)
def test_interrupt_while_a_rank_waits_in_mpi_init(tmp_path, module, then):
    """MPICH's launcher only hands the signal on: each rank has to hear it, or to be ended by one that does."""
    (tmp_path / "sitecustomize.py").write_text(LATE.format(module=module, then=then))
    variables = environment({"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    line = [*command(2), sys.executable, "-m", "cusp.apps.bfs"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        line, stdout=pipe, stderr=pipe, text=True, env=variables, cwd=ROOT, start_new_session=True
    )
    try:
        assert process.stdout and process.stdout.read(len(module)) == module
        time.sleep(2)  # rank 0 needs less to come to MPI_Init
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    finally:
        kill_session(process)
    if module == "cusp":  # the end of Python is not ours, and the launcher combines the exit codes of all ranks
        assert process.returncode != 0
    else:
        assert process.returncode == (1 if is_open_mpi() else 130) and "Traceback" not in errors


def test_termination_of_one_rank_ends_those_that_wait_in_mpi_init(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        LATE.format(module="mpi4py", then="os.kill(os.getpid(), 15); time.sleep(60)")
    )
    done = mpirun(3, "-m", "cusp.apps.bfs", env={"PYTHONPATH": str(tmp_path)}, timeout=30)
    assert done.returncode == 143 and done.stderr == "[rank 1 of 3] error: ended by SIGTERM\n"


def test_mpi_is_started_as_its_settings_say(tmp_path):
    """As by mpi4py itself: errors are exceptions, threads may call MPI, and MPI ends with Python."""
    text = "import mpi4py; {}; from cusp.runtime.mpi import MPI; print(MPI.Is_initialized() and ["
    text += "MPI.COMM_WORLD.size, MPI.Query_thread() == MPI.THREAD_{}, MPI.COMM_WORLD.Get_errhandler() == MPI.{}])"
    for set_to, level, errors, size in (
        ("pass", "MULTIPLE", "ERRORS_RETURN", 2),
        ("mpi4py.rc.threads = False", "SINGLE", "ERRORS_RETURN", 2),
        ("mpi4py.rc(thread_level='funneled', errors='fatal')", "FUNNELED", "ERRORS_ARE_FATAL", 2),
    ):
        done = mpirun(2, "-c", text.format(set_to, level, errors))
        assert done.returncode == 0 and done.stdout.count(f"[{size}, True, True]") == 2, done.stderr
    done = mpirun(2, "-c", text.format("mpi4py.rc.initialize = False", "SINGLE", "ERRORS_RETURN"))
    assert done.returncode == 0 and done.stdout.count("False") == 2, done.stderr


def test_other_programs_keep_their_signals():
    """A notebook or a script that imports us, and gets KeyboardInterrupt as ever."""
    text = "import signal, cusp; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.stdout == "True\n"


@pytest.mark.parametrize(
    ("then", "sent"),
    [
        ("time.sleep(60)", 99),  # the second one ends at once, wherever the process is
        ("signals.end_at_once()", 1),  # no more rounds come
        ("time.sleep(60)", 1),  # the round takes too long
    ],
)
def test_a_signal_waits_for_the_end_of_a_round(then, sent):
    text = (
        "from cusp.runtime import signals; import time\n"
        f"signals.PATIENCE, signals.LONGEST_ROUND = 0.01, {60 if sent > 1 else 0.3}\n"
        "signals.end_on_signals(); signals.asked_to_end(); print('x', end='', flush=True)\n"
        "while not signals.asked_to_end(): time.sleep(1e-3)\n"
        f"print(signals.asked_to_end(), flush=True); {then}\n"
    )
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    assert process.stdout and process.stderr and process.stdout.read(1) == b"x"
    process.terminate()
    assert process.stdout.readline() == b"15\n"
    while sent > 1 and process.poll() is None:
        process.terminate()
        time.sleep(1e-3)
    assert process.wait(10) == 143 and process.stderr.read() == b"error: ended by SIGTERM\n"


def test_what_is_unfinished_goes_with_the_process(tmp_path):
    text = (
        "from cusp.runtime import leftovers, signals; import os, time\n"
        "signals.end_on_signals()\n"
        "with leftovers.replacing('file') as temporary, leftovers.scratch_folder():\n"
        "    temporary.write_text('half'); print('x', flush=True); time.sleep(60)\n"
    )
    variables = environment({"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)})
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, env=variables, cwd=tmp_path)
    assert process.stdout and process.stdout.read(1) == b"x" and len([*tmp_path.iterdir()]) == 2
    process.terminate()
    assert process.wait(10) == 143 and not [*tmp_path.iterdir()]


def test_what_a_killed_process_left_is_removed(tmp_path):
    """And nothing else: not what a living one has, what is on another host, or what has another name."""
    text = (
        "from cusp.runtime import leftovers; import os, signal\n"
        "leftovers.temporary_beside('file').write_text('half'); os.mkdir(leftovers.mark() + 'x')\n"
        "open(leftovers.mark() + 'x/below', 'w'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    variables = environment({"PYTHONPATH": str(ROOT)})
    done = subprocess.run([sys.executable, "-c", text], env=variables, cwd=tmp_path)
    assert done.returncode == -9 and len([*tmp_path.iterdir()]) == 2
    mine = leftovers.mark()
    kept = {f"{mine}x", f".file.{mine}x.tmp", "cusp-test-xyz", f"cusp-00000000-{2**22 + 1}-1-x", "file"}
    for name in kept:
        (tmp_path / name).write_text("")
    leftovers.sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == kept
    (tmp_path / mine.replace(f"-{os.getpid()}-", f"-{2**22 + 1}-")).mkdir()  # no process has such a number
    leftovers.sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_interrupt_before_handlers_are_there(tmp_path):
    """The first module of ours keeps it until they are."""
    (tmp_path / "sitecustomize.py").write_text(FIRST)
    variables = environment({"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-m", "cusp.apps.bfs"], stdout=pipe, stderr=pipe, text=True, env=variables, cwd=ROOT
    )
    assert process.stdout and process.stdout.read(1) == "x"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20) == ("", "") and process.returncode == 130


@pytest.mark.skipif(is_open_mpi(), reason="the memory of MPICH")
def test_shared_memory_of_killed_jobs_is_removed(tmp_path):
    """By the next start, once nobody can need it any more; that of a job that runs stays."""

    def job() -> tuple[subprocess.Popen, list[int], set[str]]:
        line = [*command(2), sys.executable, "-c", WAITS]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, env=environment(), cwd=ROOT, start_new_session=True)
        assert process.stdout
        ranks = [int(process.stdout.readline()) for _ in range(2)]
        maps = "".join(Path(f"/proc/{rank}/maps").read_text() for rank in ranks)
        shared = set(re.findall(r"/dev/shm/mpich_shm_\w+", maps))
        for path in shared:
            os.utime(path, (0, 0))
        return process, ranks, shared

    killed, ranks, left = job()
    for number in (killed.pid, *ranks):
        os.kill(number, signal.SIGKILL)
    killed.wait()
    assert left and all(map(os.path.exists, left))
    runs, _, used = job()
    try:
        done = subprocess.run([sys.executable, "-m", "cusp", "policies"], env=environment(), cwd=ROOT)
        assert done.returncode == 0 and not any(map(os.path.exists, left)) and used and all(map(os.path.exists, used))
    finally:
        kill_session(runs)


def test_what_jobs_of_mpi_left_is_removed(tmp_path):
    """Old files with such names that nobody has open; no others."""
    names = ["mpich_shm_1_0", "vader_segment.host.0.1", "hydra_hwloc_xmlfile_x", "mpich_other", "mpich_shm_new"]
    for name in names:
        (tmp_path / name).write_bytes(bytes(4096))
    for name in names[:-1]:
        os.utime(tmp_path / name, (0, 0))
    with open(tmp_path / names[0], "r+b") as file, mmap.mmap(file.fileno(), 4096):
        leftovers.sweep_of_mpi(tmp_path, tmp_path / "no folder")
        assert sorted(os.listdir(tmp_path)) == ["mpich_other", "mpich_shm_1_0", "mpich_shm_new"]
    leftovers.sweep_of_mpi(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["mpich_other", "mpich_shm_new"]


@pytest.mark.parametrize("ranks", [1, 2])
def test_too_little_address_space_is_one_line(ranks):
    """Libraries would abort, or ask for memory for ever."""
    limit = 600 << 20
    line = [*(command(ranks) if ranks > 1 else []), "prlimit", f"--as={limit}", sys.executable, "-m", "cusp.apps.bfs"]
    done = subprocess.run(line, capture_output=True, text=True, env=environment(), cwd=ROOT, timeout=60)
    assert done.returncode == 1 and "error: a process may have 629 MB of addresses (ulimit -v), " in done.stderr
    assert done.stderr.count("error:") == 1 and "Traceback" not in done.stderr
