"""Errors that a user can cause, and the one way to raise them on every rank at once."""

import hashlib
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm as Intracomm
else:
    Intracomm = Any  # for annotations, in modules that are loaded where MPI is not


ROOT = Path(__file__).resolve().parents[1]
FRAMEWORK = (f"{ROOT}/cusp/", f"{ROOT}/gluon/")
APPS = f"{ROOT}/cusp/apps/"  # of which these are framework, too
_RANKS = "ranks"  # attribute of an error: how many ranks have raised it together
INSIDE_APPS = tuple(f"{APPS}{name}" for name in ("edge_operator.py", "harness.py", "library.py", "operators/", "run/"))


class InputError(Exception):
    """Bad input: the message says what, where, the numbers and what to do; no traceback is shown."""


class GraphFileError(InputError):
    """A graph file that is missing, damaged or not in the layout of :mod:`cusp.input.graph_file`.

    What it quotes from a file may be long or not printable: the message is one line of at most 2000 characters.
    """

    def __init__(self, message: object) -> None:
        text = printable(message)
        super().__init__(text if len(text) <= 2000 else f"{text[:1000]} ... {text[-900:]}")


class PolicyError(InputError):
    """A policy that cannot be found or compiled, raises, or returns a rank that does not exist."""


class OptionError(InputError):
    """An option that contradicts the graph or another option."""


def printable(text: object) -> str:
    """A text whose letters are harmless on a terminal: escapes stand for those that cannot be printed."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text))


def shortened(value: object) -> str:
    """What a user or a file says, as one line that is not too long for a message."""
    text = printable(" ".join(str(value).split()))
    return text if len(text) <= 300 else f"{text[:200]} ... {text[-80:]}"


def caller(frame: FrameType | None) -> str:
    """File and line, outside of the framework and importlib, that have led to a frame; empty if there are none."""
    while frame:
        file = frame.f_code.co_filename
        inside = file.startswith((*INSIDE_APPS, "<", importlib.__file__))
        if not inside and (file.startswith(APPS) or not file.startswith(FRAMEWORK)):
            return f"{file.removeprefix(f'{ROOT}/')}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def raise_together(comm: Intracomm, error: BaseException | None) -> None:
    """Raise the error of the lowest failing rank on *every* rank, or return if there is none. Collective.

    Each rank passes what went wrong on it, or None. No rank is left waiting for one that failed.
    """
    first = min(comm.allgather(comm.rank if error is not None else comm.size))
    if first == comm.size:
        return
    where = f" (rank {first} of {comm.size})" if comm.size > 1 else ""
    local = (type(error), str(error)) if comm.rank == first and isinstance(error, InputError) else None
    shared = comm.bcast(local, root=first)
    if shared is not None:
        kind, message = shared
        error = kind(message + where)
    elif error is None:  # not the user's fault: the failing rank shows its own traceback
        error = RuntimeError(f"rank {first} of {comm.size} failed; see its message")
    vars(error)[_RANKS] = comm.size
    raise error


@contextmanager
def forgiven(comm: Intracomm, kind: type[InputError] = InputError) -> Iterator[None]:
    """Go on after a block that all ranks have left by the same error. One that a rank has alone is raised as ever.

    The others may wait for that rank inside the block, so it must not come to what follows.
    """
    try:
        yield
    except kind as error:
        if comm.size > 1 and vars(error).get(_RANKS) != comm.size:
            raise


def check_same(comm: Intracomm, what: str, given: object) -> None:
    """Raise OptionError on every rank unless all ranks were given the same. Collective.

    An answer of ranks that work on different things is the answer to nothing.

    Parameters
    ----------
    what : str
        The plural, for the message.
    given : object
        Its text says all of it: of files and arrays, a checksum or sample.
    """
    text = str(given)
    own = hashlib.blake2b(text.encode(errors="backslashreplace"), digest_size=16).digest(), shortened(text)
    first = comm.bcast(own, root=0)
    error = f"the ranks were given different {what}: {own[1]!r} here, {first[1]!r} on rank 0"
    raise_together(comm, OptionError(error) if own[0] != first[0] else None)


@contextmanager
def together(comm: Intracomm) -> Iterator[None]:
    """Run a block in which some ranks may fail: the error of one becomes the error of all. Collective.

    The block must not communicate.
    """
    error: BaseException | None = None
    try:
        yield
    except SystemExit as leaving:  # of a user's file; the other ranks would wait for this one
        error = InputError(f"sys.exit({leaving.code!r}) was called, which would leave other ranks waiting")
    except Exception as caught:  # noqa: BLE001 - raised on every rank below
        error = caught
    raise_together(comm, error)
