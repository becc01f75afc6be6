"""Searches in a small graph, one after the other, each by one thread: for many sources.

By length, it is Dijkstra's algorithm with a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, J. ACM 37, 1990, section 3):
nodes whose lengths first differ from that of the last settled node in the same bit are one list. The bits of floats
that are not negative are in the order of their values, so floats need nothing of their own.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros
from numba.extending import register_jitable

from cusp.runtime.compiled_code import njit

if TYPE_CHECKING:
    from cusp.apps.shared.graphs.whole_graph import WholeGraph

NONE, ONE = np.uint32(2**32 - 1), np.uint64(1)


class Search(NamedTuple):
    """What a search needs; lengths are ``far`` before it, and whoever uses them makes them so again.

    Attributes
    ----------
    far : int32, int64 or float64
        Of nodes that are not reached: -1 if lengths are hops, else the largest number.
    lengths : (nodes,)
        Of the same type.
    order : (nodes + 1,) uint32
        The nodes that were reached, the nearest first.
    before, after : (nodes,) uint32
        In a list of the heap, or NONE. By hops, no node has an entry.
    first : (64,) uint32
        Of each list, or NONE.
    """

    far: Any
    lengths: np.ndarray
    order: np.ndarray
    before: np.ndarray
    after: np.ndarray
    first: np.ndarray


def make_search(graph: "WholeGraph") -> Search:
    """For searches in this graph, by its weights, int64 or float64, if it has some."""
    nodes, dtype = graph.offsets.size - 1, np.dtype(np.int32) if graph.weights is None else graph.weights.dtype
    far = dtype.type(-1 if graph.weights is None else np.inf if dtype.kind == "f" else np.iinfo(dtype).max)
    before, after = np.empty((2, 0 if graph.weights is None else nodes), np.uint32)
    return Search(far, np.full(nodes, far), np.empty(nodes + 1, np.uint32), before, after, np.full(64, NONE))


@njit(cache=True, nogil=True)
def search(source, offsets, targets, weights, state, paths, hops):  # type: ignore[no-untyped-def]
    """Lengths of the shortest paths from a node, and the order of all that are reached; returns how many.

    Places are unsigned. Without ``weights``, lengths are hops; with them, they have the same type, none below 0.

    Where ``paths`` is not None, they become the numbers of shortest paths, and ``hops`` the most edges of one, if these
    are not the lengths. An edge that adds nothing, as it may in floats, is on no path.
    """
    if weights is None:
        return _search_by_hops(source, offsets, targets, state, paths)
    else:  # noqa: RET505: only one of the two is compiled
        return _search_by_length(source, offsets, targets, weights, state, paths, hops)


@njit(cache=True, nogil=True)
def _search_by_hops(source, offsets, targets, state, paths):  # type: ignore[no-untyped-def]
    """Without branches on what is read from memory, so that it can be read ahead."""
    hops, order, head, tail = state.lengths, state.order, np.uint64(0), ONE
    hops[source], order[0] = 0, source
    if paths is not None:
        paths[source] = 1.0
    while head < tail:
        node = order[head]
        head += ONE
        beyond = hops[node] + 1
        if paths is not None:
            here = paths[node]
        for edge in range(offsets[node], offsets[node + ONE]):
            target = targets[edge]
            old = hops[target]
            new = beyond if old < 0 else old
            hops[target] = new
            if paths is not None:
                paths[target] += here if new == beyond else 0.0
            order[tail] = target
            tail += np.uint64(old < 0)
    return np.int64(tail)


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
def _search_by_length(source, offsets, targets, weights, state, paths, hops):  # type: ignore[no-untyped-def]
    far, lengths, order, before, after, first = state
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
