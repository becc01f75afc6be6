"""What keeps a run of several ranks from hanging: they agree after each test, and a test has a time limit."""

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple, NoReturn

from cusp.runtime.mpi import MPI

COMM = MPI.COMM_WORLD
GRACE = float(os.environ.get("CUSP_TEST_GRACE", "5"))
LIMIT = float(os.environ.get("CUSP_TEST_TIMEOUT", "120"))
PASSED = "passed"
STAGGER = 0.3  # seconds between the reports of two ranks, so that their lines do not mix

_private = COMM.Dup() if COMM.size > 1 else COMM  # no message of a test is taken for one of ours
_stderr: IO[str] = sys.stderr


class Outcome(NamedTuple):
    """How a step went on one rank: passed, failed, skipped ... and the report to show."""

    word: str
    report: object = None


def use_real_stderr() -> None:
    """Keep the stderr of the process. Call while pytest does not capture it."""
    global _stderr
    _stderr = os.fdopen(os.dup(2), "w")


def agree(name: str, mine: Outcome) -> list[Outcome]:
    """Every rank's outcome of one step of the test ``name``. Collective.

    A rank whose step did not pass waits GRACE seconds for the others: they may be in a collective call
    that it never reached. Then it shows its own report and ends the job.
    """
    arrived = _private.Ibarrier()
    limit = time.monotonic() + GRACE + STAGGER * COMM.rank
    polls = 0
    while not arrived.Test():
        if mine.word != PASSED and time.monotonic() > limit:
            end_job(f"{mine.word.upper()} {name}; the other ranks are stuck in it", str(mine.report))
        polls += 1
        time.sleep(0 if polls < 50 else 0.0005)
    return _private.allgather(mine)


def tell(message: object) -> object:
    """Rank 0's message on every rank. Collective, on the same private communicator as `agree`."""
    return _private.bcast(message, root=0)


def end_job(headline: str, report: str) -> NoReturn:
    """Show why on the real stderr and end every rank."""
    _stderr.write(f"\n[rank {COMM.rank} of {COMM.size}] {headline}\n{report}\n")
    _stderr.flush()
    time.sleep(0.2)  # the launcher forwards what it has read so far
    COMM.Abort(70)
    os._exit(70)


@contextmanager
def limited(name: str, seconds: float) -> Iterator[None]:
    """Show every rank's stack and end the job when the block takes longer than ``seconds``.

    The stacks are written and the process is ended by C code, so a loop that never gives Python a
    chance is ended as well.
    """
    mine = seconds + STAGGER * COMM.rank
    headline = f"\n[rank {COMM.rank} of {COMM.size}] {name} takes longer than {seconds:g} s\n"
    title = threading.Timer(mine - STAGGER / 3, lambda: (_stderr.write(headline), _stderr.flush()))
    title.daemon = True
    title.start()
    faulthandler.dump_traceback_later(mine, file=_stderr)
    signal.setitimer(signal.ITIMER_REAL, seconds + STAGGER * COMM.size + 1)  # SIGALRM ends the process
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        title.cancel()
