"""One rank fails at one collective step, and all have to end: ``python -m tests.fuzz.faults --ranks 3``.

A *step* is a line from which a program calls a function that all ranks call: of MPI, or of the memory that ranks of
one host share. A line is a step of the rehearsal, and another one of the run. First the program runs undisturbed and
each rank lists its steps; then once for each kind of fault, step and rank. All ranks have to end within seconds of the
fault, or of ``--timeout``, with one message and a code that is not 0.

All jobs are forks of one process that has loaded the programs. Ranks that wait after the fault give way to other jobs.
"""

import argparse
import contextlib
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import spawn
from fuzz import forked

from scripts import mpirun

PATIENCE = 10.0  # seconds after a fault in which all ranks have to end, and after --timeout
TIMEOUT = 2.0  # of --timeout, for ranks that sleep or are stopped; it counts from the fault on
SHORTER = 0.5  # seconds that ranks wait for each other's words, which they have at once in so small a job
LIMIT = 120.0  # seconds in which a rank has to come to its step
KINDS = ("raise", "defect", "exit", "kill", "sleep", "stop")
PLAN, NOTES = "CUSP_FAULT", "CUSP_FAULT_NOTES"  # variables: step, rank and kind; the folder for what ranks note
BETWEEN = ("contextlib.py", "fuzz/faults.py", "cusp/errors.py", "cusp/runtime/timeline.py", "cusp/runtime/exchange.py",
           "gluon/exchange.py", "gluon/sync.py", "gluon/transports/memory.py")  # fmt: skip


class Fault(NamedTuple):
    """What goes wrong: on this rank, when it comes to this one of its steps."""

    step: int
    rank: int
    kind: str


class Ranks(NamedTuple):
    """How many ranks a job has, and the socket of the process of which they are forks."""

    count: int
    server: str


class Outcome(NamedTuple):
    """How a job ended: its exit code, seconds since the fault, what it said, and what is wrong with that."""

    fault: Fault
    place: str
    code: int
    seconds: float
    text: str
    wrong: str


Choose = Callable[[list[list[str]]], list[Fault]]


# What runs in the job.


def serve(path: str) -> NoReturn:
    """Load what programs load, and be the process of which all ranks are forks, or such a fork."""
    rc = importlib.import_module("mpi4py").rc
    rc.initialize, rc.finalize = False, True
    command = importlib.import_module("cusp.commands.command")
    for name in ("bfs", "partition"):
        command.load(name)
    load_code()
    argv = forked.serve(path)
    rc.initialize = True
    job(argv)


def load_code() -> None:
    """Load what is compiled already of every function that is known."""
    numba = importlib.import_module("numba.core.dispatcher")
    known = [each for module in list(sys.modules.values()) for each in vars(module).values()]
    for function in {id(each): each for each in known if isinstance(each, numba.Dispatcher)}.values():
        kept = getattr(function._cache, "_cache_file", None)
        for signature, *_ in kept._load_index() if kept else ():
            function.compile(signature)


def job(argv: list[str]) -> NoReturn:
    """Run a command of ``cusp``, or a script, in which the fault of the environment happens."""
    from cusp import launch
    from cusp.commands import command
    from cusp.runtime import mpi, signals, watchdog
    from cusp.runtime.mpi import MPI
    from gluon.transports.shared import SharedMemory

    step, rank, kind = os.environ[PLAN].split(",")
    launch.GRACE = watchdog.SPEAK = SHORTER
    signals.start_program()
    signals.end_all_on_error()
    with mpi._variables(mpi.YIELDING):
        mpi._start()
    steps = Steps(MPI.COMM_WORLD.rank, Fault(int(step), int(rank), kind))
    threading.Thread(target=steps.wait, args=(watchdog.step,), daemon=True).start()

    class Faulty(MPI.Intracomm):
        """Ranks of which one fails."""

    for name in (
        "Barrier", "Dup", "Split", "Split_type", "allgather", "allreduce", "bcast", "exscan", "recv", "Ibarrier",
        "Isend", "Irecv", "Issend", "Improbe", "Iallreduce", "Allgather", "Allgatherv", "Allreduce", "Alltoall",
        "Alltoallv",
    ):  # fmt: skip
        setattr(Faulty, name, failing(getattr(MPI.Intracomm, name), steps, Faulty))
    for name in ("exchange", "_combine", "_place"):
        setattr(SharedMemory, name, failing(getattr(SharedMemory, name), steps, Faulty))
    MPI.COMM_WORLD = Faulty(MPI.COMM_WORLD)
    if argv[0].endswith(".py"):
        sys.argv = argv
        code = compile(Path(argv[0]).read_text(), argv[0], "exec")
        exec(code, {"__name__": "__main__"})
        sys.exit(0)
    command.run(argv[0], argv[1:])


class Steps:
    """The lines from which this rank has called the others, in the order in which it first came there."""

    def __init__(self, rank: int, fault: Fault) -> None:
        self.rank, self.fault, self.notes = rank, fault, Path(os.environ[NOTES])
        self.places: set[str] = set()

    def come(self, name: str) -> None:
        """At a step; the fault happens if it is the one, for the first time."""
        files = [(frame.f_code.co_filename.removeprefix(f"{spawn.ROOT}/"), frame.f_lineno) for frame in _stack()]
        line = next(f"{file}:{line}" for file, line in files if not file.endswith(BETWEEN))
        place = f"{'rehearsal' if any('warm_up' in file for file, _ in files) else 'run'} {line} {name}"
        if place in self.places:
            return
        number = len(self.places)
        self.places.add(place)
        if self.fault.rank < 0:
            with open(self.notes / f"steps.{self.rank}", "a") as file:
                file.write(f"{place}\n")
        if (number, self.rank) == self.fault[:2]:
            (self.notes / "fault").write_text(f"{time.time()}")
            fail(self.fault.kind)

    def wait(self, progress: Callable[[], None]) -> None:
        """Until the fault, all is progress for ``--timeout``; then the main thread gives way to other jobs."""
        while not (self.notes / "fault").exists():
            progress()
            time.sleep(TIMEOUT / 10)
        os.setpriority(os.PRIO_PROCESS, os.getpid(), 10)  # not too far: it may hold the lock of Python


def _stack() -> Iterator[FrameType]:
    frame = sys._getframe(2)
    while frame := frame.f_back:
        yield frame


def failing(call: Callable[..., Any], steps: Steps, kind: Any) -> Callable[..., Any]:
    """A function that all ranks call, as a step."""

    def step(*arguments: Any, **named: Any) -> Any:
        steps.come(call.__name__)
        made = call(*arguments, **named)
        return kind(made) if call.__name__ in ("Dup", "Split", "Split_type") else made

    return step


def fail(kind: str) -> None:
    """Go wrong."""
    from cusp.errors import InputError

    if kind == "raise":
        raise InputError("a fault on purpose")
    if kind == "defect":
        raise ValueError("a fault on purpose")
    if kind == "exit":
        sys.exit(0)
    if kind == "sleep":
        time.sleep(1000)
    os.kill(os.getpid(), {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[kind])
    time.sleep(1)


# What starts jobs.


@contextlib.contextmanager
def serving(path: str, *words: str) -> Iterator[None]:
    """The process of which ranks are forks, ``python -m WORDS PATH``; it listens at that socket."""
    variables = mpirun.environment({"PYTHONPATH": str(spawn.ROOT)})
    line = [sys.executable, "-m", *words, path]
    process = subprocess.Popen(line, env=variables, cwd=spawn.ROOT, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        while not os.path.exists(path):
            assert process.poll() is None
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def forks(count: int, folder: Path) -> Iterator[Ranks]:
    """Ranks that are forks of one process."""
    path = str(folder / "socket")
    with serving(path, "tests.fuzz.faults", "--serve"):
        yield Ranks(count, path)


def start(ranks: Ranks, argv: list[str], fault: Fault, notes: Path) -> tuple[int, float, str, bool]:
    """Run a job to its end; its code, when it ended, what it said on stderr, and whether it had to be killed."""
    for old in notes.iterdir():
        old.unlink()
    variables = {PLAN: ",".join(map(str, fault)), NOTES: str(notes)}
    line = [*mpirun.command(ranks.count), sys.executable, "-I", "-S", forked.__file__, ranks.server, *argv]
    process = subprocess.Popen(
        line, env=mpirun.environment(variables), cwd=spawn.ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    began, hangs = time.time(), False
    while True:
        try:
            _, text = process.communicate(timeout=0.25)
            break
        except subprocess.TimeoutExpired:
            seen = notes / "fault"
            since = float(seen.read_text() or time.time()) if seen.exists() else 0.0
            allowed = PATIENCE + 2 * TIMEOUT * (fault.kind in ("sleep", "stop"))
            if time.time() > (since + allowed if since else began + LIMIT):
                hangs = True
                mpirun.kill_session(process)
    return process.returncode, time.time(), spawn.OF_LAUNCHERS.sub("", text), hangs


def steps_of(ranks: Ranks, argv: list[str], notes: Path) -> list[list[str]]:
    """The steps of each rank, in words."""
    notes.mkdir()
    argv = [word.replace("{}", str(notes)) for word in argv]
    code, _, text, hangs = start(ranks, argv, Fault(-1, -1, "none"), notes)
    assert code == 0 and not hangs, text
    return [(notes / f"steps.{rank}").read_text().splitlines() for rank in range(ranks.count)]


def one(ranks: Ranks, argv: list[str], fault: Fault, place: str, notes: Path) -> Outcome:
    """Run a job in which something goes wrong."""
    waits = ["--timeout", f"{TIMEOUT:g}"] if fault.kind in ("sleep", "stop") else []
    code, ended, text, hangs = start(ranks, [*argv, *waits], fault, notes)
    seen = notes / "fault"
    seconds = ended - float(seen.read_text()) if seen.exists() else 0.0
    wrong = "never came to the step" if not seen.exists() else "hangs" if hangs else judged(fault.kind, code, text)
    return Outcome(fault, place, code, seconds, text, wrong)


def judged(kind: str, code: int, text: str) -> str:
    """What is wrong with the end of a job."""
    told = [line for line in text.splitlines() if re.search(r"error: |left with exit code|^(\[rank.*)?Traceback", line)]
    if code == 0:
        return "exit code 0"
    if text.count("Traceback") != (kind == "defect"):
        return f"{text.count('Traceback')} tracebacks"
    if kind in ("raise", "defect", "exit") and len(told) != 1:
        return f"{len(told)} messages"
    if kind in ("sleep", "stop"):
        told = [line for line in told if "--timeout" not in line]
    if kind not in ("raise", "defect", "exit") and not all("has ended, and rank" in line for line in told):
        return "another message"
    return ""


def main() -> int:
    """Try all faults, and show a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.faults", description=__doc__)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--every", type=int, default=1, metavar="N", help="try one of so many faults (default: all)")
    parser.add_argument("--first", type=int, default=0, metavar="I", help="begin with this one (default: 0)")
    parser.add_argument("--at-once", type=int, default=6, metavar="N", help="jobs at a time (default: 6)")
    parser.add_argument("words", nargs="*", help="the command, such as: bfs graph.h5 (default: one on a small graph)")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        argv = parsed.words or small_search(Path(name))
        kinds, chosen = parsed.kinds.split(","), slice(parsed.first, None, parsed.every)
        outcomes = attack(parsed.ranks, argv, Path(name), parsed.at_once, lambda steps: faults_of(steps, kinds)[chosen])
    show(outcomes)
    return int(any(outcome.wrong for outcome in outcomes))


def small_search(folder: Path) -> list[str]:
    """A search on a small graph, whose answer is verified and written."""
    graph = str(folder / "graph.h5")
    line = [sys.executable, "-m", "cusp.commands.generate", "rmat", "--scale", "8", "--symmetrize", "--output", graph]
    subprocess.run(line, check=True, cwd=spawn.ROOT, stdout=subprocess.DEVNULL, env=mpirun.environment())
    return ["bfs", graph, "--source", "1", "--policy", "cvc", "--verify", "--output", "{}/hops.h5"]


def attack(count: int, argv: list[str], folder: Path, at_once: int, choose: Choose) -> list[Outcome]:
    """Every fault that is chosen, given the steps of each rank; what is wrong is shown at once."""
    with forks(count, folder) as ranks:
        steps_of(ranks, argv, folder / "compiling")
    with forks(count, folder / "compiling") as ranks, ThreadPool(at_once) as pool:
        steps = steps_of(ranks, argv, folder / "first")
        print(f"steps of each rank: {', '.join(str(len(of_rank)) for of_rank in steps)}", flush=True)

        def attempt(number: int, fault: Fault) -> Outcome:
            notes = folder / f"{number}"
            notes.mkdir()
            words = [word.replace("{}", str(notes)) for word in argv]
            outcome = one(ranks, words, fault, steps[fault.rank][fault.step], notes)
            print("." if not outcome.wrong else "\n    ".join(map(str, outcome)), end="", flush=True)
            return outcome

        return pool.starmap(attempt, enumerate(choose(steps)), chunksize=1)


def faults_of(steps: list[list[str]], kinds: list[str]) -> list[Fault]:
    """Every kind at every step of every rank; but no program calls ``sys.exit`` before it begins or after its end."""
    return [
        Fault(step, rank, kind)
        for rank, of_rank in enumerate(steps)
        for step, place in enumerate(of_rank)
        for kind in kinds
        if kind != "exit" or "cusp/launch.py" not in place
    ]


def show(outcomes: list[Outcome]) -> None:
    """A line for each kind."""
    print(f"{'kind':8}{'tried':>7}{'wrong':>7}{'slowest':>9}  exit codes")
    for kind in dict.fromkeys(outcome.fault.kind for outcome in outcomes):
        rows = [outcome for outcome in outcomes if outcome.fault.kind == kind]
        slowest, codes = max(row.seconds for row in rows), Counter(row.code for row in rows)
        print(f"{kind:8}{len(rows):7}{sum(bool(row.wrong) for row in rows):7}{slowest:7.1f} s  {dict(codes)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
