"""A rank without progress reports its position; with ``--timeout`` it also ends the job."""

import contextlib
import linecache
import sys
import threading
import time
from collections.abc import Callable, Mapping
from itertools import islice
from types import FrameType
from typing import Any

from cusp.errors import ROOT, caller
from cusp.runtime import progress
from cusp.runtime.signals import prefixed

WAITS = 60.0  # seconds after which a rank that waits for others says so
SPEAK = 1.5  # seconds in which other ranks can say where they are, too
COLLECTIVE = ("Barrier", "Dup", "Free", "Split", "Split_type", "allgather", "allreduce", "bcast", "exscan", "recv",
              "Allgather", "Allgatherv", "Allreduce", "Alltoall", "Alltoallv")  # fmt: skip
# Between such a call and who wants to know something of the others.
BETWEEN = ("cusp/errors.py", "cusp/runtime/exchange.py", "cusp/runtime/timeline.py", "cusp/program/traced.py",
           contextlib.__file__)  # fmt: skip
VAIN = 3  # rounds in which nothing changed, after which exchanges are no progress

END = "end"


class _Progress:
    """How far this rank has come: the phase it is in, the exchanges and chunks since the start, and rounds in vain.

    And whether its end is certain if it comes no further.
    """

    phase, steps, vain, limited = "start", 0, 0, False


def phase(name: str) -> None:
    """Say what begins now."""
    _Progress.phase, _Progress.vain = name, 0
    _Progress.steps += 1


def step() -> None:
    """Say that this rank has come further. Behind many rounds in which nothing changed, it has not."""
    _Progress.steps += _Progress.vain < VAIN


def end_round(facts: Mapping[str, Any]) -> None:
    """Say that a round has ended, and how much changed in it: nothing if all facts are 0, or no numbers."""
    changed = not facts or any(fact != 0 and fact == fact for fact in facts.values())
    _Progress.vain = 0 if changed else _Progress.vain + 1


def watch(seconds: float | None = None, end: Callable[[], object] | None = None) -> None:
    """Watch the main thread from another one, from now on.

    With ``seconds``, call ``end`` once it has made no progress for so long; only the first such call counts. Otherwise
    say, once each time, where it waits for other ranks so long that they may never come.
    """
    if seconds and _Progress.limited:
        return
    _Progress.limited |= bool(seconds)
    threading.Thread(target=_watch, args=(seconds, end), daemon=True).start()


def _watch(seconds: float | None, end: Callable[[], object] | None) -> None:
    seen, since = -1, 0.0
    while True:
        limit = seconds or WAITS
        pause = min(1.0, limit / 4)
        before = time.monotonic()
        time.sleep(pause)
        now = time.monotonic()
        stopped = now - before > pause + 5  # this process itself was stopped and goes on
        if _Progress.steps != seen or stopped:
            seen, since = _Progress.steps, now
        elif now - since >= limit and end:
            progress.stop()
            frame, line = _main_thread(), "?"
            if frame:
                line = f"{_file(frame)}:{frame.f_lineno} ({frame.f_code.co_name}), called from {caller(frame)}"
            where = f'in the phase "{_Progress.phase}", after {_Progress.steps} steps, at {line}'
            progress.error(prefixed(f"error: --timeout {limit:g}: no progress for that many seconds {where}"))
            time.sleep(SPEAK)
            end()
        elif now - since >= limit and (where := _waits()):
            since = float("inf")
            advice = "all ranks must come there; --debug shows their calls, --timeout SECONDS ends the job"
            progress.error(prefixed(f"note: has waited {limit:g} s for other ranks {where}: {advice}"))


def _main_thread() -> FrameType | None:
    return sys._current_frames().get(threading.main_thread().ident or 0)


def _waits() -> str:
    """Where the main thread waits for other ranks, if it does."""
    if _Progress.phase == END:
        return "at the end of the program"
    frame, waits = _main_thread(), False
    while frame and _file(frame) in BETWEEN:
        waits |= frame.f_code.co_name == "pauses" or _called(frame) in COLLECTIVE
        frame = frame.f_back
    sync = frame
    while sync and (_file(sync) != "gluon/sync.py" or sync.f_code.co_name.startswith(("_", "<"))):
        sync = sync.f_back
    if sync:
        return f"in sync.{sync.f_code.co_name} at {caller(sync)}"
    if not frame or not (waits or _called(frame) in (*COLLECTIVE, "MPI_Init_thread")):
        return ""
    place, user = f"{_file(frame)}:{frame.f_lineno}", caller(frame)
    return f"in {frame.f_code.co_name} at {place}{f', called from {user}' if user not in ('', place) else ''}"


def _called(frame: FrameType) -> str:
    """The name of the function that a frame calls now."""
    line, _, column, _ = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    text = linecache.getline(frame.f_code.co_filename, line or 0).encode()[column or 0 :].decode(errors="replace")
    return text.partition("(")[0].rpartition(".")[2].strip()


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename.removeprefix(f"{ROOT}/")
