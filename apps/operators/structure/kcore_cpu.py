"""k-core on CPUs: see interfaces.py.

A proxy's row names those masters of this rank that are its neighbours. So who is peeled lowers degrees of masters only,
and of a node all that another rank needs is that it is gone.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cusp.apps.operators.interfaces import is_sparse, own_neighbours
from cusp.kernels.arrays import mapped
from cusp.kernels.bits import prefetch, prefetch_to_write, unsigned
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams import team as teams
from cusp.runtime.teams.atomics import atomic_add, atomic_min
from cusp.runtime.teams.together import helped, make_team
from cusp.runtime.threads import ALL, few, many, num_threads
from gluon.device_cpu import get_bit, move_bits, set_bit, set_bit_atomic
from gluon.label import Label
from gluon.reduction import MAX
from gluon.sync import Sync

NOBODY = (1 << 31) - 1  # above all degrees
BLOCK = 256  # masters
OWN = 1024  # nodes that a thread keeps for itself
LINE = 16  # counts in a line of the cache
SHARE, BLOCKS = 16, 64  # nodes and blocks that it takes at a time, at least
SCAN, LOSE, LOWER = range(3)
# Threads from which on a graph with hubs is peeled by all: kron22 by 2, 4, 8 and 16 takes 291, 210, 107 and 81 ms.
OF_HUBS = 4
MOST_HUBS = 1 << 16  # their counts, 256 KB a thread, stay in a core's cache
LEAST_HUBS = 256
WAITING = 64  # nodes whose degrees a thread lowers when the memory has brought them all
LEVEL, BEFORE, END, HEAD, MOST, GONE, HUBS = range(teams.FACTS, teams.FACTS + 7)
FILLED, LOWEST, LAST, MIRRORED = range(teams.SUMS, teams.SUMS + 4)
ALONE = 0  # count of those that a thread peeled without the queue


class Graph(NamedTuple):
    """What is peeled, as in :class:`KcorePlan`, what is known of masters, and memory."""

    offsets: np.ndarray
    neighbours: np.ndarray
    mirrored: np.ndarray
    core: np.ndarray
    degrees: np.ndarray
    updated: np.ndarray
    queue: np.ndarray
    lost: np.ndarray  # a row for each thread: how many neighbours it saw hubs lose, in this job


@dataclass(frozen=True)
class KcorePlan:
    """What the peelings of one graph share.

    Attributes
    ----------
    offsets, neighbours : CSR of proxies
    mirrored : bits of proxies
        Masters that have mirrors.
    queue : (proxies + 1,) int32
        Valid local ids everywhere, also where it is empty.
    """

    offsets: np.ndarray
    neighbours: np.ndarray
    mirrored: np.ndarray
    queue: np.ndarray


def plan_levels(part: Partition, sync: Sync, way: str) -> KcorePlan:
    mirrored = Label(part, np.uint8, 0, MAX)
    for lids in sync.plan.any.masters:
        mirrored.mark(lids)
    return KcorePlan(*own_neighbours(part), mirrored.updated, np.zeros(part.num_proxies + 1, np.int32))


def peel_levels(part: Partition, sync: Sync, plan: KcorePlan, first: int, last: int) -> tuple[np.ndarray, int]:
    """A rank peels as far as it can by itself; then peeled masters are broadcast, if any rank has some with mirrors."""
    core, degrees = Label(part, np.int32, -1, MAX), mapped(lambda some: some, part.degrees, dtype=np.int32)
    offsets, neighbours, queue = unsigned(plan.offsets, plan.neighbours, plan.queue)
    wide = part.num_local_edges >= many() and (is_sparse(part) or num_threads() >= OF_HUBS)
    hubs = 0 if is_sparse(part) or not wide else min(MOST_HUBS, degrees.size)
    lost = np.zeros((num_threads(), hubs + LINE), np.int32)
    graph = Graph(offsets, neighbours, plan.mirrored, core.values, degrees, core.updated, queue, lost)
    level, before, end, left, rounds = first, -1, degrees.size, degrees.size, 0
    with helped(_help, graph) if wide else nullcontext(make_team()) as team:
        while level <= last:
            next_level, end, left = _peel(team, few(), level, before, end, left, graph)
            before, level = level, int(sync.lowest(next_level))
            if level == before:
                sync.broadcast(core, read="any", implied=level)
            rounds += 1
    return core.masters(), rounds


@njit(cache=True, nogil=True)
def _peel(team, few, level, before, end, left, graph):  # type: ignore[no-untyped-def]
    """Peel until all that are left have more than ``level`` neighbours, as far as this rank knows.

    Returns the lowest level with something to do for any rank, this one if there is something to broadcast; the last
    that is left + 1, and how many are left.
    """
    mine = np.empty(OWN, np.uint32)
    team[LEVEL], team[MIRRORED], next_level = level, 0, level + 1
    filled = _take_mirrors(graph.degrees.size, graph.updated, graph.queue)
    if level > before:
        team[BEFORE], team[LOWEST], team[LAST], team[FILLED] = before, NOBODY, 0, 0
        blocks = (end + BLOCK - 1) // BLOCK
        team[END] = end
        if teams.is_worth(team, end, few):
            _work(team, mine, SCAN, blocks, graph)
        else:
            _scan(team, mine, 0, blocks, graph)
        filled, end = team[FILLED], -team[LAST]
        while end > 0 and graph.degrees[end - 1] <= level:
            end -= 1
        left -= filled
        next_level = level + 1 if filled > 0 else team[LOWEST]
    team[END], team[FILLED], team[MOST] = end, filled, filled + left
    head, team[GONE] = 0, 0  # how many are peeled and were not in the queue
    while head < team[FILLED]:
        filled = team[FILLED]
        edges = (filled - head) * (level + 1)  # each has lost so many, or will
        if teams.is_worth(team, edges, few):
            team[HEAD], team[HUBS] = head, min(graph.lost.shape[1] - LINE, end, max(LEAST_HUBS, edges // 2))
            _work(team, mine, LOSE, filled - head, graph)
            head = filled
            team[GONE] += teams.total(team, ALONE)
            if team[HUBS] > 0:
                _work(team, mine, LOWER, team[HUBS], graph)
        else:
            head = _lose(team, head, few, graph)
    left = team[MOST] - team[FILLED] - team[GONE]
    if left == 0:
        next_level = NOBODY
    return level if team[MIRRORED] else next_level, end, left


@njit(cache=True, nogil=True)
def _help(team, number, graph):  # type: ignore[no-untyped-def]
    """What a helper does."""
    mine = np.empty(OWN, np.uint32)
    job = teams.wait_for_job(team, number, 0)
    while job >= 0:
        _do_shares(team, number, mine, graph)
        job = teams.leave(team, number, job)


@njit(cache=True, nogil=True)
def _work(team, mine, kind, entries, graph):  # type: ignore[no-untyped-def]
    """Do a job with the helpers."""
    teams.call(team, kind, entries, BLOCKS if kind == SCAN else SHARE)
    _do_shares(team, 0, mine, graph)
    teams.dismiss(team)


@njit(cache=True, nogil=True)
def _do_shares(team, number, mine, graph):  # type: ignore[no-untyped-def]
    if team[teams.KIND] == LOSE:
        _lose_beside_others(team, number, mine, graph)
        return
    first, last = teams.take(team)
    while first < last:
        if team[teams.KIND] == SCAN:
            _scan(team, mine, first, last, graph)
        else:
            _lower_hubs(team, mine, first, last, graph)
        first, last = teams.take(team)


@njit(cache=True, nogil=True)
def _scan(team, mine, first, last, graph):  # type: ignore[no-untyped-def]
    """Who has more than BEFORE neighbours was not peeled; with at most LEVEL, it is now: into the queue.

    Of those who stay, the team gets the lowest degree and the last + 1. Most blocks of masters are only looked at for
    their lowest degree, many at a time.
    """
    level, before, filled, lowest, stay = team[LEVEL], team[BEFORE], 0, np.int64(NOBODY), 0
    for block in range(first, last):
        begin = block * BLOCK
        degrees = graph.degrees[begin : min(begin + BLOCK, team[END])]
        low = _lowest_above(np.int32(before), degrees)
        if low <= level:
            if filled > OWN - BLOCK:
                teams.append(team, FILLED, mine, filled, graph.queue)
                filled = 0
            for place in range(degrees.size):
                mine[filled] = begin + place
                filled += np.int64((degrees[place] > before) & (degrees[place] <= level))
            low = _lowest_above(np.int32(level), degrees)
        if low < NOBODY:
            lowest, stay = min(lowest, low), begin + degrees.size
    teams.append(team, FILLED, mine, filled, graph.queue)
    atomic_min(team, LOWEST, lowest)
    atomic_min(team, LAST, -stay)


@njit(cache=True, nogil=True)
def _lowest_above(least, degrees):  # type: ignore[no-untyped-def]
    """The lowest degree above ``least``, or NOBODY."""
    lowest = np.int32(NOBODY)
    for place in range(degrees.size):
        lowest = min(lowest, degrees[place] if degrees[place] > least else np.int32(NOBODY))
    return np.int64(lowest)


@njit(cache=True, nogil=True)
def _lose(team, head, few, graph):  # type: ignore[no-untyped-def]
    """The neighbours of all in the queue lose one, and join it with the last that they can spare.

    Rows ascend, so they can be left where all that follow are gone; and once all are gone, there is nothing to lose.
    Places are unsigned. Without branches on what is at random places in memory, so that it can be read ahead. Returns
    how far it has come: to the end of the queue, or to where it is a job for several.
    """
    offsets, neighbours, mirrored, core, degrees, updated, queue, _ = graph
    level, end, filled, most = team[LEVEL], team[END], team[FILLED], team[MOST] - team[GONE]
    masters, last = degrees.size, queue.size - 1
    crowd = (few << team[teams.LATE]) // (level + 1) + 1 if team[teams.HELPERS] > 0 else ALL
    while head < filled and filled - head < crowd:
        prefetch(offsets, queue[min(head + 8, last)])
        prefetch(neighbours, offsets[queue[min(head + 4, last)]])
        lid = queue[head]
        head += 1
        if lid < masters:
            core[lid] = level
            if get_bit(mirrored, lid):
                set_bit(updated, lid)
                team[MIRRORED] = 1
        if filled == most:
            continue
        for edge in range(offsets[lid], offsets[lid + np.uint64(1)]):
            neighbour = neighbours[edge]
            if neighbour >= end:
                break
            degree = degrees[neighbour]
            degrees[neighbour] = degree - np.int32(degree > level)
            queue[filled] = neighbour
            filled += np.int64(degree == level + 1)
    team[FILLED] = filled
    return head


@njit(cache=True, nogil=True)
def _lose_beside_others(team, number, mine, graph):  # type: ignore[no-untyped-def]
    """What :func:`_lose` does, of shares; whom a thread finds it goes on with, up to a list of its own.

    Who brings a degree down to the level takes the node; that it may fall further does not matter. If there are hubs,
    the first nodes, most threads would meet there: each counts for itself what they lose, and :func:`_lower_hubs`
    follows.
    """
    offsets, neighbours, mirrored, core, degrees, updated, queue, _ = graph
    level, end, head, masters, one = team[LEVEL], team[END], team[HEAD], degrees.size, np.uint64(1)
    hubs, lost = team[HUBS], graph.lost[number]
    over, taken, found, gone = team[teams.ENTRIES] + team[HEAD] + team[GONE] == team[MOST], 0, 0, 0
    place, last = teams.take(team)
    waiting, size = np.empty(WAITING, np.uint32), 0
    while True:
        if place < last:
            lid = queue[head + place]
            prefetch(offsets, queue[head + min(place + 8, last - 1)])
            prefetch(neighbours, offsets[queue[head + min(place + 4, last - 1)]])
            place += 1
            if place == last:
                place, last = teams.take(team)
        elif taken < found:
            lid = mine[taken]
            taken += 1
            gone += 1
        elif size > 0:
            taken, found = _lower(team, mine, taken, found, waiting, size, graph)
            size = 0
            continue
        else:
            break
        if lid < masters:
            core[lid] = level
            if get_bit(mirrored, lid):
                set_bit_atomic(updated, lid)
                team[MIRRORED] = 1
        if over:
            continue
        for edge in range(offsets[lid], offsets[lid + one]):
            neighbour = neighbours[edge]
            if neighbour >= end:
                break
            if neighbour < hubs:
                lost[neighbour] += 1
            elif degrees[neighbour] > level:
                prefetch_to_write(degrees, neighbour)
                waiting[size] = neighbour
                size += 1
                if size == WAITING:
                    taken, found = _lower(team, mine, taken, found, waiting, size, graph)
                    size = 0
    teams.count(team, number, ALONE, gone)


@njit(cache=True, nogil=True)
def _lower(team, mine, taken, found, waiting, size, graph):  # type: ignore[no-untyped-def]
    """Nodes lose a neighbour each; a thread has found those with the last that they can spare."""
    for place in range(size):
        if atomic_add(graph.degrees, waiting[place], np.int32(-1)) == team[LEVEL] + 1:
            if found == OWN:
                teams.append(team, FILLED, mine[taken:], OWN - taken, graph.queue)
                taken = found = 0
            mine[found] = waiting[place]
            found += 1
    return taken, found


@njit(cache=True, nogil=True)
def _lower_hubs(team, mine, first, last, graph):  # type: ignore[no-untyped-def]
    """Hubs lose what all threads have counted; those with the last that they can spare are put into the queue."""
    level, filled, sums = np.int32(team[LEVEL]), 0, graph.lost[0, first:last]
    for number in range(1, graph.lost.shape[0]):
        more = graph.lost[number, first:last]
        for place in range(sums.size):
            sums[place] += more[place]
            more[place] = 0
    for place in range(sums.size):
        degree = graph.degrees[first + place]
        if sums[place] > 0 and degree > level:
            graph.degrees[first + place] = degree - sums[place]
            if degree - sums[place] <= level:
                mine[filled] = first + place
                filled += 1
                if filled == OWN:
                    teams.append(team, FILLED, mine, filled, graph.queue)
                    filled = 0
        sums[place] = 0
    teams.append(team, FILLED, mine, filled, graph.queue)


@njit(cache=True, nogil=True)
def _take_mirrors(masters, updated, queue):  # type: ignore[no-untyped-def]
    """Mirrors that are gone, into the queue; returns how many. All bits are cleared."""
    filled = 0
    if queue.size - 1 > masters:
        for place in range(move_bits(updated, queue)):
            queue[filled] = queue[place]
            filled += np.int64(queue[filled] >= masters)
    return filled
