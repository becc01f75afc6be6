"""Memory of CPU ranks of one host through which compiled loops send each other values, without MPI and without rounds.

Each rank has an inbox for each other one: entries of where a node is in the list that both ranks have of
it, and its value. One side writes, the other reads, so a flag for each side is all they need. Who finds an inbox full
keeps what is still to be sent.

**The end.** A rank that has nothing to do or to send and finds its inboxes empty *rests*. It numbers its changes
between work and rest: the number is odd while it works, and it is raised before an entry is taken from an inbox. Who
rests looks at the numbers of all ranks, then at all inboxes, then at the numbers again. If all were even, the inboxes
empty, and no number has changed, all is over:

    No rank has worked between the first look at its number and the second, or the number would have grown. So nobody
    worked while the inboxes were looked at. Only who works writes entries, and only who works takes them. So an inbox
    that was found empty then was empty all the time; and nothing is left that could make anybody work.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cusp.errors import Intracomm
from cusp.runtime.compiled_code import njit
from cusp.runtime.exchange import kept
from cusp.runtime.teams.atomics import load, store
from gluon.transports.reach import common_memory, num_cores
from gluon.transports.shared import LINE, SharedMemory

if TYPE_CHECKING:
    from gluon.sync import Sync

ENTRIES = 1 << 12  # of an inbox, a power of two
PLACE, VALUE, WORDS = 0, 1, 2  # of an entry


@dataclass(frozen=True, eq=False)
class Inboxes:
    """The inboxes of all ranks of a host.

    Attributes
    ----------
    rank, ranks : int
    cores : int
        That they may use, all together.
    words : int64
        The memory: a line for the number of each rank, one for the last run that is over, for each inbox the entries
        that were read and those that were written; then the inboxes.
    """

    rank: int
    ranks: int
    cores: int
    words: np.ndarray

    def begin(self, sync: "Sync") -> int:
        """A run begins, with work for every rank; returns its number. Collective."""
        tell_progress(self.words, self.rank, 0.0)
        set_working(self.words, self.rank, 1)
        sync.total(0)  # from here on no rank can find that all rest
        return int(self.words[self.ranks * LINE]) + 1


def inboxes_of(comm: Intracomm) -> Inboxes | None:
    """The inboxes between the ranks of a communicator, if they are on one host; kept with it. Collective."""

    def make() -> Inboxes | None:
        host = SharedMemory.host_of(comm)
        here, cores = host.size, num_cores(host)
        host.Free()
        if here < comm.size:
            return None
        words = (here + 1 + 2 * here**2) * LINE + here**2 * ENTRIES * WORDS
        return Inboxes(comm.rank, here, cores, common_memory(comm, words).view(np.int64))

    return kept(comm, "inboxes", make)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True, inline="always")
def _inbox(ranks, source, target):  # type: ignore[no-untyped-def]
    """The words of an inbox's flags, read and written, and the first of its entries."""
    number = source * ranks + target
    read = (ranks + 1 + 2 * number) * LINE
    return read, read + LINE, (ranks + 1 + 2 * ranks * ranks) * LINE + number * ENTRIES * WORDS


@njit(cache=True, nogil=True, inline="always")
def is_full(words, ranks, source, target, more):  # type: ignore[no-untyped-def]
    """Whether there is no room for another entry, after ``more`` that were put but not shown."""
    read, written, _ = _inbox(ranks, source, target)
    return words[written] + more - load(words, read) >= ENTRIES


@njit(cache=True, nogil=True, inline="always")
def put(words, items, ranks, source, target, more, place, value):  # type: ignore[no-untyped-def]
    """Write an entry, which is not shown yet. ``items`` is the memory of the words as values."""
    _, written, first = _inbox(ranks, source, target)
    entry = first + ((words[written] + more) & (ENTRIES - 1)) * WORDS
    words[entry + PLACE] = place
    items[(entry + VALUE) * (8 // items.itemsize)] = value


@njit(cache=True, nogil=True, inline="always")
def show(words, ranks, source, target, more):  # type: ignore[no-untyped-def]
    """Show the reader what was put."""
    _, written, _ = _inbox(ranks, source, target)
    store(words, written, words[written] + more)


@njit(cache=True, nogil=True, inline="always")
def num_unread(words, ranks, source, target):  # type: ignore[no-untyped-def]
    read, written, _ = _inbox(ranks, source, target)
    return load(words, written) - load(words, read)


@njit(cache=True, nogil=True, inline="always")
def look(words, items, ranks, source, target, entry):  # type: ignore[no-untyped-def]
    """Place and value of an unread entry."""
    read, _, first = _inbox(ranks, source, target)
    entry = first + ((words[read] + entry) & (ENTRIES - 1)) * WORDS
    return words[entry + PLACE], items[(entry + VALUE) * (8 // items.itemsize)]


@njit(cache=True, nogil=True, inline="always")
def have_read(words, ranks, source, target, entries):  # type: ignore[no-untyped-def]
    """These have been read."""
    read, _, _ = _inbox(ranks, source, target)
    store(words, read, words[read] + entries)


@njit(cache=True, nogil=True, inline="always")
def set_working(words, rank, works):  # type: ignore[no-untyped-def]
    """Say whether this rank works or rests, if that has changed."""
    number = words[rank * LINE]
    if (number & 1) != works:
        store(words, rank * LINE, number + 1)


@njit(cache=True, nogil=True, inline="always")
def tell_progress(words, rank, progress):  # type: ignore[no-untyped-def]
    """Say how far this rank has come."""
    words.view(np.float64)[rank * LINE + 1] = progress


@njit(cache=True, nogil=True)
def may_go_on(words, rank, ranks, progress):  # type: ignore[no-untyped-def]
    """Whether all others that work have come so far."""
    reached = words.view(np.float64)
    for other in range(ranks):
        if other != rank and load(words, other * LINE) & 1 and reached[other * LINE + 1] < progress:
            return False
    return True


@njit(cache=True, nogil=True)
def rest(words, rank, ranks, run, seen):  # type: ignore[no-untyped-def]
    """This rank rests; whether run number ``run`` is over. ``seen`` has room for a number of each rank."""
    set_working(words, rank, 0)
    over = ranks * LINE
    if load(words, over) >= run:
        return True
    for other in range(ranks):
        seen[other] = load(words, other * LINE)
        if seen[other] & 1:
            return False
    for source in range(ranks):
        for target in range(ranks):
            if num_unread(words, ranks, source, target) != 0:
                return False
    for other in range(ranks):
        if load(words, other * LINE) != seen[other]:
            return False
    store(words, over, run)
    return True
