"""What a job is doing, for a person who waits: a line on a terminal or, with ``--log``, lines with the time.

A thread of rank 0 shows it, so whoever works only says what it has come to, and looks at no clock. What goes into a
pipe gets nothing, unless asked for.
"""

import sys
import threading
import time
from typing import Any

AFTER, EVERY = 2.0, 0.5  # seconds until something is shown on a terminal, and between two looks
LOGGED_EVERY = 10.0  # seconds between two lines about the same
ERASE = "\r\033[K"


class _Now:
    """What is done now, and how far it has come."""

    text, began, rounds = "", 0.0, 0
    facts: dict[str, Any] = {}
    done, of = 0, 0
    line = ""  # that is on the terminal
    logged = 0.0  # when the last line about it was written
    log = running = False
    lock = threading.Lock()


def start(log: bool) -> None:
    """Show from now on what this process does: as lines with the time, or on standard error if that is a terminal."""
    if not _Now.running and (log or sys.stderr.isatty()):
        _Now.log, _Now.running = log, True
        threading.Thread(target=_show, daemon=True).start()


def begin(text: str) -> None:
    """Say what begins now; nothing, before a result is printed."""
    with _Now.lock:
        _erase()
        if _Now.logged:
            _write(_line() + ", done")
        _Now.text, _Now.began, _Now.logged = text, time.monotonic(), 0.0
        _Now.rounds, _Now.facts, _Now.done, _Now.of = 0, {}, 0, 0


def tell(done: int = 0, of: int = 0, **facts: Any) -> None:
    """Say that a round has ended, with facts about it; and how much of all is done, if that is known."""
    _Now.rounds += 1
    _Now.facts = facts
    _Now.done, _Now.of = done or _Now.done, of or _Now.of


def _show() -> None:
    while _Now.running:
        time.sleep(EVERY)
        with _Now.lock:
            now = time.monotonic()
            if not _Now.text or now < _Now.began + AFTER:
                continue
            if not _Now.log:
                _Now.line = _line()
                _put(ERASE + _Now.line)
            elif now >= _Now.logged + LOGGED_EVERY:
                _write(_line())


def _line() -> str:
    seconds = time.monotonic() - _Now.began
    words = [f"{_Now.text}: {seconds:.0f} s"]
    if _Now.of:
        words.append(f"{_Now.done:,} of {_Now.of:,}")
        if 0 < _Now.done < _Now.of:
            words.append(f"about {seconds / _Now.done * (_Now.of - _Now.done):.0f} s left")
    elif _Now.rounds:
        words.append(f"{_Now.rounds:,} round{'s' * (_Now.rounds > 1)}")
    words += [f"{name} {value:,.3g}" if isinstance(value, float) else f"{name} {value:,}"
              for name, value in _Now.facts.items()]  # fmt: skip
    return ", ".join(words)


def _erase() -> None:
    if _Now.line:
        _put(ERASE)
        _Now.line = ""


def _write(text: str) -> None:
    _Now.logged = time.monotonic()
    _put(f"{time.strftime('%H:%M:%S')} {text}\n")


def _put(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:  # nobody reads it any more
        _Now.text = ""
