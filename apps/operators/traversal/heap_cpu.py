"""One search by length after the other, each by one thread, in a small graph: for many sources.

Dijkstra's algorithm with a radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, J. ACM 37, 1990, section 3): nodes whose
lengths first differ from that of the last settled node in the same bit are one list. The bits of floats that are not
negative are in the order of their values, so floats need nothing of their own.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros
from numba.extending import register_jitable

from cusp.runtime.compiled_code import njit

NONE, ONE = np.uint32(2**32 - 1), np.uint64(1)


class Heap(NamedTuple):
    """What a search needs; lengths are ``far`` before it, and whoever uses them makes them so again.

    Attributes
    ----------
    far : int64 or float64
        Of nodes that are not reached: the largest number.
    lengths : (nodes,)
        Of the same type.
    order : (nodes,) uint32
        The nodes that were reached, the nearest first.
    before, after : (nodes,) uint32
        In their list, or NONE.
    first : (64,) uint32
        Of each list, or NONE.
    """

    far: Any
    lengths: np.ndarray
    order: np.ndarray
    before: np.ndarray
    after: np.ndarray
    first: np.ndarray


def make_heap(nodes: int, dtype: Any) -> Heap:
    """For searches in a graph of so many nodes."""
    far = np.dtype(dtype).type(np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max)
    order, before, after = np.empty((3, nodes), np.uint32)
    return Heap(far, np.full(nodes, far, dtype), order, before, after, np.full(64, NONE))


@register_jitable(inline="always")
def _push(node, key, last, full, before, after, first):  # type: ignore[no-untyped-def]
    """Put a node into its list; returns the bits of the lists that are not empty."""
    at = np.uint64(64) - leading_zeros(key ^ last)
    following = first[at]
    before[node], after[node], first[at] = NONE, following, node
    if following != NONE:
        before[following] = node
    return full | (ONE << at)


@register_jitable(inline="always")
def _take(node, key, last, full, before, after, first):  # type: ignore[no-untyped-def]
    """Take a node out of its list; returns the bits of the lists that are not empty."""
    at = np.uint64(64) - leading_zeros(key ^ last)
    one_before, one_after = before[node], after[node]
    if one_after != NONE:
        before[one_after] = one_before
    if one_before != NONE:
        after[one_before] = one_after
    else:
        first[at] = one_after
    return full ^ (np.uint64((one_before == NONE) & (one_after == NONE)) << at)


@njit(cache=True, nogil=True)
def search(source, offsets, targets, weights, heap, paths, hops):  # type: ignore[no-untyped-def]
    """Lengths of the shortest paths from a node, and the order of all that are reached; returns how many.

    Places are unsigned. ``weights`` have the type of the lengths and are not negative.

    Where ``paths`` and ``hops`` are not None, they become the number of shortest paths and the most edges of one. An
    edge that adds nothing, as it may in floats, is on none of them.
    """
    far, lengths, order, before, after, first = heap
    keys, full, last, tail = lengths.view(np.uint64), ONE, np.uint64(0), np.uint64(0)
    lengths[source], first[0], before[source], after[source] = 0, source, NONE, NONE
    if paths is not None:
        paths[source], hops[source] = 1.0, 0
    while full != 0:
        nearest = trailing_zeros(full)
        node = first[nearest]
        if nearest > 0:  # its nodes come into lists before it
            other = node
            last = keys[node]
            while other != NONE:
                last = min(last, keys[other])
                other = after[other]
            full ^= ONE << nearest
            first[nearest] = NONE
            while node != NONE:
                following = after[node]
                full = _push(node, keys[node], last, full, before, after, first)
                node = following
            continue
        following = after[node]
        first[0] = following
        if following != NONE:
            before[following] = NONE
        full ^= np.uint64(following == NONE)
        order[tail] = node
        tail += ONE
        here = lengths[node]
        for edge in range(offsets[node], offsets[node + ONE]):
            target, new = targets[edge], here + weights[edge]
            old = lengths[target]
            if new < old:
                if old != far:
                    full = _take(target, keys[target], last, full, before, after, first)
                lengths[target] = new
                full = _push(target, keys[target], last, full, before, after, first)
                if paths is not None:
                    paths[target], hops[target] = paths[node] if new > here else 0.0, hops[node] + 1
            elif paths is not None:
                if new == old and new > here:
                    paths[target] += paths[node]
                    hops[target] = max(hops[target], hops[node] + 1)
    return np.int64(tail)
