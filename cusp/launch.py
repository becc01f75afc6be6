"""Start and end a program on every rank: the check of the launcher, errors, exit codes.

A program ends with ``if __name__ == "__main__": run_main(main)``; ``main(comm, argv)`` returns its exit code.
"""

import argparse
import contextlib
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import NamedTuple, NoReturn

from cusp.errors import InputError, check_same, shortened, together
from cusp.runtime import debugging, early, leftovers, progress, signals, watchdog
from cusp.runtime.mpi import MPI
from cusp.runtime.signals import INTERRUPTED, LAUNCHERS, local_ranks, prefixed

GRACE = 2.0  # seconds that a failing rank waits for the others to come to the end by themselves
TIMES = {"": 1, "s": 1, "min": 60, "h": 3600, "d": 86_400}
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class Ending(NamedTuple):
    """How a rank leaves ``main``: its exit code, what the user should read, and whether it left in the middle."""

    code: int
    message: str = ""
    early: bool = False


def run_main(main: Callable[[MPI.Intracomm, list[str]], int]) -> NoReturn:
    """Run ``main(comm, argv)`` on every rank and exit, on all of them with the same code. Collective.

    An InputError prints its message once and exits with 1. Any other exception prints its traceback and ends the
    whole job at once. A rank that stops with an error while others wait for it ends the job too.
    """
    signals.start_program()
    comm = MPI.COMM_WORLD
    stop_if_ranks_are_apart(comm.size, os.environ)
    early.loaded()
    if early.is_program() or sys.argv[0].startswith("cusp "):
        _end_after(_timeout_of(sys.argv[1:]))
    ending_comm = comm.Dup()  # so that no message of the program is mistaken for one of ours
    warnings.showwarning = lambda message, *_: progress.error(f"warning: {message}") if comm.rank == 0 else None
    if comm.rank % local_ranks() == 0:
        with contextlib.suppress(OSError):  # there may be no folder for temporary files at all
            leftovers.sweep(tempfile.gettempdir())
            leftovers.sweep_of_mpi("/dev/shm", tempfile.gettempdir())
    try:
        try:
            ending = Ending(main(comm, sys.argv[1:]) or 0)
        finally:
            progress.stop()
        debugging.agree_on_end(comm)
        flush_output()
    except InputError as error:
        ending = Ending(1, f"error: {error}")
    except MemoryError as error:  # CuPy's are such, too
        ending = Ending(1, f"error: {out_of_memory(comm.rank, error)}")
    except SystemExit as leaving:  # as Python does: None is 0, what is no number is a message
        code, text = (leaving.code or 0, "") if isinstance(leaving.code, int | None) else (1, str(leaving.code))
        ending = Ending(code, text, early=True)
    except KeyboardInterrupt:
        end_job(INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has left, as in "| head"
        discard_output()
        end_job(1)
    except Exception:
        progress.error(prefixed(traceback.format_exc()))
        time.sleep(0.3)  # other ranks that fail at the same moment get to say why
        end_job(1)
    code = end_together(ending_comm, ending)
    signals.ignore_signals()
    sys.exit(code)


def out_of_memory(rank: int, error: MemoryError) -> str:
    """What a user can do about it, after what was to be allocated."""
    what = " ".join(str(error).split()) or "an array could not be allocated"
    return (
        f"rank {rank} is out of memory: {what}; with --memory-limit a graph file may be larger than the memory of a "
        "host or of a GPU, and more ranks need less each"
    )


def program(module: str) -> str:
    """What a user types to start the program of a module: ``cusp NAME``, which that command leaves in ``sys.argv``."""
    return sys.argv[0] if sys.argv[0].startswith("cusp ") else f"python -m {module}"


def num_bytes(text: str) -> int:
    """Read a number of bytes such as ``500M`` or ``2G`` (powers of 1024)."""
    digits = text.upper().removesuffix("B").removesuffix("I")
    unit = digits[-1:] if digits[-1:] in UNITS else ""
    count = float(digits.removesuffix(unit))
    if not 0 < count * UNITS[unit] < 2**60:
        raise ValueError(text)
    return int(count * UNITS[unit])


def num_seconds(text: str) -> float:
    """Read a time above 0, in seconds: ``90``, ``90s``, ``1.5min``, ``2h`` or ``1d``."""
    found = re.fullmatch(r"(\d+\.?\d*(?:e[-+]?\d+)?|\.\d+) ?(s|min|h|d|)", text)
    seconds = float(found[1]) * TIMES[found[2]] if found else 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{shortened(text)}: expected a time above 0, such as 90, 30s, 5min or 2h")
    return seconds


num_bytes.__name__ = "number of bytes"  # what argparse calls it in its message


class Parser(argparse.ArgumentParser):
    """A command line that says in one line what is wrong with it, and what was probably meant."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        known = [option for action in self._actions for option in action.option_strings]
        wrong = [word.partition("=")[0].strip(":,") for word in message.split() if word.startswith("--")]
        meant = [near for word in wrong if word not in known for near in get_close_matches(word, known, 1)]
        advice = f"; did you mean {meant[0]}?" if meant else ""
        self.exit(2, f"error: {shortened(message)}{advice} ({self.prog} --help lists the options)\n")


def parser_for(module: str, text: str | None) -> Parser:
    """A command line that the docstring of a program's module describes, with its examples as a user types them."""
    shown = (text or "").replace("::\n\n", "").replace(f"python -m {module}", program(module))
    return Parser(prog=program(module), description=shown, formatter_class=argparse.RawTextHelpFormatter)


def check_commands(comm: MPI.Intracomm, argv: list[str]) -> None:
    """Raise OptionError on every rank if the launcher started ranks with different commands. Collective."""
    check_same(comm, "commands", " ".join([os.path.basename(sys.argv[0]), *map(str, argv)]))


def parse_together(comm: MPI.Intracomm, parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """Parse the command line on rank 0 for all, so that help and usage errors are printed once. Collective.

    After ``--help`` or a usage error every rank raises SystemExit with argparse's code (0 or 2). An OptionError says
    that a rank was started with other options than rank 0.
    """
    check_commands(comm, argv)
    options: argparse.Namespace | None = None
    code: int | str | None = None
    with together(comm):
        if comm.rank == 0:
            try:
                options = parser.parse_args(argv)
            except SystemExit as leaving:
                code = leaving.code
    options, code = comm.bcast((options, code), root=0)
    if options is None:
        raise SystemExit(code)
    _end_after(getattr(options, "timeout", None))
    debugging.start(getattr(options, "debug", False))
    if comm.rank == 0:
        progress.start(getattr(options, "log", False))
    return options


def _timeout_of(argv: list[str]) -> float | None:
    """What ``--timeout`` of our programs says, before any rank waits for others; what is wrong with it comes later."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    parser.add_argument("--timeout", type=num_seconds)
    with contextlib.suppress(argparse.ArgumentError):
        return parser.parse_known_args(argv)[0].timeout  # type: ignore[no-any-return]
    return None


def _end_after(seconds: float | None) -> None:
    if seconds:
        watchdog.watch(seconds, lambda: end_job(1))


def stop_if_ranks_are_apart(size: int, environ: Mapping[str, str]) -> None:
    """Exit if the launcher of another MPI library started N processes that do not know each other."""
    launched = [(environ[count], environ.get(rank, "0")) for count, rank in LAUNCHERS if count in environ]
    if not launched or launched[0][0] == str(size):
        return
    announced, rank = launched[0]
    if rank == "0":
        library = MPI.Get_library_version().replace("\0", "").strip().splitlines()[0]
        progress.error(
            f"error: the launcher started {announced} ranks, but MPI sees {size}: they are of different "
            f"MPI libraries.\n"
            f"  mpirun: {shutil.which('mpirun') or 'not in PATH'}\n"
            f"  loaded: {library}\n"
            f"  python: {sys.executable}\n"
            f"Use the mpirun of the loaded library (with the mpich extra: "
            f"{os.path.join(os.path.dirname(sys.executable), 'mpirun')}), or name the launcher's library "
            f"in MPI4PY_LIBMPI=/path/to/libmpi.so.\n"
        )
    sys.exit(1)


def end_together(comm: MPI.Intracomm, ending: Ending) -> int:
    """Wait for every rank; rank 0 prints the first failure's message; return its code. Collective.

    A rank that failed, or left by ``sys.exit``, gives the others GRACE seconds: they may be waiting for it inside
    ``main`` for ever.
    """
    watchdog.phase(watchdog.END)
    arrived = comm.Ibarrier()
    limit = time.monotonic() + GRACE + 0.1 * min(comm.rank, 10)  # the lowest rank speaks first
    while not arrived.Test():
        if (ending.code or ending.early) and time.monotonic() > limit:
            progress.error(
                prefixed(ending.message or f"left with exit code {ending.code}, and other ranks wait for it")
            )
            end_job(ending.code or 1)
        time.sleep(0.0005)
    endings = comm.allgather(ending)
    first = next((other for other in endings if other.code), Ending(0))
    if comm.rank == 0 and first.message:
        progress.error(first.message)
    return first.code


def end_job(code: int) -> NoReturn:
    """End every rank now, without waiting for any."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    signals.leave(code)


def flush_output() -> None:
    """Write what is left of the output; an error of the disk is the user's to mend."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise InputError(f"standard output: cannot be written: {error.strerror}") from None


def discard_output() -> None:
    """Send what is still to be printed nowhere, or Python would fail at its very end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
