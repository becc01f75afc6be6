"""What several ranks or workers of the tests need at the same time, one of them compiles; the others wait and load it.

On cores that all have work, so much less of it. Not for users: their ranks have a core each, so nobody would be done
sooner, and one that is stopped while it compiles would hold up all.
"""

import contextlib
import fcntl
import hashlib
import os
import threading
import time
from typing import Any

from numba.core.dispatcher import Dispatcher

from cusp.runtime.compiled_code import CodeFiles

PATIENCE = 60.0  # seconds for which one waits for another
_load, _compile = CodeFiles.load, Dispatcher.compile
_mine = threading.local()  # what this thread compiles, the outermost function first: open files, locked


def install() -> None:
    """From now on, in this process."""
    CodeFiles.load, Dispatcher.compile = load, compile_and_release  # type: ignore[method-assign]


def load(files: CodeFiles, key: Any) -> Any:
    """As `CodeFiles.load`; where there is nothing and nobody else compiles it, it is ours to compile."""
    found = _load(files, key)
    if found is not None or not hasattr(_mine, "held"):
        return found
    name = hashlib.sha256(f"{files._index_path}{files._source_stamp}{key}".encode()).hexdigest()[:24]
    with contextlib.suppress(OSError):
        file = os.open(os.path.join(files._cache_path, f"{name}.compiles"), os.O_RDWR | os.O_CREAT, 0o600)
        _mine.held.append(file)
        if take(file):
            return _load(files, key)
    return None


def take(file: int) -> bool:
    """Lock a file; whether somebody else had it before."""
    limit, waited = time.monotonic() + PATIENCE, False
    while time.monotonic() < limit:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return waited
        waited = True
        time.sleep(0.01)
    return waited


def compile_and_release(dispatcher: Dispatcher, types: Any) -> Any:
    """As `Dispatcher.compile`; then, also after an error, others may load what is there."""
    held = _mine.__dict__.setdefault("held", [])
    before = len(held)
    try:
        return _compile(dispatcher, types)
    finally:
        while len(held) > before:
            os.close(held.pop())
