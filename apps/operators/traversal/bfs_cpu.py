"""Breadth-first search on the CPU: see interfaces.py."""

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import get_bit, set_bit
from cusp.kernels.bits import first_bit


@njit(cache=True, nogil=True)
def bfs_push(frontier, offsets, targets, gids, gid_mask, level, unreached, values, updated, queue):  # type: ignore[no-untyped-def]
    for word in range(frontier.size):
        bits = frontier[word]
        while bits:
            source = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            value = level | (gids[source] & gid_mask)
            for edge in range(offsets[source], offsets[source + 1]):
                target = targets[edge]
                if values[target] == unreached:
                    values[target] = value
                    set_bit(updated, target)


@njit(cache=True, nogil=True)
def bfs_pull(frontier, offsets, sources, gids, gid_mask, level, unreached, values, updated, queue):  # type: ignore[no-untyped-def]
    for target in range(offsets.size - 1):
        if values[target] == unreached:
            for edge in range(offsets[target], offsets[target + 1]):
                source = sources[edge]
                if get_bit(frontier, source):
                    values[target] = level | (gids[source] & gid_mask)
                    set_bit(updated, target)
                    break
