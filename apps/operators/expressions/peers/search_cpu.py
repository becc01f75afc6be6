"""Drains over CPU ranks that share memory: a whole run in one call, without rounds.

A rank relaxes its pending nodes bucket by bucket, as on its own (drains_cpu.py), and after a few of them takes in what
others have changed, and sends them what it has. A rank without work polls for more until all is over: inboxes_cpu.py.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cusp.apps.operators.interfaces import kept_with
from cusp.apps.operators.pending_cpu import BUCKETS, EDGES, Pending, begin
from cusp.partition import Partition
from cusp.runtime import watchdog
from cusp.runtime.compiled_code import njit
from cusp.runtime.exchange import pauses
from gluon.device_cpu import get_bit, no_bits, set_bit
from gluon.label import Label
from gluon.peers.inboxes_cpu import inboxes_of, is_full, put, show
from gluon.peers.proxies_cpu import proxies_of

if TYPE_CHECKING:
    from gluon.sync import Sync

AT_A_TIME = 256  # edges that are relaxed between two looks at what others sent: about as long as sending takes
SLACK = 1  # buckets that a rank may be ahead of the others: what they change later is relaxed again
POLLS = 10_000  # looks for something to do before :func:`pauses`, if ranks do not share cores
PATIENCE = 500  # looks at how far others have come before a rank goes on all the same, and where ranks share cores
LITTLE_PATIENCE = 4
OVER, WORKED, WAITED = range(3)
WAITING, MESSAGES, ENTRIES, LOOKS, COUNTS = range(5)


class Unsent(NamedTuple):
    """What a rank has changed and others do not know yet.

    Attributes
    ----------
    bits : bits of proxies
    lids : (proxies,) uint32
        The same as a list.
    counts : (COUNTS,) int64
        How many there are; messages and entries that were sent; looks at how far others have come, since a bucket.
    """

    bits: np.ndarray
    lids: np.ndarray
    counts: np.ndarray


MARK = {"marks": ", unsent, shared", "taken": "", "mark": "add(unsent, shared, col)"}
MEETING = '''
from cusp.apps.operators.expressions.peers.search_cpu import AT_A_TIME, LOOKS, OVER, SLACK, WAITED, WAITING, WORKED
from cusp.apps.operators.expressions.peers.search_cpu import add, send
from gluon.peers.inboxes_cpu import have_read, look, may_go_on, num_unread, rest, set_working, tell_progress
from gluon.peers.proxies_cpu import TO_MASTER


@njit(cache=True, nogil=True, error_model="numpy")
def take_in(words, items, rank, ranks, proxies, unsent, pending, rows, values{of_key}):
    """Take in what other ranks have sent this one; whether that was anything."""
    some = False
    for source in range(ranks):
        entries = num_unread(words, ranks, source, rank)
        if entries == 0:
            continue
        set_working(words, rank, 1)
        for entry in range(entries):
            name, value = look(words, items, ranks, source, rank, entry)
            col = np.int64(proxies.lids[proxies.starts[2 * source + (name & 1)] + (name >> 1)])
            old = values[col]
            result = Value({joined})
            if {changed}:
                values[col] = result
                if name & 1 == TO_MASTER:
                    add(unsent, proxies.shared, col)
                if col < rows:
                    admit(pending, col, key_of(col, result{of_key}))
        have_read(words, ranks, source, rank, entries)
        some = True
    return some


@njit(cache=True, nogil=True, error_model="numpy")
def next_bucket(words, rank, ranks, patience, looks, delta, pending, values{of_key}):
    """Open the lowest bucket; not before others have come so far, unless that took long."""
    limit, opened, first = pending.limits[LIMIT], pending.places[OPENED], LAST
    waits, pile = False, pending.lists[pending.places[PILE]]
    for place in range(pending.places[PILED]):
        key = key_of(pile[place], values[pile[place]]{of_key})
        if not opened or key > limit:
            first, waits = min(first, key), True
    tell_progress(words, rank, Float(first))
    if waits:
        if looks < patience and not may_go_on(words, rank, ranks, Float(first) - SLACK * Float(delta)):
            return
        limit = end_of(first, delta)
    open_bucket(pending, limit, values{of_key})
'''
SEARCH = '''

@njit(cache=True, nogil=True, error_model="numpy")
def search(polls, patience, run, words, items, rank, ranks, proxies, unsent, pending, delta, rows, offsets, columns,
           values{parameters}):
    """Relax, send and receive until all is over, or there was nothing to do for so many looks.

    Where there are no ranks, only relax, about ``run`` edges.
    """
    numbers, places, counts = np.zeros(ranks, np.int64), pending.places, unsent.counts
    result, left = WAITED, polls
    while True:
        worked = take_in(words, items, rank, ranks, proxies, unsent, pending, rows, values{of_key})
        if places[HEAD] == places[TAIL] and places[PILED] > 0:
            next_bucket(words, rank, ranks, patience, counts[LOOKS], delta, pending, values{of_key})
            counts[LOOKS] = counts[LOOKS] + 1 if places[HEAD] == places[TAIL] else 0
        if places[HEAD] != places[TAIL]:
            edges = relax(pending, AT_A_TIME, rows, offsets, columns, values, unsent, proxies.shared{parameters})
            places[EDGES] += edges
            worked = True
        if ranks == 0 and (places[EDGES] >= run or not worked):
            return WORKED
        if counts[WAITING] > 0 and ranks > 0:
            worked |= send(numbers, words, items, rank, ranks, proxies, values, unsent)
        if worked:
            result, left = WORKED, polls
            continue
        over = counts[WAITING] == 0 and places[PILED] == 0 and rest(words, rank, ranks, run, numbers)
        left -= 1
        if over or left < 0:
            return OVER if over else result
'''


class PeerSearch:
    """A search of all ranks, over what is pending on each; ``arguments``: those of its loop, from ``delta`` on."""

    def __init__(
        self, search: Any, part: Partition, sync: "Sync", write: str, read: str, label: Label, pending: Pending
    ) -> None:
        inboxes = inboxes_of(sync.comm)
        assert inboxes is not None
        self._search, self._sync, self._inboxes, self._pending = search, sync, inboxes, pending
        self._proxies = kept_with(part, (write, read), lambda: proxies_of(part, sync, write, read))
        proxies = part.num_proxies
        self._unsent = Unsent(no_bits(proxies), np.empty(proxies, np.uint32), np.zeros(COUNTS, np.int64))
        self._dtype = label.values.dtype

    def alone(self, edges: int, *arguments: Any) -> int:
        """Relax about so many edges, before all begin; how many were. Others are told later what has changed."""
        begin(self._pending)
        self._run(0, 0, edges, 0, arguments)
        return int(self._pending.places[EDGES])

    def together(self, *arguments: Any) -> int:
        """Run until all is over. Collective; returns most buckets."""
        begin(self._pending)
        inboxes, counts = self._inboxes, self._unsent.counts
        patience = (POLLS, PATIENCE) if inboxes.cores >= inboxes.ranks else (0, LITTLE_PATIENCE)
        run = inboxes.begin(self._sync)
        result = WORKED
        while result != OVER:
            for _ in pauses():
                result = self._run(*patience, run, inboxes.ranks, arguments)
                if result != WAITED:
                    watchdog.step()
                    break
        self._sync.add_traffic("reduce", int(counts[MESSAGES]), 16 * int(counts[ENTRIES]))
        return int(self._sync.highest(int(self._pending.places[BUCKETS])))

    def _run(self, polls: int, patience: int, run: int, ranks: int, arguments: tuple[Any, ...]) -> int:
        words, rank = self._inboxes.words, self._inboxes.rank
        rest = (words, words.view(self._dtype), rank, ranks, self._proxies, self._unsent, self._pending)
        return self._search(polls, patience, run, *rest, *arguments)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def add(unsent, shared, lid):  # type: ignore[no-untyped-def]
    """A proxy has changed; its partners need its value, if it has any."""
    if get_bit(shared, lid) and not get_bit(unsent.bits, lid):
        set_bit(unsent.bits, lid)
        unsent.lids[unsent.counts[WAITING]] = lid
        unsent.counts[WAITING] += 1


@njit(cache=True, nogil=True)
def send(numbers, words, items, rank, ranks, proxies, values, unsent):  # type: ignore[no-untyped-def]
    """Send what is unsent, as far as there is room; whether that was anything."""
    kept, begins, partners, counts = 0, proxies.begins, proxies.partners, unsent.counts
    numbers[:] = 0
    for place in range(counts[WAITING]):
        lid, room = np.int64(unsent.lids[place]), True
        for entry in range(begins[lid], begins[lid + 1]):
            target = partners[entry] >> 48
            if is_full(words, ranks, rank, target, numbers[target]):
                room = False
                continue
            put(words, items, ranks, rank, target, numbers[target], partners[entry] & ((1 << 48) - 1), values[lid])
            numbers[target] += 1
        if room:
            unsent.bits[lid >> 6] &= ~(np.uint64(1) << np.uint64(lid & 63))
        else:
            unsent.lids[kept] = lid
            kept += 1
    sent = 0
    for target in range(ranks):
        if numbers[target] > 0:
            show(words, ranks, rank, target, numbers[target])
            sent += numbers[target]
    counts[WAITING] = kept
    counts[MESSAGES] += sent > 0
    counts[ENTRIES] += sent
    return sent > 0
