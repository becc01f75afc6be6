"""Messages between ranks on CPUs of one host, which the receiver reads where the sender has written them.

A flag is a number in memory that several processes see: what was written before it is raised is seen by who finds it
raised. Stores of NumPy say nothing about order, so flags are stored and loaded by :mod:`cusp.runtime.teams.atomics`.
They only grow: one is raised to the number of an exchange, and waited for with "at least".
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numba import config

from cusp.runtime.compiled_code import njit
from cusp.runtime.exchange import pauses
from cusp.runtime.leftovers import started
from cusp.runtime.mpi import MPI
from cusp.runtime.teams.atomics import load, store
from gluon.transports.memory import MOST_KEPT, Buffers, Transport, Words
from gluon.transports.numbers import MOST, SUM, combine
from gluon.transports.reach import Growing, common_memory, host_of, num_cores, why_apart
from gluon.transports.table import TransportError

LINE = 8  # words of a cache line: flags of two writers are never in the same
# Words in which a rank says of its message to another where it is and how long, -1 if there is none; and how long the
# message may be that comes from there.
PLACE, WORDS, COMING, ENTRY = 0, 1, 2, 3
SHOWN = 2 + MOST  # words in which a rank shows numbers to all: which time it is, and as in Numbers
POLLS = 10_000  # looks at a flag of compiled code, about ten microseconds, before those of :func:`pauses`
ALIVE = 1.0  # seconds of sleep between looks whether the process waited for still runs


@dataclass(frozen=True, eq=False, kw_only=True)
class Placed(Buffers):
    """Buffers in memory that all ranks of the host see, for even or for odd exchanges.

    Attributes
    ----------
    memory : Growing
    rows : int
        Where ranks say what they send: one row of each rank of the host, with an entry for each rank.
    near, sources : list of int
        Ranks of this host with a piece: their numbers on the host, and their ranks.
    pairs : (n, 2) int64
        The same.
    far : list of int
        Other hosts of which ranks have a piece.
    room : (ranks,) int64
        Words of each.
    end : int
        Where the last one ends.
    found : (2, ranks) int64
        Where each message begins in the memory of the rank that wrote it, and its words.
    known : list of int
        Where messages from each rank are, as they are seen now.
    """

    memory: Growing
    rows: int
    near: list[int]
    sources: list[int]
    pairs: np.ndarray
    far: list[int]
    room: np.ndarray
    end: int
    found: np.ndarray
    known: list[int]


class SharedMemory(Transport):
    """The message is written into memory of the sender that all ranks of the host see, and a flag says so.

    Each rank has memory for its messages of even exchanges and of odd ones. A message is read before the receiver
    begins its next exchange, and each rank says which it has begun. So who sees that all have begun exchange n - 1 may
    write messages of exchange n where those of n - 2 were: that is so by the time it is asked, unless some rank is a
    whole exchange behind.

    Numbers are shown to all in two places in turn. Who shows some for the third time has seen what the others showed
    at the second, so they had read the first.
    """

    name, xp = "peer", np
    one_host = True  # else it is for several

    def __init__(self, comm: MPI.Intracomm) -> None:
        super().__init__(comm)
        host = self.host_of(comm)
        self._ranks: list[int] = host.allgather(comm.rank)
        self._hosts = sorted({tuple(ranks) for ranks in comm.allgather(self._ranks)})
        self._host = self._hosts.index(tuple(self._ranks))
        self._processes: list[tuple[int, str | None]] = host.allgather((os.getpid(), started(os.getpid())))
        self._here, count = host.rank, host.size
        self._begun = np.arange(count) * LINE
        self._landed = (count + np.arange(len(self._hosts))) * LINE  # for messages from other hosts
        self._shown = (count + len(self._hosts)) * LINE
        self._rows = self._shown + (2 * count + 1) * SHOWN  # the one more is for numbers of all hosts
        self._flags = common_memory(host, self._rows + 2 * count * comm.size * ENTRY).view(np.int64)
        self._float_flags = self._flags.view(np.float64)
        self._polls = POLLS if count <= num_cores(host) else 0
        self._memory = Growing(host), Growing(host)
        self._exchanges = self._shows = 0
        self._all_begun = True  # the last exchange, as is known
        self._placed: dict[tuple[str, int], dict[Words, Placed]]
        self._placed = {(direction, turn): {} for direction in ("out", "in") for turn in (0, 1)}
        self._connect(host)
        host.Free()
        self._load()

    host_of = staticmethod(host_of)

    @classmethod
    def why_unusable(cls, comm: MPI.Intracomm) -> str | None:
        """None if ranks share as many hosts as it is for, and can share memory, else the reason why not. Collective."""
        host = cls.host_of(comm)
        sizes, firsts = zip(*comm.allgather((host.size, host.rank == 0)))
        why = why_apart(host)
        host.Free()
        if config.DISABLE_JIT:
            return "only compiled code can raise flags, and NUMBA_DISABLE_JIT is set"
        if max(sizes) == 1:
            return "no two ranks are on one host"
        if cls.one_host and sum(firsts) > 1:
            return f"the ranks are on {sum(firsts)} hosts; use hosts"
        return why if cls.one_host or sum(firsts) > 1 else "all ranks are on one host; use peer"

    def _connect(self, host: MPI.Intracomm) -> None:
        """Get ready to reach other hosts. Collective."""

    def _buffers_for(self, direction: str, words: tuple[int, ...]) -> Placed:
        turn = self._exchanges % 2
        known = self._placed[direction, turn]
        found = known.get(words)
        if direction == "out" and not self._all_begun:
            self._wait_for_all(self._exchanges)
        if found is None:
            if len(known) >= MOST_KEPT:
                known.clear()
            found = known[words] = self._place(direction, words, turn)
        return found

    def _place(self, direction: str, words: Words, turn: int) -> Placed:
        """Buffers of so many words: to send from, one after the other; from where others place theirs."""
        ends = [*accumulate(-(-size // LINE) * LINE * (direction == "out") for size in words)]
        places = [0, *ends[:-1]]
        whole = self._memory[turn].own(ends[-1])
        pairs = [(number, rank) for number, rank in enumerate(self._ranks) if words[rank] and number != self._here]
        return Placed(
            [whole[place : place + size] for place, size in zip(places, words)],
            memory=self._memory[turn], rows=self._rows + turn * len(self._ranks) * self.comm.size * ENTRY,
            near=[number for number, _ in pairs], sources=[rank for _, rank in pairs],
            pairs=np.array(pairs, np.int64).reshape(-1, 2),
            far=[host for host, ranks in enumerate(self._hosts) if host != self._host and any(words[r] for r in ranks)],
            room=np.array(words, np.int64), end=ends[-1], found=np.array([places, [0] * len(words)], np.int64),
            known=[-1] * len(words),
        )  # fmt: skip

    def exchange(self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None) -> list[int]:
        assert isinstance(out, Placed) and isinstance(into, Placed)
        self._exchanges += 1
        out.found[1] = out_words
        self._wait(into.near, lambda polls: swap(
            self._flags, self._begun, self._here, self.comm.rank, self._exchanges, out.rows, out.found, out.room,
            into.room, into.pairs, into.found, polls,
        ))  # fmt: skip
        self._all_begun = len(into.near) == len(self._ranks) - 1
        places, arrived = into.found.tolist()
        for number, rank in zip(into.near, into.sources):
            if places[rank] != into.known[rank]:
                place = into.known[rank] = places[rank]
                end = place + int(into.room[rank])
                into.move(rank, into.memory.of(number, end)[place:end])
        return arrived  # type: ignore[no-any-return]

    def _combine(self, how: int, count: int) -> None:
        self._shows += 1
        flags, floats, ranks, mine = self._flags, self._float_flags, len(self._ranks), self._numbers
        self._wait(range(ranks), lambda polls: show(
            flags, floats, self._shown, self._here, ranks, self._shows, mine.own, how, count, mine.result,
            mine.float_result, polls,
        ))  # fmt: skip

    def _load(self) -> None:
        """Load, or compile, what the first exchange would have to wait for. Collective."""
        self.combine(SUM, 0)
        nothing = (0,) * self.comm.size
        out, into = self.buffers(nothing, nothing)
        self.exchange(out, nothing, into)

    def _wait_for_all(self, exchange: int) -> None:
        """Wait until all ranks of the host have begun an exchange, hence ended the one before."""
        self._wait(range(len(self._ranks)), lambda polls: missing(self._flags, self._begun, exchange, polls))

    def _wait(self, numbers: Sequence[int], look: Callable[[int], int]) -> None:
        """Wait until ``look(polls)`` finds nobody missing; it returns who is, as an index into ``numbers``, else -1."""
        if look(self._polls) < 0:
            return
        next_check = ALIVE
        for slept in pauses():
            late = look(0)
            if late < 0:
                return
            self._go_on()
            if slept > next_check:
                next_check = slept + ALIVE
                self._check_alive(numbers[late])

    def _go_on(self) -> None:
        """What has to be done while this rank waits."""

    def _check_alive(self, number: int) -> None:
        (process, began), rank = self._processes[number], self._ranks[number]
        if started(process) != began:
            raise TransportError(
                f"rank {rank} of {self.comm.size} (process {process}) has ended, and rank {self.comm.rank} waits for it"
            )


@njit(cache=True, nogil=True)
def swap(  # type: ignore[no-untyped-def]
    flags, begun, here, me, exchange, rows, sent, room, room_in, sources, found, polls
):
    """Say what is sent and that an exchange was begun, and look what arrived; to be called until it returns -1.

    Returns the entry of the first source from which nothing has come after so many more looks.
    """
    ranks = room.size
    if flags[begun[here]] < exchange:
        for rank in range(ranks):
            at = rows + (here * ranks + rank) * ENTRY
            flags[at + PLACE] = sent[0, rank]
            flags[at + WORDS] = sent[1, rank] if room[rank] else -1
            flags[at + COMING] = room_in[rank]
        store(flags, begun[here], exchange)
    for entry in range(sources.shape[0]):
        number, rank = sources[entry]
        if not is_raised(flags, begun[number], exchange, polls):
            return entry
        at = rows + (number * ranks + me) * ENTRY
        found[0, rank] = flags[at + PLACE]
        found[1, rank] = flags[at + WORDS]
    return -1


@njit(cache=True, nogil=True)
def show(flags, floats, start, here, ranks, time, own, how, count, result, float_result, polls):  # type: ignore[no-untyped-def]
    """Show numbers to all ranks, and combine theirs; to be called until it returns -1.

    Returns the first rank that has not shown its own after so many more looks.
    """
    turn = start + time % 2 * SHOWN
    put(flags, turn + here * 2 * SHOWN, time, own, count)
    for rank in range(ranks):
        if not is_raised(flags, turn + rank * 2 * SHOWN, time, polls):
            return rank
    combine(flags, floats, turn + 1, 2 * SHOWN, ranks, how, count, result, float_result)
    return -1


@njit(cache=True, nogil=True)
def put(flags, place, time, numbers, count):  # type: ignore[no-untyped-def]
    """Write numbers behind a flag, and raise it."""
    for number in range(1 + count):
        flags[place + 1 + number] = numbers[number]
    store(flags, place, time)


@njit(cache=True, nogil=True)
def missing(flags, places, value, polls):  # type: ignore[no-untyped-def]
    """Entry of the first of the flags at ``places`` that is below ``value`` after so many looks; -1 if none is."""
    for entry in range(places.size):
        if not is_raised(flags, places[entry], value, polls):
            return entry
    return -1


@njit(cache=True, nogil=True)
def is_raised(flags, place, value, polls):  # type: ignore[no-untyped-def]
    """Whether a flag is at least ``value``, at the latest after so many more looks."""
    while load(flags, place) < value:
        polls -= 1
        if polls < 0:
            return False
    return True
