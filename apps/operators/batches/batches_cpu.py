"""Levels of many searches on the CPU: see interfaces.py. Threads take whole words of the bits of proxies."""

from typing import Any

import numpy as np

from cusp.apps.operators.batches.interfaces import HopSums
from cusp.apps.operators.lanes_cpu import in_lanes
from cusp.apps.operators.traversal.alone_cpu import (
    Heap,
    Levels,
    make_heap,
    make_levels,
    search_by_hops,
    search_by_length,
)
from cusp.kernels.bits import first_bit, popcount, unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import atomic_add, atomic_or
from cusp.runtime.teams.together import together
from cusp.runtime.threads import ranges, whole_words
from gluon.device_cpu import set_bit
from gluon.label import Label


def end_level(frontier: Any, touched: Any, front: Label, arrived: Label, open_bits: Any) -> tuple[int, int, int]:
    part = front.part
    rest = (frontier, touched, part.num_masters, part.degrees, front.values, front.updated, arrived.values, open_bits)
    found = np.zeros(3, np.int64)
    together(_end_level, whole_words(ranges(part.num_proxies)), *rest, found)
    nodes, edges, alive = found.tolist()
    return nodes, edges, alive


@njit(cache=True, nogil=True)
def _end_level(  # type: ignore[no-untyped-def]
    begin, end, frontier, touched, masters, degrees, front, updated, arrived, open_bits, found
):
    """Found: nodes, edges, and which searches go on."""
    nodes, edges, alive = 0, 0, np.int64(0)
    for word in range(begin >> 6, (end + 63) >> 6):
        bits = frontier[word]
        while bits:
            lid = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            open_bits[lid] &= ~front[lid]
            front[lid] = 0
        bits = touched[word]
        while bits:
            lid = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            new = arrived[lid] & open_bits[lid]
            open_bits[lid] ^= new
            arrived[lid] = 0
            if new != 0 and lid < masters:
                front[lid] = new
                set_bit(updated, lid)
                nodes, edges, alive = nodes + 1, edges + degrees[lid], alive | new
    atomic_add(found, 0, nodes)
    atomic_add(found, 1, edges)
    atomic_or(found, 2, alive)


def add_hops(hops: int, front: Label, sums: HopSums) -> None:
    if hops == 0:
        return
    pieces = whole_words(ranges(front.part.num_masters))
    together(_add_hops, pieces, float(hops), 1 / hops, front.updated, front.values, *sums)


@njit(cache=True, nogil=True)
def _add_hops(begin, end, hops, inverse, updated, front, reached, lengths, inverses):  # type: ignore[no-untyped-def]
    for word in range(begin >> 6, (end + 63) >> 6):
        bits = updated[word]
        while bits:
            lid = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            searches = np.int64(popcount(np.uint64(front[lid])))
            reached[lid] += searches
            lengths[lid] += searches * hops
            inverses[lid] += searches * inverse


def add_lengths(graph: Any, sources: Any, sums: HopSums) -> Any:
    farthest, size = np.zeros(sources.size), graph.offsets.size - 1
    offsets, targets, *into = unsigned(graph.offsets, graph.targets, *graph.into)

    def make() -> Levels | Heap:
        return make_levels(size) if graph.weights is None else make_heap(size, graph.weights.dtype)

    def add(state: Levels | Heap, numbers: np.ndarray, own: list[np.ndarray]) -> None:
        some = sources[numbers].astype(np.uint64)
        if graph.weights is None:
            farthest[numbers] = _add_by_hops(some, offsets, targets, *into, state, *own)
        else:
            farthest[numbers] = _add_by_length(some, offsets, targets, graph.weights, state, *own)

    in_lanes(sources.size, targets.size, sums, make, add)
    return farthest


@njit(cache=True, nogil=True)
def _add_by_hops(  # type: ignore[no-untyped-def]
    sources, offsets, targets, in_offsets, in_sources, state, reached, sums, inverses
):
    farthest, (hops, order, bounds) = np.zeros(sources.size), state
    for number in range(sources.size):
        deepest = search_by_hops(sources[number], offsets, targets, in_offsets, in_sources, state, None, None)
        farthest[number], hops[sources[number]] = deepest, -1
        for level in range(1, deepest + 1):
            for place in range(bounds[level], bounds[level + 1]):
                node = order[place]
                hops[node] = -1
                reached[node] += 1
                sums[node] += level
                inverses[node] += 1 / level
    return farthest


@njit(cache=True, nogil=True)
def _add_by_length(sources, offsets, targets, weights, heap, reached, sums, inverses):  # type: ignore[no-untyped-def]
    farthest, lengths, order = np.zeros(sources.size), heap.lengths, heap.order
    for number in range(sources.size):
        tail = search_by_length(sources[number], offsets, targets, weights, heap, None, None)
        farthest[number] = lengths[order[tail - 1]]
        for place in range(tail):
            node = order[place]
            length = float(lengths[node])
            lengths[node] = heap.far
            if place > 0:
                reached[node] += 1
                sums[node] += length
                inverses[node] += 1 / length if length > 0 else 0.0
    return farthest
