"""``--debug``: mistakes that would be silent, or wait for ever, are looked for while a program runs; slower."""

import sys

from cusp.errors import InputError, caller
from cusp.runtime.exchange import kept
from cusp.runtime.mpi import MPI

END = "has come to the end of the program"


class CollectiveError(InputError):
    """Ranks that call different collective functions, so that they would wait for each other for ever."""


class _Chosen:
    on = False


def start(wanted: bool) -> None:
    """Look for mistakes from now on, or no longer."""
    _Chosen.on = wanted


def on() -> bool:
    """Whether ``--debug`` was given."""
    return _Chosen.on


def agree(comm: MPI.Intracomm, call: str) -> None:
    """With ``--debug``, compare what the ranks call, before they do. Collective.

    Raises
    ------
    CollectiveError
        On every rank: they do not all call this.
    """
    if not _Chosen.on or comm.size == 1:
        return
    where = "" if call == END else f" at {caller(sys._getframe())}"
    calls = _own(comm).allgather((call, where))
    other = next((rank for rank, (name, _) in enumerate(calls) if name != calls[0][0]), 0)
    if other:
        differ = "; ".join(f"rank {rank} {calls[rank][0]}{calls[rank][1]}" for rank in (0, other))
        raise CollectiveError(f"{differ}: every rank must call collective functions, in the same order")


def agree_on_end(comm: MPI.Intracomm) -> None:
    """The same where a program ends, if ranks have agreed on anything before. Collective."""
    if _Chosen.on and kept(comm, "agreements", list):
        agree(comm, END)


def _own(comm: MPI.Intracomm) -> MPI.Intracomm:
    """The same ranks; no message of a program is taken for one of these. Collective at first."""
    made = kept(comm, "agreements", list)
    if not made:
        made.append(comm.Dup())
    return made[0]  # type: ignore[no-any-return]
