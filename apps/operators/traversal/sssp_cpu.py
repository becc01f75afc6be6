"""Shortest paths on the CPU: see interfaces.py."""

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import get_bit, make_queue, set_bit
from cusp.kernels.bits import first_bit
from cusp.partition import Partition
from gluon.sync import Sync


def bucket_scale(queue: np.ndarray, ranks: int) -> float:
    return 1.0


def plan_relaxing(part: Partition, sync: Sync, weights: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return make_queue(part)


def settles(queue: np.ndarray) -> bool:
    """Rows are not sorted by weight."""
    return False


@njit(cache=True, nogil=True)
def find_pending(lowered, values, relaxed_at, pending, far):  # type: ignore[no-untyped-def]
    lowest_value = far
    for word in range(lowered.size):
        bits = lowered[word]
        while bits:
            lid = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            if values[lid] < relaxed_at[lid]:
                set_bit(pending, lid)
        bits = pending[word]
        while bits:
            lid = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            lowest_value = min(lowest_value, values[lid])
    return lowest_value


@njit(cache=True, nogil=True)
def relax_below(limit, far, offsets, targets, weights, values, relaxed_at, pending, updated, queue):  # type: ignore[no-untyped-def]
    """``queue`` is a ring that can hold every proxy: a node is in it once, while it is pending and below the limit."""
    head = tail = 0
    for word in range(pending.size):
        bits = pending[word]
        while bits:
            lid = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            if values[lid] < limit:
                queue[tail] = lid
                tail += 1
    waiting = tail
    tail %= queue.size
    while waiting > 0:
        source = queue[head]
        head = head + 1 if head + 1 < queue.size else 0
        waiting -= 1
        value = values[source]
        relaxed_at[source] = value
        pending[source >> 6] &= ~(np.uint64(1) << np.uint64(source & 63))
        longest = far - value
        for edge in range(offsets[source], offsets[source + 1]):
            target = targets[edge]
            candidate = value + weights[edge]
            old = values[target]
            if candidate < old and weights[edge] < longest:
                values[target] = candidate
                set_bit(updated, target)
                if candidate < limit and not (old < limit and get_bit(pending, target)):
                    queue[tail] = target
                    tail = tail + 1 if tail + 1 < queue.size else 0
                    waiting += 1
                set_bit(pending, target)


@njit(cache=True, nogil=True)
def mark_too_far(offsets, targets, weights, values, far, marks, updated):  # type: ignore[no-untyped-def]
    for source in range(offsets.size - 1):
        if values[source] != far:
            for edge in range(offsets[source], offsets[source + 1]):
                if weights[edge] >= far - values[source]:
                    marks[targets[edge]] = 1
                    set_bit(updated, targets[edge])
