"""Compiled checks of a graph file that run while it is read."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def first_descent(indptr, num_edges):  # type: ignore[no-untyped-def]
    """Index of the first entry that is below the one before it or outside ``0 .. num_edges``; -1 if none."""
    before = np.int64(0)
    for i in range(indptr.size):
        if indptr[i] < before or indptr[i] > num_edges:
            return i
        before = indptr[i]
    return -1


@njit(cache=True, nogil=True, inline="always")
def _mix(x, factor):  # type: ignore[no-untyped-def]
    product = (x + np.uint64(1)) * factor
    return product ^ (product >> np.uint64(32))


@njit(cache=True, nogil=True)
def asymmetry(first_node, indptr, targets):  # type: ignore[no-untyped-def]
    """A rank's part of a sum that is 0 (mod 2**64) over a symmetric graph, and almost surely not over any other.

    ``sum(f(u) g(v) - g(u) f(v))`` over the edges u -> v with two mixing functions f and g: an edge
    and its reverse cancel out, whichever ranks read them.
    """
    f_factor, g_factor = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
    total = np.uint64(0)
    for row in range(indptr.size - 1):
        f_sum, g_sum = np.uint64(0), np.uint64(0)
        for edge in range(indptr[row], indptr[row + 1]):
            target = np.uint64(targets[edge])
            f_sum += _mix(target, f_factor)
            g_sum += _mix(target, g_factor)
        source = np.uint64(first_node + row)
        total += _mix(source, f_factor) * g_sum - _mix(source, g_factor) * f_sum
    return total
