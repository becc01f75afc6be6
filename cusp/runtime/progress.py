"""The progress of a job: a line on a terminal or, with ``--log``, timestamped lines.

A thread of rank 0 shows it, so whoever works only says what it has come to, and looks at no clock. What goes into a
pipe gets nothing, unless asked for; the pipe between a rank and its launcher does not count.
"""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

AFTER, EVERY = 2.0, 0.5  # seconds until something is shown on a terminal, and between two looks
LOGGED_EVERY = 10.0  # seconds between two lines about the same
ERASE = "\r\033[K"
LAUNCHERS = ("mpirun", "mpiexec", "orterun", "prterun")  # how the names of their processes begin


class _Now:
    """The current activity and its progress."""

    text, began, rounds = "", 0.0, 0
    facts: dict[str, Any] = {}
    done, of, before, what = 0, 0, 0, ""
    line = ""  # that is on the terminal
    logged = 0.0  # when the last line about it was written
    log = running = False
    out: TextIO | None = None  # where it is shown
    lock = threading.RLock()  # a signal may come while the main thread has it


def start(log: bool) -> None:
    """Show from now on what this process does: as lines with the time, or on standard error if that is a terminal."""
    out = sys.stderr if log else _terminal()
    if not _Now.running and out is not None:
        _Now.log, _Now.running, _Now.out = log, True, out
        threading.Thread(target=_show, daemon=True).start()


def stop() -> None:
    """Show nothing any more, so that what is printed last, such as an error, has a line of its own."""
    with _Now.lock:
        _erase()
        _Now.running, _Now.text = False, ""


def error(text: str) -> None:
    """Write lines to standard error, in the place of the line that is shown, which comes back below them."""
    with _Now.lock:
        _erase()
        if not _Now.running and not sys.stderr.isatty() and (terminal := _terminal()):
            terminal.write(ERASE)  # that of rank 0, on the terminal of the launcher
            terminal.close()
        sys.stderr.write(text.rstrip() + "\n")
        sys.stderr.flush()


def hint(text: str) -> None:
    """Show a person who watches what would be better."""
    if _Now.running:
        with _Now.lock:
            _erase()
            _write(f"hint: {text}") if _Now.log else _put(f"hint: {text}\n")


def begin(text: str) -> None:
    """Say what begins now; nothing, before a result is printed."""
    with _Now.lock:
        _erase()
        if _Now.logged:
            _write(_line() + ", done")
        _Now.text, _Now.began, _Now.logged = text, time.monotonic(), 0.0
        _Now.rounds, _Now.facts = 0, {}
        _Now.done, _Now.of, _Now.before, _Now.what = 0, 0, 0, ""


def update(done: int = 0, of: int = 0, what: str = "", before: int = 0, **facts: Any) -> None:
    """Say that a round has ended, with facts about it; and how much of all is done, if that is known.

    ``what`` is the name of one of all, such as a source; ``before`` says how many a checkpoint had when this run began.
    """
    _Now.rounds += 1
    _Now.facts = facts
    if of:
        _Now.done, _Now.of, _Now.what, _Now.before = done, of, what, before


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
        words.append(f"{_Now.what} {_Now.done:,} of {_Now.of:,}".lstrip())
        if _Now.before < _Now.done < _Now.of:
            words.append(f"about {seconds / (_Now.done - _Now.before) * (_Now.of - _Now.done):.0f} s left")
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
    assert _Now.out is not None
    try:
        _Now.out.write(text)
        _Now.out.flush()
    except OSError:  # nobody reads it any more
        _Now.text = ""


def _terminal() -> TextIO | None:
    """Standard error, or that of the launcher of this rank on this host, if it is a terminal."""
    if sys.stderr.isatty():
        return sys.stderr
    process = os.getppid()
    try:
        while process > 1:
            name, _, rest = Path(f"/proc/{process}/stat").read_text().partition("(")[2].rpartition(")")
            if name.startswith(LAUNCHERS):
                path = os.readlink(f"/proc/{process}/fd/2")
                return open(path, "w") if path.startswith(("/dev/pts/", "/dev/tty")) else None
            process = int(rest.split()[1])
    except OSError:  # another user's
        pass
    return None
