"""k-core on the CPU: see interfaces.py."""

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import set_bit


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
