"""Searches in a small graph, one after the other, each by one thread: for many sources.

By length, it is Dijkstra's algorithm with a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, J. ACM 37, 1990, section 3):
nodes whose lengths first differ from that of the last settled node in the same bit are one list. The bits of floats
that are not negative are in the order of their values, so floats need nothing of their own.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros
from numba.extending import register_jitable

from cusp.apps.operators.traversal.interfaces import ALPHA, BETA
from cusp.kernels.bits import prefetch
from cusp.runtime.compiled_code import njit

NONE, ONE = np.uint32(2**32 - 1), np.uint64(1)
AHEAD = np.uint64(8)  # nodes whose rows are fetched before it is their turn


class Levels(NamedTuple):
    """What a search by hops needs.

    Attributes
    ----------
    hops : (nodes,) int32
        -1 before it; whoever uses them makes them so again.
    order : (nodes + 1,) uint32
        The nodes that were reached, the nearest first.
    bounds : (nodes + 2,) uint64
        Those of level l are ``order[bounds[l] : bounds[l + 1]]``; behind the last level is one without nodes.
    """

    hops: np.ndarray
    order: np.ndarray
    bounds: np.ndarray


class Heap(NamedTuple):
    """What a search by length needs.

    Attributes
    ----------
    far : int64 or float64
        The largest number.
    lengths : (nodes,)
        Of the same type, ``far`` before it; whoever uses them makes them so again.
    order : (nodes,) uint32
        The nodes that were reached, the nearest first.
    before, after : (nodes,) uint32
        In a list of the heap, or NONE.
    first : (64,) uint32
        Of each list, or NONE.
    """

    far: Any
    lengths: np.ndarray
    order: np.ndarray
    before: np.ndarray
    after: np.ndarray
    first: np.ndarray


def make_levels(nodes: int) -> Levels:
    """For searches in a graph of so many nodes."""
    return Levels(np.full(nodes, -1, np.int32), np.empty(nodes + 1, np.uint32), np.zeros(nodes + 2, np.uint64))


def make_heap(nodes: int, dtype: np.dtype) -> Heap:
    """The same, by lengths of a type."""
    far = dtype.type(np.inf if dtype.kind == "f" else np.iinfo(dtype).max)
    order, before, after = np.empty((3, nodes), np.uint32)
    return Heap(far, np.full(nodes, far), order, before, after, np.full(64, NONE))


@njit(cache=True, nogil=True)
def sum_rows_of(nodes, offsets, columns, values, sums):  # type: ignore[no-untyped-def]
    """Sums over the rows of some nodes, in the order of these. Places are unsigned."""
    for place in range(np.uint64(nodes.size)):
        node, total = nodes[place], 0.0
        for edge in range(offsets[node], offsets[node + ONE]):
            total += values[columns[edge]]
        sums[place] = total


@njit(cache=True, nogil=True)
def _pull(level, tail, in_offsets, in_sources, hops, order):  # type: ignore[no-untyped-def]
    """Reach from a level the nodes that have an in-edge from there; returns where they end in the order."""
    for node in range(np.uint64(hops.size)):
        if hops[node] < 0:
            for edge in range(in_offsets[node], in_offsets[node + ONE]):
                if hops[in_sources[edge]] == level:
                    hops[node], order[tail] = level + 1, node
                    tail += ONE
                    break
    return tail


@njit(cache=True, nogil=True)
def search_by_hops(  # type: ignore[no-untyped-def]
    source, offsets, targets, in_offsets, in_sources, state, paths, sums
):
    """Hops from a node; returns those of the farthest that is reached. Places are unsigned.

    Level by level: a few nodes look at their out-edges, without branches on what is read from memory, so that it can be
    read ahead; where many would, the others look for one of them among their in-edges (Beamer et al., SC 2012).

    Where ``paths`` is not None, they become the numbers of shortest paths; they are 0 before it. A row is summed over
    the level before it alone, since those of its own come into ``sums`` first.
    """
    hops, order, bounds = state
    hops[source], order[0], bounds[1] = 0, source, 1
    begin, end, rest, level, size = np.uint64(0), ONE, offsets[hops.size], 0, np.uint64(hops.size)
    if paths is not None:
        paths[source] = 1.0
    while begin < end:
        tail, edges, beyond = end, np.uint64(0), level + 1
        if (end - begin) * np.uint64(BETA) > size:
            for place in range(begin, end):
                edges += offsets[order[place] + ONE] - offsets[order[place]]
            rest -= edges
        if edges * np.uint64(ALPHA) > rest:
            tail = _pull(level, tail, in_offsets, in_sources, hops, order)
            if paths is not None:
                sum_rows_of(order[end:tail], in_offsets, in_sources, paths, sums)
                for place in range(end, tail):
                    paths[order[place]] = sums[place - end]
        else:
            for place in range(begin, end):
                node = order[place]
                here = 0.0 if paths is None else paths[node]
                prefetch(offsets, order[min(place + AHEAD + AHEAD, tail - ONE)])
                prefetch(targets, offsets[order[min(place + AHEAD, tail - ONE)]])
                for edge in range(offsets[node], offsets[node + ONE]):
                    target = targets[edge]
                    old = hops[target]
                    new = beyond if old < 0 else old
                    hops[target] = new
                    if paths is not None:
                        paths[target] += here if new == beyond else 0.0
                    order[tail] = target
                    tail += np.uint64(old < 0)
        begin, end, level = end, tail, beyond
        bounds[level + 1] = tail
    return level - 1


@njit(cache=True, nogil=True)
def in_row_order(state, deepest):  # type: ignore[no-untyped-def]
    """Put the nodes of each level in the order of their rows, which are best read so, if most nodes are reached."""
    hops, order, bounds = state
    if np.uint64(2) * bounds[deepest + 1] < np.uint64(hops.size):
        return
    for node in range(hops.size):
        if hops[node] >= 0:
            order[bounds[hops[node]]] = node
            bounds[hops[node]] += ONE
    for level in range(deepest, 0, -1):
        bounds[level] = bounds[level - 1]
    bounds[0] = 0


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
def search_by_length(source, offsets, targets, weights, state, paths, hops):  # type: ignore[no-untyped-def]
    """Lengths of the shortest paths from a node, and the order of all that are reached; returns how many.

    Places are unsigned. ``weights`` have the type of the lengths, and none is below 0.

    Where ``paths`` is not None, they become the numbers of shortest paths, and ``hops`` the most edges of one. An edge
    that adds nothing, as it may in floats, is on no path.
    """
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
