"""``--timeout``: a rank that gets no further says where it is and ends the job."""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from cusp.runtime.signals import prefixed

ROOT = Path(__file__).resolve().parents[2]
SPEAK = 1.5  # seconds in which other ranks can say where they are, too


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


def watch(seconds: float, end: Callable[[], object]) -> None:
    """Call ``end`` from another thread once the main thread has made no progress for so long."""
    threading.Thread(target=_watch, args=(seconds, end), daemon=True).start()


def _watch(seconds: float, end: Callable[[], object]) -> None:
    pause = min(1.0, seconds / 4)
    seen, since = -1, 0.0
    while True:
        before = time.monotonic()
        time.sleep(pause)
        now = time.monotonic()
        stopped = now - before > pause + 5  # this process itself was stopped and goes on
        if _Progress.steps != seen or stopped:
            seen, since = _Progress.steps, now
        elif now - since >= seconds:
            sys.stderr.write(prefixed(f"error: --timeout {seconds:g}: no progress for so many seconds {_where()}"))
            sys.stderr.flush()
            time.sleep(SPEAK)
            end()


def _where() -> str:
    """Phase, steps and the line of Python that the main thread is at."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    line = "?"
    if frame:
        name = frame.f_code.co_filename.removeprefix(f"{ROOT}/")
        line = f"{name}:{frame.f_lineno} ({frame.f_code.co_name})"
    return f'in the phase "{_Progress.phase}", after {_Progress.steps} steps, at {line}'
