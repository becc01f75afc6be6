"""k-core on CPUs: see interfaces.py.

A proxy's row names those masters of this rank that are its neighbours. So who is peeled lowers degrees of masters only,
and of a node all that another rank needs is that it is gone.
"""

from dataclasses import dataclass

import numpy as np

from cusp.apps.operators.frontier_cpu import get_bit, set_bit
from cusp.kernels.bits import prefetch, unsigned
from cusp.partition import Partition, transpose
from cusp.runtime.compiled_code import njit
from gluon.device_cpu import move_bits
from gluon.label import Label
from gluon.reduction import MAX
from gluon.sync import Sync

NOBODY = (1 << 31) - 1  # above all degrees
BLOCK = 256  # masters


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


def plan_levels(part: Partition, sync: Sync) -> KcorePlan:
    """Without mirrors, the rows of masters are what a transposition would make of them."""
    rows = part.offsets, part.targets
    if part.num_proxies > part.num_masters:
        csc = transpose(part)
        rows = csc.offsets, csc.sources
    mirrored = Label(part, np.uint8, 0, MAX)
    for lids in sync.plan.any.masters:
        mirrored.mark(lids)
    return KcorePlan(*rows, mirrored.updated, np.zeros(part.num_proxies + 1, np.int32))


def peel_levels(part: Partition, sync: Sync, plan: KcorePlan, first: int, last: int) -> tuple[np.ndarray, int]:
    """A rank peels as far as it can by itself; then peeled masters are broadcast, if any rank has some with mirrors."""
    core, degrees = Label(part, np.int32, -1, MAX), part.degrees.astype(np.int32)
    offsets, neighbours, queue = unsigned(plan.offsets, plan.neighbours, plan.queue)
    level, before, end, left, rounds = first, -1, degrees.size, degrees.size, 0
    while level <= last:
        next_level, end, left = _peel(
            level, before, end, left, offsets, neighbours, plan.mirrored, core.values, degrees, core.updated, queue
        )  # fmt: skip
        before, level = level, int(sync.lowest(next_level))
        if level == before:
            sync.broadcast(core, read="any", implied=level)
        rounds += 1
    return core.masters(), rounds


@njit(cache=True, nogil=True)
def _peel(  # type: ignore[no-untyped-def]
    level, before, end, left, offsets, neighbours, mirrored, core, degrees, updated, queue
):
    """Peel until all that are left have more than ``level`` neighbours, as far as this rank knows.

    Returns the lowest level with something to do for any rank, this one if there is something to broadcast; the last
    that is left + 1, and how many are left.
    """
    filled = _take_mirrors(degrees.size, updated, queue)
    next_level = level + 1
    if level > before:
        filled, lowest, end = _scan(level, before, end, degrees, queue)
        left -= filled
        next_level = level + 1 if filled > 0 else lowest
    left, marked = _lose(level, filled, end, left, offsets, neighbours, mirrored, core, degrees, updated, queue)
    if left == 0:
        next_level = NOBODY
    return level if marked else next_level, end, left


@njit(cache=True, nogil=True)
def _scan(level, before, end, degrees, queue):  # type: ignore[no-untyped-def]
    """Who has more than ``before`` neighbours was not peeled; with at most ``level``, it is now: into the queue.

    Returns how many, and of those who stay the lowest degree and the last + 1. Most blocks of masters are only looked
    at for their lowest degree, many at a time.
    """
    filled = last = 0
    lowest = NOBODY
    for first in range(0, end, BLOCK):
        block = degrees[first : min(first + BLOCK, end)]
        low = _lowest_above(np.int32(before), block)
        if low <= level:
            for place in range(block.size):
                queue[filled] = first + place
                filled += np.int64((block[place] > before) & (block[place] <= level))
            low = _lowest_above(np.int32(level), block)
        if low < NOBODY:
            lowest, last = min(lowest, low), first + block.size
    while last > 0 and degrees[last - 1] <= level:
        last -= 1
    return filled, lowest, last


@njit(cache=True, nogil=True)
def _lowest_above(least, degrees):  # type: ignore[no-untyped-def]
    """The lowest degree above ``least``, or NOBODY."""
    lowest = np.int32(NOBODY)
    for place in range(degrees.size):
        lowest = min(lowest, degrees[place] if degrees[place] > least else np.int32(NOBODY))
    return np.int64(lowest)


@njit(cache=True, nogil=True)
def _lose(level, filled, end, left, offsets, neighbours, mirrored, core, degrees, updated, queue):  # type: ignore[no-untyped-def]
    """The neighbours of all in the queue lose one, and join it with the last that they can spare.

    Rows ascend, so they can be left where all that follow are gone; and once all are gone, there is nothing to lose.
    Places are unsigned. Without branches on what is at random places in memory, so that it can be read ahead. Returns
    how many are left, and whether there is something to broadcast.
    """
    masters, head, last = degrees.size, 0, queue.size - 1
    marked = np.uint64(0)
    most = filled + left
    while head < filled:
        prefetch(offsets, queue[min(head + 8, last)])
        prefetch(neighbours, offsets[queue[min(head + 4, last)]])
        lid = queue[head]
        head += 1
        if lid < masters:
            core[lid] = level
            set_bit(updated, lid)
            marked |= get_bit(mirrored, lid)
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
    return most - filled, marked > 0


@njit(cache=True, nogil=True)
def _take_mirrors(masters, updated, queue):  # type: ignore[no-untyped-def]
    """Mirrors that are gone, into the queue; returns how many. All bits are cleared."""
    filled = 0
    for place in range(move_bits(updated, queue)):
        queue[filled] = queue[place]
        filled += np.int64(queue[filled] >= masters)
    return filled
