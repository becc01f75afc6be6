"""k-core on CPUs: see interfaces.py.

A proxy's row names those masters of this rank that are its neighbours. So who is peeled lowers degrees of masters only,
and of a node all that another rank has to learn is that it is gone.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import set_bit
from cusp.kernels.bits import first_bit, prefetch
from cusp.partition import Partition, transpose
from gluon.device_cpu import no_bits
from gluon.label import Label
from gluon.reduction import MAX
from gluon.sync import Sync

NOBODY = 1 << 31  # above all levels


@dataclass(frozen=True)
class KcorePlan:
    """What the peelings of one graph share.

    Attributes
    ----------
    sync : Sync
    offsets, neighbours : CSR of proxies
    mirrored : bits of masters that have mirrors, and none for mirrors
    queue : (proxies + 1,) int32
        Valid local ids everywhere, also where it is empty.
    """

    sync: Sync
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
    mirrored = np.zeros(part.num_proxies, np.bool_)
    for lids in sync.plan.any.masters:
        mirrored[lids] = True
    words = no_bits(part.num_proxies)
    bits = np.packbits(mirrored, bitorder="little")
    words.view(np.uint8)[: bits.size] = bits
    return KcorePlan(sync, *rows, words, np.zeros(part.num_proxies + 1, np.int32))


def peel_levels(part: Partition, plan: KcorePlan, first: int, last: int) -> tuple[np.ndarray, int]:
    """A rank peels until only others can tell it more; then all learn what is gone, and which level is next.

    That is this one again, as long as somebody was told something.
    """
    core = Label(part, np.int32, -1, MAX)
    left, degrees = np.arange(part.num_masters, dtype=np.int32), part.degrees.astype(np.int32)
    level, before, size, rounds = first, -1, left.size, 0
    while level <= last:
        size, next_level = _peel(
            level, before, size, part.num_masters, plan.offsets, plan.neighbours, plan.mirrored, core.values,
            degrees, core.updated, left, plan.queue,
        )  # fmt: skip
        plan.sync.broadcast(core, read="any", implied=level)
        before, level = level, int(plan.sync.lowest(next_level))
        rounds += 1
    return core.masters(), rounds


@njit(cache=True, nogil=True)
def _peel(  # type: ignore[no-untyped-def]
    level, before, size, masters, offsets, neighbours, mirrored, core, degrees, updated, left, queue
):
    """Peel until all that are left have more than ``level`` neighbours, as far as this rank knows.

    Returns how many of ``left`` can still be left, and the lowest level with something to do: this one for others.
    """
    filled = _take_mirrors(masters, updated, queue)
    next_level = level + 1
    if level > before:
        size, filled, lowest = _scan(level, before, size, degrees, left, queue)
        next_level = level + 1 if filled > 0 else lowest
    _lose(level, filled, masters, offsets, neighbours, core, degrees, updated, queue)
    told = np.uint64(0)
    for word in range(mirrored.size):
        told |= updated[word] & mirrored[word]
    if told:
        next_level = level
    elif size == 0:
        next_level = NOBODY
    return size, next_level


@njit(cache=True, nogil=True)
def _scan(level, before, size, degrees, left, queue):  # type: ignore[no-untyped-def]
    """Who has more than ``before`` neighbours was not peeled; with at most ``level``, it is now. The others stay."""
    kept = filled = 0
    lowest = NOBODY
    for place in range(size):
        lid = left[place]
        degree = degrees[lid]
        queue[filled] = lid
        filled += np.int64(before < degree <= level)
        left[kept] = lid
        kept += np.int64(degree > level)
        lowest = min(lowest, degree) if degree > level else lowest
    return kept, filled, lowest


@njit(cache=True, nogil=True)
def _lose(level, filled, masters, offsets, neighbours, core, degrees, updated, queue):  # type: ignore[no-untyped-def]
    """The neighbours of all in the queue lose one, and join it with the last that they can spare.

    Without branches on what is read from memory, so that it can be read ahead.
    """
    head, last = 0, queue.size - 1
    while head < filled:
        prefetch(offsets, queue[min(head + 8, last)])
        prefetch(neighbours, offsets[queue[min(head + 4, last)]])
        lid = queue[head]
        head += 1
        if lid < masters:
            core[lid] = level
            set_bit(updated, lid)
        for edge in range(offsets[lid], offsets[lid + 1]):
            neighbour = neighbours[edge]
            degree = degrees[neighbour]
            degrees[neighbour] = degree - np.int32(degree > level)
            queue[filled] = neighbour
            filled += np.int64(degree == level + 1)


@njit(cache=True, nogil=True)
def _take_mirrors(masters, updated, queue):  # type: ignore[no-untyped-def]
    """Mirrors that are gone, into the queue; returns how many. All bits are cleared."""
    filled = 0
    for word in range(updated.size):
        bits = updated[word]
        if bits:
            updated[word] = 0
            while bits:
                queue[filled] = word * 64 + first_bit(bits)
                filled += np.int64(queue[filled] >= masters)
                bits &= bits - np.uint64(1)
    return filled
