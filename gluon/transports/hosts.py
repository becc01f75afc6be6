"""Messages between ranks on CPUs of several hosts: one between two hosts, with those of all their ranks.

Ranks write messages to other hosts, too, into memory that their host sees. For each pair of hosts one rank of the first
sends what all of its ranks have written there for ranks of the second, and one of the second receives it into such
memory, where its ranks read what is for them. These are the couriers; a host shares this work out among its ranks. A
message is, in words of 8 bytes::

    number of parts | of each part: its pair << 40 | its words | the parts

in the order of receivers, then of senders; a pair is the receiver times the ranks of the sender's host plus the sender,
by their numbers on their hosts. Nothing changed: the message is empty. No rank of one has a buffer for ranks of the
other: there is none.
"""

import numpy as np

from cusp.runtime.compiled_code import njit
from cusp.runtime.exchange import LOOKS, pauses, wait_all
from cusp.runtime.mpi import MPI
from gluon.transports.memory import Buffers, Words
from gluon.transports.numbers import combine
from gluon.transports.reach import GROWTH, Growing
from gluon.transports.shared import COMING, ENTRY, LINE, PLACE, SHOWN, WORDS, Placed, SharedMemory, missing, put

TAG = 13
SHIFT = 40  # bits of a part's length


class Hosts(SharedMemory):
    """As :class:`SharedMemory` within a host; couriers between hosts.

    A courier sends when all ranks of its host have begun the exchange, and ends it when all was sent; so the memory of
    messages that leave is free, as that of others, when all have begun the next one. So is that of messages that come,
    which is behind that of the courier's own.

    Numbers of all ranks come together at the first rank of each host, which shows the others the result.
    """

    name, one_host = "hosts", False

    def _connect(self, host: MPI.Intracomm) -> None:
        own, hosts = self._host, self._hosts
        self._members = [np.array(ranks, np.int64) for ranks in hosts]
        others = [other for other in range(len(hosts)) if other != own]
        # Of each other host that this rank is a courier for, the courier there.
        self._to = {to: hosts[to][own % len(hosts[to])] for to in others if (to + 1) % host.size == self._here}
        self._from = {of: hosts[of][(own + 1) % len(hosts[of])] for of in others if of % host.size == self._here}
        self._leaving = {to: np.empty(0, np.uint64) for to in self._to}  # memory for messages, which grows
        self._leaders = self.comm.Split(0 if host.rank == 0 else MPI.UNDEFINED, self.comm.rank)
        find_parts(self._memory[0].own(1)[:0], 0, *np.zeros((2, 1), np.int64))  # loads it, as _load does the others

    def exchange(self, out: Buffers, out_words: Words, into: Buffers, in_words: Words | None = None) -> list[int]:
        assert isinstance(out, Placed) and isinstance(into, Placed)
        arrived = super().exchange(out, out_words, into, in_words)
        if self._to or self._from:
            self._wait_for_all(self._exchanges)
            self._all_begun = True
            sent = [self._send(to, out.memory, out.rows) for to in self._to]
            self._receive(out.memory, out.rows, out.end)
            wait_all(sent)
        self._read(into, arrived)
        return arrived

    def _go_on(self) -> None:
        self.comm.Iprobe(tag=TAG)  # what MPI took to send, it may send only while it is called

    def _send(self, to: int, memory: Growing, rows: int) -> MPI.Request:
        """Start to send what ranks of this host have for those of another, in one piece.

        From where they are, MPI would send the parts in pieces of a few kilobytes.
        """
        parts = np.empty((len(self._hosts[to]) * len(self._ranks), 3), np.int64)
        header = np.empty(1 + len(parts), np.uint64)
        found = list_parts(self._flags, rows, self.comm.size, self._members[to], len(self._ranks), header, parts)
        if found < 0:
            return MPI.REQUEST_NULL
        pieces = [header[: 1 + found if found else 0]]
        for source, place, words in parts[:found].tolist():
            pieces.append(memory.of(source, place + words)[place : place + words])
        size = sum(map(len, pieces))
        if size > self._leaving[to].size:
            self._leaving[to] = np.empty(GROWTH * size, np.uint64)
        return self.comm.Isend(np.concatenate(pieces, out=self._leaving[to][:size]), self._to[to], TAG)

    def _receive(self, memory: Growing, rows: int, place: int) -> None:
        """Receive what comes from other hosts into this rank's memory, from a place on, and say that it is there."""
        flags, count, status, landed, requests = self._flags, len(self._ranks), MPI.Status(), {}, []
        coming = [of for of in self._from if may_come(flags, rows, self.comm.size, self._members[of], count)]
        for _ in pauses(LOOKS):
            for of in [of for of in coming if of not in landed]:
                message = self.comm.Improbe(self._from[of], TAG, status)
                if message is not None:
                    words = status.Get_count(MPI.UINT64_T)
                    landed[of] = np.array([place, words])
                    requests.append(message.Irecv(memory.own(place + words)[place : place + words]))
                    place += -(-words // LINE) * LINE
            if len(landed) == len(coming) and MPI.Request.Testall(requests):
                break
        for of in coming:
            put(flags, self._landed[of], self._exchanges, landed[of], 1)

    def _read(self, into: Placed, arrived: list[int]) -> None:
        """Find what has come from ranks of other hosts."""
        lines = self._landed[into.far]
        couriers = [of % len(self._ranks) for of in into.far]
        self._wait(couriers, lambda polls: missing(self._flags, lines, self._exchanges, polls))
        for of, courier, line in zip(into.far, couriers, lines.tolist()):
            place, words = self._flags[line + 1 : line + 3].tolist()
            landing = into.memory.of(courier, place + words)[place : place + words]
            starts, sizes = np.zeros((2, len(self._hosts[of])), np.int64)
            find_parts(landing, self._here, starts, sizes)
            for rank, start, size in zip(self._hosts[of], starts.tolist(), sizes.tolist()):
                if size:
                    into.move(rank, landing[start : start + size])
                    arrived[rank] = size

    def _combine(self, how: int, count: int) -> None:
        self._shows += 1
        flags, numbers, words, ranks = self._flags, self._numbers, 1 + count, len(self._ranks)
        turn, result = self._shown + self._shows % 2 * SHOWN, self._shown + 2 * ranks * SHOWN
        put(flags, turn + self._here * 2 * SHOWN, self._shows, numbers.own, count)
        awaited = np.array([result]) if self._here else turn + np.arange(ranks) * 2 * SHOWN
        self._wait(range(ranks), lambda polls: missing(flags, awaited, self._shows, polls))
        if self._here:
            numbers.result[:words] = flags[result + 1 : result + 1 + words]
            return
        own = flags[awaited[:, None] + np.arange(1, 1 + words)]
        received, table = np.empty((2, self.comm.size, words), np.int64)
        self._leaders.Allgatherv(own, [received, [len(members) * words for members in self._hosts]])
        table[np.concatenate(self._members)] = received
        rows, result_rows = table.ravel(), (numbers.result, numbers.float_result)
        combine(rows, rows.view(np.float64), 0, words, self.comm.size, how, count, *result_rows)
        put(flags, result, self._shows, numbers.result, count)


@njit(cache=True, nogil=True)
def may_come(flags, rows, ranks, members, count):  # type: ignore[no-untyped-def]
    """Whether any of the ranks of this host, which are ``count``, has a buffer for one of another host."""
    for number in range(count):
        for member in members:
            if flags[rows + (number * ranks + member) * ENTRY + COMING]:
                return True
    return False


@njit(cache=True, nogil=True)
def list_parts(flags, rows, ranks, members, count, header, parts):  # type: ignore[no-untyped-def]
    """Write the header of a message to another host; returns how many parts it has, -1 if there is no message.

    ``parts`` gets the sender of each, which is one of ``count``, its place and its words.
    """
    some, found = False, 0
    for target in range(members.size):
        for source in range(count):
            at = rows + (source * ranks + members[target]) * ENTRY
            place, words = flags[at + PLACE], flags[at + WORDS]
            some |= words >= 0
            if words > 0:
                parts[found] = source, place, words
                found += 1
                header[found] = (target * count + source) << SHIFT | words
    header[0] = found
    return found if some else -1


@njit(cache=True, nogil=True)
def find_parts(landing, number, starts, sizes):  # type: ignore[no-untyped-def]
    """Where the parts for a rank are in a message, and their words, by the number of their sender on its host."""
    count = np.int64(landing[0]) if landing.size else 0
    at = 1 + count
    for part in range(1, 1 + count):
        pair, words = np.int64(landing[part]) >> SHIFT, np.int64(landing[part]) & ((1 << SHIFT) - 1)
        target, source = divmod(pair, starts.size)
        if target == number:
            starts[source], sizes[source] = at, words
        at += words
