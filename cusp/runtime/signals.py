"""Ending a process by a signal: at once, at any point, without a traceback, and without leaving others waiting."""

import contextlib
import fcntl
import importlib
import os
import resource
import signal
import stat
import sys
import termios
import threading
import time
from collections.abc import Callable
from itertools import product
from types import TracebackType
from typing import NoReturn

from cusp.errors import InputError, caller
from cusp.runtime import early
from cusp.runtime.leftovers import remove_unfinished

LAUNCHERS = (  # (number of ranks, rank) as a launcher writes them into the environment, first match counts
    ("PMI_SIZE", "PMI_RANK"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
)
LEAST_SPACE, SPACE_OF_A_CORE, MOST_CORES = 10**9, 4 * 10**7, 64  # bytes of addresses: libraries, and their threads
PATIENCE = 1.0  # seconds that MPI gets to end the job; and within which a signal that comes again is the same one
LOOK = 0.01  # seconds from one look whether the launcher has read to the next
LONGEST_ROUND = 20.0  # seconds that a run gets to come to the end of its round: schedulers wait for 30
INTERRUPTED = 128 + signal.SIGINT

_ending = threading.Lock()


class _Round:
    """Whether a signal waits for the end of a round, which one has come, and whether another one ends at once."""

    awaited, number, again = False, 0, False


def launched() -> tuple[int, int]:
    """Number of ranks and rank, as the launcher says before MPI does; (1, 0) without one."""
    for size, rank in LAUNCHERS:
        if os.environ.get(size, "").isdecimal():
            return int(os.environ[size]), int(os.environ.get(rank, "0"))
    return 1, 0


def local_ranks() -> int:
    """Number of ranks on this host, according to MPICH or Open MPI."""
    return int(os.environ.get("MPI_LOCALNRANKS") or os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") or 1)


def share_cores() -> bool:
    """Whether this host has more ranks than this process may use cores."""
    return local_ranks() > len(os.sched_getaffinity(0))


def prefixed(text: str) -> str:
    """The text with its rank before each line, so that the lines of several ranks can be told apart."""
    size, rank = launched()
    before = f"[rank {rank} of {size}] " if size > 1 else ""
    return "".join(f"{before}{line}\n" for line in text.rstrip().splitlines())


def start_program() -> None:
    """From now on this process is one of our programs: errors and signals end it, and all ranks, in one line.

    Whoever only imports us keeps the ways of Python.
    """
    _open_standard_files()
    _check_address_space()
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _end_all if launched()[0] > 1 else _tell
    end_on_signals()


def end_all_on_error() -> None:
    """An error that nobody catches ends all ranks from now on: the others would wait for this one."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _end_all


def end_all_after_error() -> None:
    """At the end of Python: if an error was not caught, end all ranks, which may wait for this one in MPI_Init."""
    if getattr(sys, "last_value", None) is not None:
        leave(1)


def _open_standard_files() -> None:
    """Open those of input, output and errors that are closed: the next file opened would be taken for them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))


def _check_address_space() -> None:
    """End in one line if the libraries cannot be loaded: where they get no memory, they abort, or try for ever."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    needed = LEAST_SPACE + SPACE_OF_A_CORE * min(len(os.sched_getaffinity(0)), MOST_CORES)
    if limit == resource.RLIM_INFINITY or limit >= needed:
        return
    if launched()[1] > 0:
        time.sleep(0.5)  # if all ranks have so little, rank 0 speaks for them
    text = f"error: a process may have {limit / 1e6:,.0f} MB of addresses (ulimit -v), and libraries need "
    os.write(2, prefixed(f"{text}{needed / 1e6:,.0f} MB; raise that limit, and use --memory-limit for graphs").encode())
    leave(1)


def end_on_signals() -> None:
    """SIGINT and SIGTERM end the process even if it waits for other ranks or runs compiled code."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if not {*handlers.values()} <= {signal.SIG_DFL, signal.default_int_handler, signal.SIG_IGN, early.note}:
        return  # somebody else's, or already ours
    for number, handler in handlers.items():
        if handler != signal.SIG_IGN:  # as SIGINT is in a job in the background
            signal.signal(number, lambda number, frame: None if _Round.awaited else _end_by(number))
    heard, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)  # Python's handlers wait for the main thread, this does not
    threading.Thread(target=_wait, args=(heard,), daemon=True).start()
    if early.heard:
        _end_by(early.heard[0])


def ignore_signals() -> None:
    """Let a program whose work is done and whose exit code is known come to its end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # Python would end by the signal's default once it takes itself apart


def asked_to_end() -> int:
    """The signal that has asked this process to end, or 0; for who asks at the end of every round, and leaves then.

    From the first call on, signals wait for that: until :func:`end_at_once`, for ``LONGEST_ROUND``, or until one comes
    again.
    """
    _Round.awaited = True
    return _Round.number


def end_at_once() -> None:
    """Let signals end the process at once again; also one that has waited."""
    _Round.awaited = False
    if _Round.number:
        _end_by(_Round.number)


def leave(code: int) -> NoReturn:
    """End this process and, if MPI runs, all ranks, at once and without a word."""
    remove_unfinished()
    if launched()[0] > 1:
        _until_read()
    mpi = sys.modules.get("mpi4py.MPI")
    with contextlib.suppress(AttributeError, OSError):  # it may be half imported
        if mpi is None or not getattr(mpi, "Is_initialized", bool)():
            if hydra := hydra_socket():
                os.write(hydra, b"cmd=abort exitcode=%d\n" % code)
        elif not mpi.Is_finalized() and mpi.COMM_WORLD.size > 1:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # MPI has much to say
            threading.Timer(PATIENCE, os._exit, (code,)).start()  # and may be in a state where it cannot end
            mpi.COMM_WORLD.Abort(code)
    os._exit(code)


def _until_read() -> None:
    """Wait until the launcher has read what this rank has written: once it knows of the end, it no longer does."""
    unread = bytearray(4)
    for number, _ in product((1, 2), range(round(PATIENCE / LOOK))):
        with contextlib.suppress(OSError):  # no pipe
            fcntl.ioctl(number, termios.FIONREAD, unread)
            if stat.S_ISFIFO(os.fstat(number).st_mode) and int.from_bytes(unread, sys.byteorder):
                time.sleep(LOOK)
    time.sleep(0.05)  # and passed it on


def hydra_socket() -> int | None:
    """The socket to MPICH's launcher, which lets ranks wait for ever for one that left before MPI started.

    Unless it gets a line of the protocol PMI-1, which the library speaks there once it starts.
    """
    number = os.environ.get("PMI_FD", "")
    with contextlib.suppress(OSError, ValueError):
        if "MPI_LOCALNRANKS" in os.environ and stat.S_ISSOCK(os.fstat(int(number)).st_mode):
            return int(number)
    return None


def _wait(heard: int) -> None:
    while number := os.read(heard, 1):
        if number[0] not in (signal.SIGINT, signal.SIGTERM):
            continue
        if not _Round.awaited or _Round.again:
            _end_by(number[0])
        elif not _Round.number:
            _Round.number = number[0]
            _later(PATIENCE, setattr, _Round, "again", True)
            _later(LONGEST_ROUND, _end_by, number[0])


def _later(seconds: float, call: Callable[..., object], *arguments: object) -> None:
    """Call a function from another thread, unless the process has come to its end before."""
    timer = threading.Timer(seconds, call, arguments)
    timer.daemon = True
    timer.start()


def _end_by(number: int) -> None:
    if not _ending.acquire(blocking=False):
        time.sleep(PATIENCE)  # the main thread and the one that waits both hear of a signal: one acts
    elif number == signal.SIGTERM:
        if launched()[1] > 0:
            time.sleep(0.5)  # if all ranks get it, rank 0 speaks for them
        with contextlib.suppress(OSError):
            os.write(2, prefixed("error: ended by SIGTERM").encode())
    leave(128 + number)


def _end_all(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> NoReturn:
    """End the job after an error that nobody caught: the other ranks would wait for this one."""
    if issubclass(kind, KeyboardInterrupt):
        leave(INTERRUPTED)
    if issubclass(kind, InputError) and launched()[1] > 0:
        time.sleep(1.5)  # if all ranks have made the same mistake, rank 0 speaks for them
    with contextlib.suppress(OSError):
        _tell(kind, error, trace)
    if hydra_socket() is None:
        with contextlib.suppress(ImportError, RuntimeError):  # where there is no MPI, nobody waits
            importlib.import_module("mpi4py.MPI")  # if it was not imported yet, the others wait there for this rank
    leave(1)


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write the traceback of an error; of one that the user can correct, a line."""
    import traceback  # takes time, which programs without errors save

    text = "".join(traceback.format_exception(kind, error, trace))
    if issubclass(kind, InputError):
        while trace and trace.tb_next:
            trace = trace.tb_next
        text = prefixed(f"error: {error} ({caller(trace and trace.tb_frame)})")
    sys.stderr.write(text)  # at once
    sys.stderr.flush()
