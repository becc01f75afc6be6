"""Cases on several ranks: forks of one process that has loaded all programs, see forked.py.

The driver makes and damages the inputs; each rank finds out from the seed which program to call.
"""

import contextlib
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("CUSP_DEVICE", "cpu")

import spawn
from fuzz import forked, isolate
from fuzz.faults import load_code, serving

from scripts import mpirun

LIMIT = 120.0  # seconds, while other jobs run at the same time


@dataclass(frozen=True)
class Job:
    """How to start ranks.

    Attributes
    ----------
    ranks : int
    server : str
        The socket of the process of which they are forks.
    """

    ranks: int
    server: str

    def start(self, *words: object) -> isolate.Outcome:
        """Run ``cusp`` with words, or a case: its class, seed, number and folder."""
        line = [*mpirun.command(self.ranks), sys.executable, "-I", "-S", forked.__file__, self.server, *map(str, words)]
        process = subprocess.Popen(
            line, env=mpirun.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        began, code = time.monotonic(), None
        try:
            _, text = process.communicate(timeout=LIMIT)
            code = process.returncode
        except subprocess.TimeoutExpired:
            mpirun.kill_session(process)
            text = ""
        if code not in (None, 0, 1, 2):
            code = -1  # a signal has ended a rank, and launchers say so in different ways
        text = spawn.OF_LAUNCHERS.sub("", text).strip()
        kind = isolate.kind_of(code, text)
        return isolate.Outcome(kind, text[-600:], time.monotonic() - began)


@contextlib.contextmanager
def forks(ranks: int, folder: Path, number: int) -> Iterator[Job]:
    """The process of which all ranks are forks; a later one has loaded what the jobs of earlier ones compiled."""
    path = str(folder / f"socket{number}")
    with serving(path, "tests.fuzz.together"):
        yield Job(ranks, path)


def serve(path: str) -> NoReturn:
    """Load what programs load, and be the process of which all ranks are forks, or such a fork."""
    rc = importlib.import_module("mpi4py").rc
    rc.initialize, rc.finalize = False, True
    command = importlib.import_module("cusp.commands.command")
    for name in command.COMMANDS:
        command.load(name)
    sys.modules["ranks"] = ModuleType("ranks")  # asks MPI for its size, and makes no inputs
    classes, programs = importlib.import_module("fuzz.classes"), importlib.import_module("fuzz.programs")
    load_code()
    name, *words = forked.serve(path)
    rc.initialize = True
    from cusp.runtime import mpi, signals

    signals.start_program()
    signals.end_all_on_error()
    with mpi._variables(mpi.YIELDING):
        mpi._start()
    isolate.limit_memory()
    if name == "cusp":
        sys.exit(programs.command("cusp", *words))
    seed, number, folder = words
    sys.exit(classes.case_of(name, int(seed), int(number)).run(Path(folder)))


if __name__ == "__main__":
    serve(sys.argv[1])
