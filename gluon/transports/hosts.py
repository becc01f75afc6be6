"""Messages between ranks on CPUs of several hosts: one between two hosts, with those of all their ranks.

Ranks write messages to other hosts, too, into memory that their host sees. For each pair of hosts one rank of the first
sends what all of its ranks have written there for ranks of the second, from where it is, and one of the second receives
it into such memory, where its ranks read what is for them. These are the couriers; a host shares this work out among
its ranks. A message is, in words of 8 bytes::

    number of parts | of each part: its pair << 40 | its words | the parts

in the order of receivers, then of senders; a pair is the receiver times the ranks of the sender's host plus the sender,
by their numbers on their hosts. Nothing changed: the message is empty. No rank of one has a buffer for ranks of the
other: there is none.
"""

from typing import Any

import numpy as np

from cusp.kernels.atomics import store
from cusp.runtime.compiled_code import njit
from cusp.runtime.exchange import LOOKS, pauses, wait_all
from cusp.runtime.mpi import MPI
from gluon.transports.memory import Buffers, Words
from gluon.transports.numbers import combine
from gluon.transports.shared import (
    LINE, PLACE, RECEIVES, ROW, SENDS, SHOWN, TIES, WORDS, Placed, SharedMemory, missing, put
)  # fmt: skip

TAG = 13
SHIFT = 40  # bits of a part's length


class Hosts(SharedMemory):
    """As :class:`SharedMemory` within a host; couriers between hosts.

    A courier sends when all ranks of its host have begun the exchange, and ends it when all was sent; so the memory of
    messages that leave is free, as that of others, when all have begun the next one. So is that of messages that come,
    which is behind that of the courier's own.

    Numbers of all ranks come together at the first rank of each host, which shows the others the result.
    """

    name = "hosts"

    @classmethod
    def why_unusable(cls, comm: MPI.Intracomm) -> str | None:
        """None if ranks share hosts that are several, and can share memory, else the reason why not. Collective."""
        return cls._why_unusable(comm, one=False)

    def _connect(self, host: MPI.Intracomm) -> None:
        own, hosts = self._hosts.index(self._ranks), self._hosts
        self._own = own
        self._members = [np.array(ranks, np.int64) for ranks in hosts]
        others = [other for other in range(len(hosts)) if other != own]
        # Of each other host that this rank is a courier for, the courier there.
        self._to = {to: hosts[to][own % len(hosts[to])] for to in others if (to + 1) % host.size == self._here}
        self._from = {of: hosts[of][(own + 1) % len(hosts[of])] for of in others if of % host.size == self._here}
        self._headers = {to: np.empty(1 + len(hosts[to]) * host.size, np.int64) for to in self._to}
        self._leaders = self.comm.Split(0 if host.rank == 0 else MPI.UNDEFINED, self.comm.rank)
        self._order = np.concatenate(self._members)

    def exchange(self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None) -> list[int]:
        assert isinstance(out, Placed) and isinstance(into, Placed)
        turn = self._exchanges % 2
        arrived = super().exchange(out, out_words, into, in_words)
        if self._to or self._from:
            self._wait_for_all(self._exchanges)
            sent = [request for to in self._to for request in self._send(turn, to)]
            self._receive(turn, out.end)
            wait_all(sent)
        self._read(turn, into, arrived)
        return arrived

    def _go_on(self) -> None:
        self.comm.Iprobe(tag=TAG)  # what MPI took to send, it may send only while it is called

    def _send(self, turn: int, to: int) -> list[MPI.Request]:
        """Start to send what ranks of this host have for those of another."""
        header, members = self._headers[to], self._members[to]
        sizes, places, extents = np.empty(header.size, np.int64), np.empty_like(header), np.zeros_like(self._begun)
        parts = list_parts(self._flags, self._rows_of(turn), self.comm.size, members, header, sizes, places, extents)
        if parts < 0:
            return []
        if parts == 0:
            return [self.comm.Isend(header[:0], self._to[to], TAG)]
        memory = self._memory[turn]
        starts = np.array([memory.of(number, words).ctypes.data for number, words in enumerate(extents.tolist())])
        places[0], sizes[0] = header.ctypes.data, 1 + parts
        places[1 : 1 + parts] = starts[places[1 : 1 + parts] >> SHIFT] + 8 * (places[1 : 1 + parts] & ((1 << SHIFT) - 1))
        message = MPI.UINT64_T.Create_hindexed(sizes[: 1 + parts].tolist(), places[: 1 + parts].tolist()).Commit()
        request = self.comm.Isend([MPI.BOTTOM, 1, message], self._to[to], TAG)
        message.Free()
        return [request]

    def _receive(self, turn: int, place: int) -> None:
        """Receive what comes from other hosts into this rank's memory, from a place on, and say that it is there."""
        flags, memory, status = self._flags, self._memory[turn], MPI.Status()
        coming = {of: rank for of, rank in self._from.items()
                  if are_tied(flags, self._rows_of(turn), self.comm.size, self._members[of], self._begun.size)}
        landed, requests = [*coming], []
        for _ in pauses(LOOKS):
            for of, rank in [*coming.items()]:
                message = self.comm.Improbe(rank, TAG, status)
                if message is not None:
                    del coming[of]
                    words = status.Get_count(MPI.UINT64_T)
                    requests.append(message.Irecv(memory.own(place + words)[place : place + words]))
                    at = self._landed[of] + 1 + 2 * turn
                    flags[at], flags[at + 1] = place, words
                    place += -(-words // LINE) * LINE
            if not coming and MPI.Request.Testall(requests):
                break
        for of in landed:
            put_flag(flags, self._landed[of], self._exchanges)

    def _read(self, turn: int, into: Placed, arrived: list[int]) -> None:
        """Find what has come from ranks of other hosts."""
        for of, members in enumerate(self._members):
            if of == self._own or not into.room[members].any():
                continue
            line, courier = self._landed[of : of + 1], of % len(self._ranks)
            self._wait([courier], lambda polls: missing(self._flags, line, self._exchanges, polls))
            place, words = self._flags[line[0] + 1 + 2 * turn :][:2].tolist()
            if words:
                landing = self._memory[turn].of(courier, place + words)[place : place + words]
                starts, sizes = np.zeros_like(members), np.zeros_like(members)
                find_parts(landing, self._here, starts, sizes)
                for rank, start, size in zip(members.tolist(), starts.tolist(), sizes.tolist()):
                    if size:
                        into.move(rank, landing[start : start + size])
                        arrived[rank] = size

    def _combine(self, how: int, count: int) -> None:
        self._shows += 1
        flags, numbers, words, ranks = self._flags, self._numbers, 1 + count, len(self._ranks)
        turn, result = self._shown + self._shows % 2 * SHOWN, self._shown + 2 * ranks * SHOWN
        put(flags, turn + self._here * 2 * SHOWN, self._shows, numbers.own, count)
        if self._here:
            self._wait([0], lambda polls: missing(flags, np.array([result]), self._shows, polls))
            numbers.result[:words] = flags[result + 1 : result + 1 + words]
            return
        shown = turn + np.arange(ranks) * 2 * SHOWN
        self._wait(range(ranks), lambda polls: missing(flags, shown, self._shows, polls))
        own = flags[shown[:, None] + np.arange(1, 1 + words)]
        received, table = np.empty((2, self.comm.size, words), np.int64)
        counts = [len(members) * words for members in self._hosts]
        self._leaders.Allgatherv(own, [received, counts])
        table[self._order] = received
        table = table.ravel()
        combine(table, table.view(np.float64), 0, words, self.comm.size, how, count, numbers.result, numbers.float_result)
        put(flags, result, self._shows, numbers.result, count)


@njit(cache=True, nogil=True)
def put_flag(flags, place, value):  # type: ignore[no-untyped-def]
    store(flags, place, value)


@njit(cache=True, nogil=True)
def are_tied(flags, rows, ranks, members, here):  # type: ignore[no-untyped-def]
    """Whether any rank of this host, which has so many, may get something from the members of another."""
    for number in range(here):
        for member in members:
            if flags[rows + (number * ranks + member) * ROW + TIES] & RECEIVES:
                return True
    return False


@njit(cache=True, nogil=True)
def list_parts(flags, rows, ranks, members, header, sizes, places, extents):  # type: ignore[no-untyped-def]
    """Write the header of a message to another host; returns how many parts it has, -1 if there is no message.

    Of part i, ``sizes[1 + i]`` are its words and ``places[1 + i]`` the number of its sender and where it is in the
    memory of that, of which ``extents`` says how far it is used.
    """
    tied, parts, here = False, 0, extents.size
    for target in range(members.size):
        for source in range(here):
            at = rows + (source * ranks + members[target]) * ROW
            tied |= (flags[at + TIES] & SENDS) != 0
            words, place = flags[at + WORDS], flags[at + PLACE]
            if words:
                parts += 1
                header[parts] = (target * here + source) << SHIFT | words
                sizes[parts], places[parts] = words, source << SHIFT | place
                extents[source] = max(extents[source], place + words)
    header[0] = parts
    return parts if tied else -1


@njit(cache=True, nogil=True)
def find_parts(landing, number, starts, sizes):  # type: ignore[no-untyped-def]
    """Where the parts for a rank are in a message, and their words, by the number of their sender."""
    parts = np.int64(landing[0])
    at = 1 + parts
    for part in range(1, 1 + parts):
        pair, words = np.int64(landing[part]) >> SHIFT, np.int64(landing[part]) & ((1 << SHIFT) - 1)
        target, source = divmod(pair, starts.size)
        if target == number:
            starts[source], sizes[source] = at, words
        at += words
