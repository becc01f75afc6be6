"""A rank without progress reports its position; with ``--timeout`` it also ends the job."""

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from cusp.errors import ROOT, caller
from cusp.runtime import progress
from cusp.runtime.signals import prefixed

WAITS = 60.0  # seconds after which a rank that waits for others says so
SPEAK = 1.5  # seconds in which other ranks can say where they are, too


END = "end"


class _Progress:
    """How far this rank has come: the phase it is in, and the exchanges and chunks since the start."""

    phase, steps = "start", 0


def phase(name: str) -> None:
    """Say what begins now."""
    _Progress.phase = name
    _Progress.steps += 1


def step() -> None:
    """Say that this rank has come further."""
    _Progress.steps += 1


def watch(seconds: float | None = None, end: Callable[[], object] | None = None) -> None:
    """Watch the main thread from another one, from now on.

    With ``seconds``, call ``end`` once it has made no progress for so long. Otherwise say, once each time, where it
    waits for other ranks so long that they may never come.
    """
    threading.Thread(target=_watch, args=(seconds or WAITS, end), daemon=True).start()


def _watch(limit: float, end: Callable[[], object] | None) -> None:
    pause = min(1.0, limit / 4)
    seen, since = -1, 0.0
    while True:
        before = time.monotonic()
        time.sleep(pause)
        now = time.monotonic()
        stopped = now - before > pause + 5  # this process itself was stopped and goes on
        if _Progress.steps != seen or stopped:
            seen, since = _Progress.steps, now
        elif now - since >= limit and end:
            progress.stop()
            progress.error(prefixed(f"error: --timeout {limit:g}: no progress for that many seconds {_where()}"))
            time.sleep(SPEAK)
            end()
        elif now - since >= limit:
            since = float("inf")
            if where := _waits():
                advice = "all ranks must call it; --debug shows the calls, --timeout SECONDS ends the job"
                progress.error(prefixed(f"note: has waited {limit:g} s for other ranks {where}: {advice}"))


def _main_thread() -> FrameType | None:
    return sys._current_frames().get(threading.main_thread().ident or 0)


def _waits() -> str:
    """Where the main thread waits for other ranks, if it does."""
    if _Progress.phase == END:
        return "at the end of the program"
    inner = _main_thread()
    while inner and inner.f_code.co_filename != f"{ROOT}/gluon/sync.py":
        inner = inner.f_back
    while inner and inner.f_code.co_name.startswith("_"):
        inner = inner.f_back
    return f"in sync.{inner.f_code.co_name} at {caller(inner)}" if inner else ""


def _where() -> str:
    """Phase, steps and the line of Python that the main thread is at."""
    frame, line = _main_thread(), "?"
    if frame:
        name = frame.f_code.co_filename.removeprefix(f"{ROOT}/")
        line = f"{name}:{frame.f_lineno} ({frame.f_code.co_name}), called from {caller(frame)}"
    return f'in the phase "{_Progress.phase}", after {_Progress.steps} steps, at {line}'
