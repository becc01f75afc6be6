"""k-core on the CPU: see interfaces.py."""

from typing import Any

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import make_queue, set_bit
from cusp.partition import Partition
from gluon.device_cpu import no_bits
from gluon.sync import Sync


@njit(cache=True, nogil=True)
def find_left(end, core, degrees):  # type: ignore[no-untyped-def]
    lowest = last = 0
    for lid in range(end):
        if core[lid] < 0:
            lowest = degrees[lid] if last == 0 else min(lowest, degrees[lid])
            last = lid + 1
    return lowest, last


@njit(cache=True, nogil=True)
def peel(level, end, masters, offsets, targets, core, degrees, updated, queue):  # type: ignore[no-untyped-def]
    filled = 0
    for lid in range(end):
        if core[lid] < 0 and degrees[lid] <= level:
            core[lid] = level
            queue[filled] = lid
            filled += 1
    while filled > 0:
        filled -= 1
        lid = queue[filled]
        for edge in range(offsets[lid], offsets[lid + 1]):
            target = targets[edge]
            if target >= masters:
                degrees[target] -= np.int32(1)
                set_bit(updated, target)
            elif core[target] < 0:
                degrees[target] -= np.int32(1)
                if degrees[target] == level:
                    core[target] = level
                    queue[filled] = target
                    filled += 1


def plan_levels(part: Partition, sync: Sync) -> tuple[np.ndarray, np.ndarray]:
    """The queue, and bits for mirrors, of which there are none."""
    return make_queue(part), no_bits(part.num_proxies)


def peel_levels(part: Partition, plan: Any, first: int, last: int) -> tuple[np.ndarray, int]:
    core = np.full(part.num_masters, -1, np.int32)
    degrees = part.degrees.astype(np.int32)
    return core, _peel_levels(first, last, part.offsets, part.targets, core, degrees, *plan)


@njit(cache=True, nogil=True)
def _peel_levels(level, last, offsets, targets, core, degrees, queue, updated):  # type: ignore[no-untyped-def]
    """A round for each level; returns their number."""
    end, rounds = core.size, 0
    while True:
        lowest, end = find_left(end, core, degrees)
        level = max(level, lowest)
        if end == 0 or level > last:
            return rounds
        peel(level, end, core.size, offsets, targets, core, degrees, updated, queue)
        rounds += 1
