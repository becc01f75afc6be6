"""Levels of many searches on the CPU: see interfaces.py. Threads take whole words of the bits of proxies."""

from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from cusp.apps.operators.batches.interfaces import HopSums
from cusp.apps.operators.lanes_cpu import in_lanes
from cusp.apps.operators.traversal.alone_cpu import Search, make_search, search
from cusp.kernels.bits import first_bit, popcount, unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import in_parallel, ranges, whole_words
from gluon.device_cpu import set_bit
from gluon.label import Label


def end_level(frontier: Any, touched: Any, front: Label, arrived: Label, open_bits: Any) -> tuple[int, int, int]:
    part = front.part
    rest = (frontier, touched, part.num_masters, part.degrees, front.values, front.updated, arrived.values, open_bits)
    found = in_parallel(lambda begin, end: _end_level(begin, end, *rest), whole_words(ranges(part.num_proxies)))
    nodes, edges, alive = zip(*found)
    return sum(nodes), sum(edges), reduce(or_, alive)


@njit(cache=True, nogil=True)
def _end_level(begin, end, frontier, touched, masters, degrees, front, updated, arrived, open_bits):  # type: ignore[no-untyped-def]
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
    return nodes, edges, alive


def add_hops(hops: int, front: Label, sums: HopSums) -> None:
    if hops == 0:
        return
    rest = (float(hops), 1 / hops, front.updated, front.values, *sums)
    in_parallel(lambda begin, end: _add_hops(begin, end, *rest), whole_words(ranges(front.part.num_masters)))


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
    farthest = np.zeros(sources.size)
    offsets, targets = unsigned(graph.offsets, graph.targets)

    def add(state: Search, numbers: np.ndarray, own: list[np.ndarray]) -> None:
        some = sources[numbers].astype(np.uint64)
        farthest[numbers] = _add_lengths(some, offsets, targets, graph.weights, state, *own)

    in_lanes(sources.size, targets.size, sums, lambda: make_search(graph), add)
    return farthest


@njit(cache=True, nogil=True)
def _add_lengths(sources, offsets, targets, weights, state, reached, sums, inverses):  # type: ignore[no-untyped-def]
    farthest, lengths, order = np.zeros(sources.size), state.lengths, state.order
    for number in range(sources.size):
        tail = search(sources[number], offsets, targets, weights, state, None, None)
        farthest[number] = lengths[order[tail - 1]]
        for place in range(tail):
            node = order[place]
            length = float(lengths[node])
            lengths[node] = state.far
            if place > 0:
                reached[node] += 1
                sums[node] += length
                inverses[node] += 1 / length if length > 0 else 0.0
    return farthest
