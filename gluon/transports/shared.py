"""Messages between ranks on CPUs of one host, written where the receiver reads them; to other hosts by MPI.

A flag is a number in memory that several processes see: what was written before it is raised is seen by who finds it
raised. Stores of NumPy say nothing about order, so flags are stored and loaded by :mod:`cusp.kernels.atomics`. They
only grow: one is raised to the number of an exchange, and waited for with "at least".
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import config

from cusp.kernels.atomics import load, store
from cusp.runtime.compiled_code import njit
from cusp.runtime.exchange import pauses
from cusp.runtime.leftovers import started
from cusp.runtime.mpi import MPI
from gluon.transports.host import HostMpi
from gluon.transports.memory import MOST_KEPT, Buffers, Words
from gluon.transports.numbers import MOST, SUM, combine
from gluon.transports.reach import common_memory, memory_of, new_memory, num_cores, shareable, why_apart
from gluon.transports.table import TransportError

LINE = 8  # words of a cache line: flags of two writers are never in the same
# Words of the line from one rank to another: the last exchange in which it sent, how many words in even and in odd
# exchanges, how often it made memory, and where that is.
SENT, WORDS, MADE, DESCRIPTOR, CAPACITY = 0, 1, 3, 4, 5
SHOWN = 2 + MOST  # words in which a rank shows numbers to all: which time it is, and as in Numbers
POLLS = 10_000  # looks at a flag of compiled code, about ten microseconds, before those of :func:`pauses`
ALIVE = 1.0  # seconds of sleep between looks whether the process waited for still runs


@dataclass(frozen=True, eq=False, kw_only=True)
class Near(Buffers):
    """Buffers of which some are shared.

    Attributes
    ----------
    ranks : list of int
        Those of this host with a piece.
    lines, begun : (n,) int64
        Where the flags of their messages are, and those that say which exchange they have begun.
    words : (n,) int64
        Of their messages.
    """

    ranks: list[int]
    lines: np.ndarray
    begun: np.ndarray
    words: np.ndarray


class SharedMemory(HostMpi):
    """The message is written into memory that both map, and a flag says so.

    Two ranks share memory for two messages each way, of an even and of an odd exchange. A message is read before the
    receiver begins its next exchange, and each rank says which it has begun. So who sees that exchange n - 1 was begun
    may write message n where message n - 2 was: that is so by the time it is asked, unless the receiver is a whole
    exchange behind. The sender makes the memory, and makes it anew where it is too small: both sides know when.

    Numbers are shown to all in two places in turn. Who shows some for the third time has seen what the others showed
    at the second, so they had read the first.
    """

    name = "peer"

    def __init__(self, comm: MPI.Intracomm) -> None:
        super().__init__(comm)
        host = self.host_of(comm)
        self._ranks: list[int] = host.allgather(comm.rank)
        self._processes: list[tuple[int, str | None]] = host.allgather((os.getpid(), started(os.getpid())))
        self._here, self._begun = host.rank, host.size**2 * LINE  # after a line for each pair of ranks
        self._own = self._begun + host.rank * LINE
        self._shown = self._begun + host.size * LINE
        self._flags = common_memory(host, self._shown + host.size * 2 * SHOWN).view(np.int64)
        self._float_flags = self._flags.view(np.float64)
        self._polls = POLLS if host.size <= num_cores(host) else 0
        host.Free()
        self._sources = [rank for rank in self._sources if rank not in self._ranks]
        self._targets = [rank for rank in self._targets if rank not in self._ranks]
        self._exchanges = self._shows = 0
        self._heard: list[int] = []  # ranks that sent in the last exchange, so had begun it
        self._memory: dict[tuple[str, int], np.ndarray] = {}
        self._times_made: dict[tuple[str, int], int] = {}
        self._near: dict[tuple[str, int], dict[tuple[int, ...], Near]]
        self._near = {(direction, turn): {} for direction in ("out", "in") for turn in (0, 1)}
        self._load()

    @staticmethod
    def host_of(comm: MPI.Intracomm) -> MPI.Intracomm:
        """The ranks of this host, in their order. Collective."""
        host: MPI.Intracomm = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)  # type: ignore[assignment]
        return host

    @classmethod
    def why_unusable(cls, comm: MPI.Intracomm) -> str | None:
        """None if the ranks of this host can share memory, else the reason why not. Collective."""
        host = cls.host_of(comm)
        alone, why = comm.allreduce(host.size, MPI.MAX) == 1, why_apart(host)
        host.Free()
        if config.DISABLE_JIT:
            return "only compiled code can raise flags, and NUMBA_DISABLE_JIT is set"
        return "no two ranks are on one host" if alone else why

    def _buffers_for(self, direction: str, words: tuple[int, ...]) -> Near:
        turn = self._exchanges % 2
        found = self._near[direction, turn].get(words)
        if found is None:
            found = self._divided(direction, words)
            if len(self._near[direction, turn]) >= MOST_KEPT:
                self._near[direction, turn].clear()
            self._near[direction, turn][words] = found
        if direction == "out" and found.ranks != self._heard:
            self._wait_until_read(found.ranks, found.begun)
        return found

    def exchange(self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None) -> Words:
        assert isinstance(out, Near) and isinstance(into, Near)
        self._exchanges += 1
        posted = self._post(out, out_words, into) if self._targets else None
        out.words[:] = [out_words[rank] for rank in out.ranks]
        self._wait(into.ranks, lambda polls: swap(
            self._flags, self._own, self._exchanges, out.lines, out.words, into.lines, into.words, polls
        ))  # fmt: skip
        arrived = self._arrived(*posted) if posted else [0] * self.comm.size
        for rank, words in zip(into.ranks, into.words.tolist()):
            arrived[rank] = words
        self._heard = into.ranks
        return arrived

    def _combine(self, how: int, count: int) -> None:
        if self._targets:
            return super()._combine(how, count)
        self._shows += 1
        flags, floats, ranks, mine = self._flags, self._float_flags, len(self._ranks), self._numbers
        self._wait(self._ranks, lambda polls: show(
            flags, floats, self._shown, self._here, ranks, self._shows, mine.own, how, count, mine.result,
            mine.float_result, polls,
        ))  # fmt: skip

    def _load(self) -> None:
        """Load, or compile, what the first exchange would have to wait for. Collective."""
        self.combine(SUM, 0)
        nothing = (0,) * self.comm.size
        out, into = self.buffers(nothing, nothing)
        self.exchange(out, nothing, into)
        raise_flag(self._flags, self._line("out", self.comm.rank) + MADE, 0)  # nobody looks at that

    def _divided(self, direction: str, words: tuple[int, ...]) -> Near:
        """Buffers for the next exchange."""
        near = [rank for rank in self._ranks if words[rank] and rank != self.comm.rank]
        pieces = list(
            super()._buffers_for(direction, tuple(0 if rank in near else n for rank, n in enumerate(words))).pieces
        )
        for rank in near:
            memory = self._memory.get((direction, rank))
            if memory is None or memory.size < 2 * words[rank]:
                memory = self._memory[direction, rank] = self._renewed(direction, rank, words[rank])
                self._near[direction, 0].clear()
                self._near[direction, 1].clear()
            start = self._exchanges % 2 * (memory.size // 2)
            pieces[rank] = memory[start : start + words[rank]]
        lines = np.array([self._line(direction, rank) for rank in near], np.int64)
        begun = np.array([self._begun + self._ranks.index(rank) * LINE for rank in near], np.int64)
        return Near(pieces, ranks=near, lines=lines, begun=begun, words=np.zeros(len(near), np.int64))

    def _renewed(self, direction: str, rank: int, words: int) -> np.ndarray:
        """Larger memory for messages to or from a rank: for two of so many words, or more."""
        flags, line = self._flags, self._line(direction, rank)
        times = self._times_made[direction, rank] = self._times_made.get((direction, rank), 0) + 1
        with shareable(f"between the ranks {self.comm.rank} and {rank} for messages of {words:,} words"):
            if direction == "in":
                self._wait([rank], lambda polls: missing(flags, np.array([line + MADE]), times, polls))
                process, _ = self._processes[self._ranks.index(rank)]
                return memory_of(process, int(flags[line + DESCRIPTOR]), 2 * int(flags[line + CAPACITY]))
            self._wait_until_read([rank], np.array([self._begun + self._ranks.index(rank) * LINE]))
            capacity = -(-words // LINE) * LINE
            memory, descriptor = new_memory(2 * capacity)
        flags[line + DESCRIPTOR], flags[line + CAPACITY] = descriptor, capacity
        raise_flag(flags, line + MADE, times)
        return memory

    def _line(self, direction: str, rank: int) -> int:
        """Where the flags of messages to a rank, or from it, are."""
        there = self._ranks.index(rank)
        source, target = (self._here, there) if direction == "out" else (there, self._here)
        return (target * len(self._ranks) + source) * LINE

    def _wait_until_read(self, ranks: list[int], begun: np.ndarray) -> None:
        """Wait until the messages before the last have been read."""
        self._wait(ranks, lambda polls: missing(self._flags, begun, self._exchanges, polls))

    def _wait(self, ranks: list[int], look: Callable[[int], int]) -> None:
        """Wait until ``look(polls)`` finds nobody missing; it returns who is, as an index into ``ranks``, else -1."""
        if look(self._polls) < 0:
            return
        next_check = ALIVE
        for slept in pauses():
            late = look(0)
            if late < 0:
                return
            if slept > next_check:
                next_check = slept + ALIVE
                self._check_alive(ranks[late])

    def _check_alive(self, rank: int) -> None:
        process, began = self._processes[self._ranks.index(rank)]
        if started(process) != began:
            raise TransportError(
                f"rank {rank} of {self.comm.size} (process {process}) has ended, and rank {self.comm.rank} waits for it"
            )


@njit(cache=True, nogil=True)
def swap(flags, begun, exchange, targets, sent, sources, arrived, polls):  # type: ignore[no-untyped-def]
    """Say that an exchange was begun and what was sent, and look what arrived; to be called until it returns -1.

    Returns the entry of the first source from which nothing has come after so many more looks.
    """
    turn = WORDS + exchange % 2
    store(flags, begun, exchange)
    for target in range(targets.size):
        flags[targets[target] + turn] = sent[target]
        store(flags, targets[target] + SENT, exchange)
    late = missing(flags, sources, exchange, polls)
    for source in range(sources.size if late < 0 else 0):
        arrived[source] = flags[sources[source] + turn]
    return late


@njit(cache=True, nogil=True)
def show(flags, floats, start, here, ranks, time, own, how, count, result, float_result, polls):  # type: ignore[no-untyped-def]
    """Show numbers to all ranks, and combine theirs; to be called until it returns -1.

    Returns the first rank that has not shown its own after so many more looks.
    """
    turn = start + time % 2 * SHOWN
    place = turn + here * 2 * SHOWN
    for number in range(1 + count):
        flags[place + 1 + number] = own[number]
    store(flags, place, time)
    for rank in range(ranks):
        left = polls
        while load(flags, turn + rank * 2 * SHOWN) < time:
            left -= 1
            if left < 0:
                return rank
    combine(flags, floats, turn + 1, 2 * SHOWN, ranks, how, count, result, float_result)
    return -1


@njit(cache=True, nogil=True)
def raise_flag(words, place, value):  # type: ignore[no-untyped-def]
    """Announce what was written before."""
    store(words, place, value)


@njit(cache=True, nogil=True)
def missing(words, places, value, polls):  # type: ignore[no-untyped-def]
    """Entry of the first of the flags at ``places`` that is below ``value`` after so many looks; -1 if none is."""
    for entry in range(places.size):
        left = polls
        while load(words, places[entry]) < value:
            left -= 1
            if left < 0:
                return entry
    return -1
