"""Shortest paths over CPU ranks that share memory: one call for a whole search, without rounds.

A rank relaxes its pending nodes bucket by bucket, as on its own (sssp_cpu.py), and after a few of them takes in what
others have lowered, and tells them what it has. Who has nothing to do looks for more until all is over: inboxes_cpu.py.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import get_bit, set_bit
from apps.operators.traversal.buckets_cpu import bucket_end, in_order
from cusp.kernels.bits import prefetch, unsigned
from cusp.partition import Partition
from cusp.runtime import watchdog
from cusp.runtime.exchange import pauses
from gluon.device_cpu import no_bits
from gluon.peers.inboxes_cpu import ENTRIES as MOST_UNREAD
from gluon.peers.inboxes_cpu import (
    Inboxes,
    inboxes_of,
    is_full,
    is_over,
    look,
    may_go_on,
    num_unread,
    put,
    set_working,
    show,
    take,
    tell_progress,
)
from gluon.peers.proxies_cpu import TO_MASTER, PeerProxies, proxies_of

if TYPE_CHECKING:
    from gluon.sync import Sync

EDGES = 256  # that are relaxed between two looks at what others say: about as long as it takes them to say it
SLACK = 1  # buckets that a rank may be ahead of the others: what they lower later is relaxed again
POLLS = 10_000  # looks for something to do before the core is offered to others, if ranks do not share cores
PATIENCE = 500  # looks at how far others have come before a rank goes on all the same, and where ranks share cores
LITTLE_PATIENCE = 4
HEAD, TAIL, PILED, OWED, BUCKETS, MESSAGES, ENTRIES, LOOKS = range(8)  # of the state of a search
OVER, WORKED, WAITED = range(3)


@dataclass(frozen=True)
class PeerRelaxing:
    """What searches over the ranks of a host share.

    Attributes
    ----------
    near, pile, owing : (proxies + 1,), (proxies,), (proxies + 1,) int32
        Valid local ids in ``near``, also where it is empty.
    rows : int
        Proxies up to the last one with out-edges.
    """

    inboxes: Inboxes
    proxies: PeerProxies
    near: np.ndarray
    pile: np.ndarray
    owing: np.ndarray
    news: np.ndarray
    rows: int


def plan_peers(part: Partition, sync: "Sync", near: np.ndarray, pile: np.ndarray, rows: int) -> PeerRelaxing | None:
    """What searches of a partition share, if its ranks share memory. Collective."""
    inboxes = inboxes_of(sync.comm) if sync.plan.transport == "peer" else None
    if inboxes is None:
        return None
    owing = np.empty(part.num_proxies + 1, np.int32)
    longest = int(np.diff(part.offsets).max(initial=0))
    news = np.empty(max(MOST_UNREAD, EDGES + longest), np.int32)
    return PeerRelaxing(inboxes, proxies_of(part, sync), near, pile, owing, news, rows)


def shortest_paths(part: Partition, sync: "Sync", source: int, lengths: Any, plan: PeerRelaxing) -> tuple[Any, int]:
    """Distances of all proxies, and the most buckets of a rank. Collective."""
    number, inboxes = lengths.dtype.type, plan.inboxes
    far, delta = number(lengths.far), number(min(lengths.delta, lengths.far))
    values, (waits, later, owes) = np.full(part.num_proxies, far), [no_bits(part.num_proxies) for _ in range(3)]
    state, limits = np.zeros(8, np.int64), np.array([delta], lengths.dtype)
    lid = part.lid(source)
    if lid >= 0:
        values[lid] = 0
        if lid < plan.rows:
            waits[lid >> 6] |= np.uint64(1 << (lid & 63))
            plan.near[0], state[TAIL] = lid, 1
    rows = unsigned(part.offsets, part.targets)
    graph = (plan.rows, *rows, lengths.weights, delta, far, values, waits, later, owes)
    places = (*unsigned(plan.near, plan.pile, plan.owing), plan.news, state, limits)
    memory = (inboxes.words, inboxes.words.view(lengths.dtype), inboxes.rank, inboxes.ranks)
    patience = (POLLS, PATIENCE) if inboxes.cores >= inboxes.ranks else (0, LITTLE_PATIENCE)
    run = inboxes.begin(sync)
    result = WORKED
    while result != OVER:
        for _ in pauses():
            watchdog.step()
            result = search(*patience, run, *memory, *plan.proxies, *graph, *places)
            if result != WAITED:
                break
    sync.add_traffic("reduce", int(state[MESSAGES]), 16 * int(state[ENTRIES]))
    return values, int(sync.highest(int(state[BUCKETS])))


@njit(cache=True, nogil=True)
def search(  # type: ignore[no-untyped-def]
    polls, patience, run, words, items, rank, ranks, begins, partners, shared, starts, lids, rows, offsets, targets,
    weights, delta, far, values, waits, later, owes, near, pile, owing, news, state, limits
):  # fmt: skip
    """Relax, tell and listen until all is over, or there was nothing to do for so many looks."""
    numbers, last, one = np.zeros(ranks, np.int64), near.size - 1, np.uint64(1)
    head, tail, piled, owed, limit = state[HEAD], state[TAIL], state[PILED], state[OWED], limits[0]
    result, left = WAITED, polls
    while True:
        came = edges = told = new = 0
        for source in range(ranks):
            entries = num_unread(words, ranks, source, rank)
            if entries > 0:
                set_working(words, rank, 1)
                new = _take_in(entries, source, words, items, rank, ranks, starts, lids, values, news)
                tail, piled, owed = _admit(
                    new, news, limit, rows, values, waits, later, owes, shared, near, pile, owing, tail, piled, owed
                )
                came += entries
        if head == tail and piled > 0:
            head, tail, piled, limit = _open_bucket(
                words, rank, ranks, delta, far, values, waits, later, near, pile, piled, limit, state[LOOKS] < patience
            )
            state[BUCKETS] += tail > 0
            state[LOOKS] = 0 if tail > 0 else state[LOOKS] + 1
        new = 0
        while head != tail and edges < EDGES:
            prefetch(offsets, near[min(head + 8, last)])
            soon = offsets[near[min(head + 4, last)]]
            prefetch(targets, soon)
            prefetch(weights, soon)
            node = near[head]
            head = head + 1 if head < last else 0
            value = values[node]
            waits[node >> 6] &= ~(np.uint64(1) << np.uint64(node & 63))
            longest = far - value
            edges += np.int64(offsets[node + one] - offsets[node]) + 1
            for edge in range(offsets[node], offsets[node + one]):
                target = targets[edge]
                candidate = value + weights[edge]
                if candidate < values[target] and weights[edge] < longest:
                    values[target] = candidate
                    news[new] = target
                    new += 1
        if new > 0:
            tail, piled, owed = _admit(
                new, news, limit, rows, values, waits, later, owes, shared, near, pile, owing, tail, piled, owed
            )
        if owed > 0:
            told, owed = _tell(numbers, words, items, rank, ranks, begins, partners, values, owes, owing, owed)
            state[ENTRIES] += told
            state[MESSAGES] += told > 0
        if came + edges + told > 0:
            result, left = WORKED, polls
            continue
        over = False
        if owed == 0 and piled == 0:
            set_working(words, rank, 0)
            over = is_over(words, ranks, run, numbers)
        left -= 1
        if over or left < 0:
            state[HEAD], state[TAIL], state[PILED], state[OWED], limits[0] = head, tail, piled, owed, limit
            return OVER if over else result


@njit(cache=True, nogil=True)
def _take_in(entries, source, words, items, rank, ranks, starts, lids, values, news):  # type: ignore[no-untyped-def]
    """Take in what a rank has told this one. Returns how many proxies fell for it: ``news``, ~lid of mirrors."""
    new = 0
    for entry in range(entries):
        name, value = look(words, items, ranks, source, rank, entry)
        lid = lids[starts[2 * source + (name & 1)] + (name >> 1)]
        if value < values[lid]:
            values[lid] = value
            news[new] = lid if name & 1 == TO_MASTER else ~lid
            new += 1
    take(words, ranks, source, rank, entries)
    return new


@njit(cache=True, nogil=True)
def _admit(  # type: ignore[no-untyped-def]
    new, news, limit, rows, values, waits, later, owes, shared, near, pile, owing, tail, piled, owed
):  # fmt: skip
    """Proxies that are lower wait for this bucket or on the pile, if they have out-edges, and are owed to others.

    Not those named ~lid: it is others who have told. Returns tail, piled and owed.
    """
    for place in range(new):
        lid = np.int64(news[place])
        if lid < 0:
            lid = ~lid
        elif get_bit(shared, lid) and not get_bit(owes, lid):
            set_bit(owes, lid)
            owing[owed] = lid
            owed += 1
        if lid < rows:
            if values[lid] >= limit:
                if not get_bit(later, lid):
                    set_bit(later, lid)
                    pile[piled] = lid
                    piled += 1
            elif not get_bit(waits, lid):
                set_bit(waits, lid)
                near[tail] = lid
                tail = tail + 1 if tail + 1 < near.size else 0
    return tail, piled, owed


@njit(cache=True, nogil=True)
def _open_bucket(  # type: ignore[no-untyped-def]
    words, rank, ranks, delta, far, values, waits, later, near, pile, piled, limit, patient
):  # fmt: skip
    """Take the nodes of the lowest bucket from the pile; if ``patient``, not before others have come so far.

    Returns head and tail of those near, how many are on the pile, and the limit.
    """
    lowest = far
    for place in range(piled):
        value = values[pile[place]]
        if value >= limit:  # else it was relaxed as near
            lowest = min(lowest, value)
    tell_progress(words, rank, lowest)
    done = limit
    if lowest < far:
        if patient and not may_go_on(words, rank, ranks, lowest - SLACK * delta):
            return 0, 0, piled, limit
        limit = values.dtype.type(bucket_end(lowest, delta, far))
    kept = tail = 0
    for place in range(piled):
        node = pile[place]
        if values[node] >= limit:
            pile[kept] = node
            kept += 1
            continue
        later[node >> 6] &= ~(np.uint64(1) << np.uint64(node & 63))
        if values[node] >= done:
            set_bit(waits, node)
            near[tail] = node
            tail += 1
    if tail > waits.size >> 3:
        tail = in_order(waits, limit, values, near)
    return 0, tail, kept, limit


@njit(cache=True, nogil=True)
def _tell(numbers, words, items, rank, ranks, begins, partners, values, owes, owing, owed):  # type: ignore[no-untyped-def]
    """Tell others what is owed, as far as there is room. Returns how many entries were told, and what is owed still."""
    kept = told = 0
    numbers[:] = 0
    for place in range(owed):
        lid, room = owing[place], True
        for entry in range(begins[lid], begins[lid + 1]):
            target = partners[entry] >> 48
            if is_full(words, ranks, rank, target, numbers[target]):
                room = False
                continue
            put(words, items, ranks, rank, target, numbers[target], partners[entry] & ((1 << 48) - 1), values[lid])
            numbers[target] += 1
        if room:
            owes[lid >> 6] &= ~(np.uint64(1) << np.uint64(lid & 63))
        else:
            owing[kept] = lid
            kept += 1
    for target in range(ranks):
        if numbers[target] > 0:
            show(words, ranks, rank, target, numbers[target])
            told += numbers[target]
    return told, kept
