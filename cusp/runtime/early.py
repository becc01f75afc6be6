"""The first thing that a program of ours does: a signal that comes while modules load is kept until they can act on it.

``python -m cusp...`` and the command ``cusp`` are such programs; who only imports us is not. They look for no garbage
while modules load, a tenth of that time, nor later in what has been loaded.
"""

import gc
import signal
import sys

heard: list[int] = []
loading = False


def is_program() -> bool:
    """Whether Python was started with ``-m cusp...``, or as the command ``cusp``."""
    options = sys.orig_argv[1:]
    module = options[options.index("-m") + 1] if "-m" in options[:-1] else sys.argv[0].rpartition("/")[2]
    return module.split(".")[0] == "cusp"


def listen() -> None:
    """Keep SIGINT and SIGTERM from now on, unless somebody else has a say about them."""
    global loading
    loading = loading or gc.isenabled()
    gc.disable()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, note)


def note(number: int, frame: object) -> None:
    """A signal has come."""
    heard.append(number)


def loaded() -> None:
    """What the program needs is there."""
    global loading
    if loading:
        gc.freeze()
        gc.enable()
    loading = False
