"""Buckets of shortest paths on one rank, whose nodes several threads relax: see sssp_cpu.py."""

from typing import Any

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import set_bit
from cusp.kernels.atomics import atomic_and, atomic_min, atomic_or
from cusp.kernels.bits import first_bit, prefetch, unsigned
from cusp.partition import Partition
from cusp.runtime.threads import edges_before, in_parallel, many, row_ranges
from gluon.device_cpu import no_bits


def drain_in_parallel(part: Partition, delta: Any, far: Any, weights: Any, values: Any, waits: Any, queue: Any) -> int:
    """Bucket after bucket from the pile, which has the source; returns buckets.

    Those that wait for this bucket are relaxed in rounds, by several threads if they have many edges. A distance is
    lowered by an atomic minimum, and who sets a node's bit takes down that it waits, for this bucket or on the pile.
    Before a bucket opens, what waits depends on settled distances only; so there are as many as for one thread.
    """
    graph = (far, *unsigned(part.offsets, part.targets), weights, values, waits, no_bits(part.num_proxies))
    (near, pile), spare = unsigned(queue.ring, queue.pile), np.empty(queue.ring.size, np.uint32)
    number, done, limit, piled, buckets = values.dtype.type, values.dtype.type(0), delta, 1, 0
    set_bit(graph[-1], pile[0])
    while True:
        size, piled, lowest = _open_bucket(piled, done, limit, *graph, near, pile)
        if size == 0 and piled == 0:
            return buckets
        done = limit
        if size == 0:
            limit = number(bucket_end(lowest, delta, far))
            continue
        buckets += 1
        while size > 0:
            size, piled = _few_rounds(size, piled, many(), limit, *graph, near, spare, pile)
            if size > 0:
                size, piled = _round(size, piled, limit, part.offsets, graph, near, pile)
        limit = limit + delta if far - limit > delta else far


def _round(
    size: int, piled: int, limit: Any, offsets: Any, graph: tuple[Any, ...], near: Any, pile: Any
) -> tuple[int, int]:
    """Relax all that is near; returns how many nodes are near now, and how many are in the pile."""
    sources = near[:size].copy()
    before = edges_before(offsets, sources)

    def relax(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        most = min(int(before[last] - before[first]), near.size)
        nearer, later = np.empty(most, np.uint32), np.empty(most, np.uint32)
        sizes = _relax_some(sources[first:last], limit, *graph, nearer, later)
        return nearer[: sizes[0]], later[: sizes[1]]

    pieces = in_parallel(relax, row_ranges(before))
    size, more = (sum(piece[which].size for piece in pieces) for which in (0, 1))
    np.concatenate([nearer for nearer, _ in pieces], out=near[:size])
    np.concatenate([later for _, later in pieces], out=pile[piled : piled + more])
    return size, piled + more


@njit(cache=True, nogil=True)
def _few_rounds(  # type: ignore[no-untyped-def]
    size, piled, many, limit, far, offsets, targets, weights, values, waits, later, near, spare, pile
):
    """Rounds until nothing is near, or what is near has many edges; returns as :func:`_round` does."""
    while size > 0:
        if size > waits.size >> 3:
            size = in_order(waits, limit, values, near)
        edges = np.uint64(0)
        for node in near[:size]:
            edges += offsets[node + np.uint64(1)] - offsets[node]
        if np.int64(edges) >= many:
            break
        graph = (far, offsets, targets, weights, values, waits, later)
        size, more = _relax_some(near[:size], limit, *graph, spare, pile[piled:])
        piled += more
        near[:size] = spare[:size]
    return size, piled


@njit(cache=True, nogil=True)
def _relax_some(sources, limit, far, offsets, targets, weights, values, waits, later, nearer, pile):  # type: ignore[no-untyped-def]
    """Relax the edges of sources, none of which waits afterwards; returns how many nodes do, and how many are piled.

    A source's bit is cleared before its distance is read: who lowers it after that sets the bit again.
    """
    number, ahead, piled, last = values.dtype.type, 0, 0, sources.size - 1
    for place in range(sources.size):
        prefetch(offsets, sources[min(place + 8, last)])
        soon = offsets[sources[min(place + 4, last)]]
        prefetch(targets, soon)
        prefetch(weights, soon)
        source = sources[place]
        atomic_and(waits, source >> 6, ~(np.uint64(1) << np.uint64(source & 63)))
        value = values[source]
        longest = far - value
        for edge in range(offsets[source], offsets[source + np.uint64(1)]):
            target = targets[edge]
            candidate = number(value + weights[edge])
            if (
                candidate < values[target]
                and weights[edge] < longest
                and atomic_min(values, target, candidate) > candidate
            ):
                word, bit = target >> 6, np.uint64(1) << np.uint64(target & 63)
                if candidate < limit:
                    if atomic_or(waits, word, bit) & bit == 0:
                        nearer[ahead] = target
                        ahead += 1
                elif atomic_or(later, word, bit) & bit == 0:
                    pile[piled] = target
                    piled += 1
    return ahead, piled


@njit(cache=True, nogil=True)
def _open_bucket(piled, done, limit, far, offsets, targets, weights, values, waits, later, near, pile):  # type: ignore[no-untyped-def]
    """Take what is below the limit from the pile, and drop what was relaxed as near before.

    Returns how many are near, how many are still in the pile, and the lowest distance of those.
    """
    size, kept, lowest = 0, 0, far
    for place in range(piled):
        node = pile[place]
        value = values[node]
        if value >= limit:
            pile[kept] = node
            kept += 1
            lowest = min(lowest, value)
            continue
        later[node >> 6] &= ~(np.uint64(1) << np.uint64(node & 63))
        if value >= done:
            set_bit(waits, node)
            near[size] = node
            size += 1
    return size, kept, lowest


@njit(cache=True, nogil=True)
def bucket_end(lowest, delta, far):  # type: ignore[no-untyped-def]
    """The end of the bucket of a distance; where floats are too coarse for that, one bucket for all that is left."""
    begin = lowest // delta * delta
    end = begin + delta if far - begin > delta else far
    return end if end > lowest else far


@njit(cache=True, nogil=True)
def in_order(pending, limit, values, places):  # type: ignore[no-untyped-def]
    """Pending nodes below the limit, ascending, so that their rows are read one after the other; returns how many."""
    entry = 0
    for word in range(pending.size):
        bits = pending[word]
        while bits:
            node = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            if values[node] < limit:
                places[entry] = node
                entry += 1
    return entry
