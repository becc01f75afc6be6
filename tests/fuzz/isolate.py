"""Runs a program in a process of its own and says how it ended.

The process is forked after everything is imported and compiled, so a case takes milliseconds, and a crash, a hang or
a runaway allocation of one case does not touch the next.
"""

import contextlib
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

MEMORY = 6 << 30  # bytes beyond the address space of the parent: a case that wants more believes its input too much
LINES = 3  # an error message has at most this many lines
GOOD = ("done", "refused")  # kinds of outcome that are right


class Outcome(NamedTuple):
    """How a case ended.

    Attributes
    ----------
    kind : str
        ``done`` (exit code 0), ``refused`` (one error message, exit code 1 or 2), or what must not happen:
        ``traceback``, ``signal``, ``hang``, ``babble`` (no message, or more than one), ``wrong`` (an answer that an
        oracle does not give).
    text : str
        The end of stderr, or what is wrong.
    """

    kind: str
    text: str
    seconds: float


def attempt(call: Callable[[], int], limit: float) -> Outcome:
    """Run ``call`` in a forked process; it returns an exit code or leaves by SystemExit.

    A process that has computed for more than ``limit`` seconds, or waited for as long, is killed.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            os._exit(_run(call, output.fileno(), errors.fileno()))
        status = _wait(child, limit)
        errors.seek(0)
        text = errors.read().strip()
    return Outcome(
        kind_of(status if status is None else os.waitstatus_to_exitcode(status), text),
        text[-600:],
        time.monotonic() - began,
    )


def _run(call: Callable[[], int], output: int, errors: int) -> int:
    os.dup2(output, 1)
    os.dup2(errors, 2)
    limit_memory()
    code = 70
    with contextlib.suppress(BaseException):
        try:
            code = call()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        except BaseException:
            import traceback

            traceback.print_exc()
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def limit_memory() -> None:
    """Let this process have ``MEMORY`` beyond what it has, and leave no core behind."""
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _wait(child: int, limit: float) -> int | None:
    """Status of the child, or None if it had to be killed."""
    handle, ended = os.pidfd_open(child), select.poll()
    ended.register(handle)
    asleep, late = 0.0, False
    while not (late or ended.poll(500)):
        computed, waits = _seconds(child)
        asleep += 0.5 * waits
        late = max(computed, asleep) > limit
    os.close(handle)
    if late:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return None if late else status


def _seconds(child: int) -> tuple[float, bool]:
    """Seconds that a process has computed, and whether it waits; what others on the machine take does not count.

    It does not wait while only its first thread does, for another that compiles.
    """
    process = Path(f"/proc/{child}")
    states = set()
    for thread in process.glob("task/*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            states.add(_fields(thread)[0])
    fields = _fields(process)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), "R" not in states


def _fields(folder: Path) -> list[str]:
    """What the system tells of a process or thread, from its state on."""
    return (folder / "stat").read_text().rpartition(")")[2].split()


def kind_of(code: int | None, text: str) -> str:
    """The kind of outcome; no code is that of what had to be killed, one below 0 that of a signal."""
    if code is None:
        return "hang"
    if code < 0:
        return "signal"
    if "Traceback (most recent call last)" in text or re.search(r"^Fatal Python error", text, re.M):
        return "traceback"
    if code == 0:
        return "done"
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("warning: ")]
    told = [line.startswith("error: ") for line in lines]
    return "refused" if code in (1, 2) and told[:1] == [True] and sum(told) == 1 and len(lines) <= LINES else "babble"
