"""Draw edges, number nodes, and take steps of walks on the CPU: see interfaces.py."""

from typing import Any

import numpy as np

from cusp.apps.operators.samples.interfaces import ROUND, Hop, Rows, Walks
from cusp.kernels.arrays import joined, offsets_of, take
from cusp.kernels.bits import GOLDEN, lid_of, mix, prefetch
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.together import together
from cusp.runtime.threads import cut, in_parallel, num_threads, ranges, row_ranges

TOGETHER = 256  # walkers that take turns, so that one is on its way to memory while others step
BEHIND = 8  # rows whose other ends are on their way from memory
STAYS, ASKS = -1, -2  # instead of a node: a walker cannot go on here; it asks whether there is an edge


def draw(
    rows: Rows, lids: np.ndarray, keys: np.ndarray, fan_out: int, replace: bool, until: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    begins, ends = take(rows.offsets, lids), take(rows.offsets[1:], lids)
    if until is not None:
        together(_cut_some, ranges(lids.size), begins, ends, rows.marks, until)
    sizes = np.empty(lids.size, np.int64)
    together(_count_some, ranges(lids.size), begins, ends, fan_out, replace, sizes)
    offsets = offsets_of(sizes)
    edges, others = np.empty((2, offsets[-1]), np.int64)
    how = rows.marks if until is None else rows.marks[:0], replace and fan_out >= 0
    together(_draw_some, row_ranges(offsets), begins, ends, keys, *how, offsets, rows.ends, edges, others)
    return sizes, edges, others


@njit(cache=True, nogil=True, inline="always")
def _below(number, bound):  # type: ignore[no-untyped-def]
    return np.int64(np.float64(np.int64(number >> np.uint64(11))) * 2.0**-53 * np.float64(bound))


@njit(cache=True, nogil=True, inline="always")
def _first_above(marks, begin, end, mark):  # type: ignore[no-untyped-def]
    """The first place from ``begin`` on whose mark is above this one, or ``end``."""
    while begin < end:
        middle = (begin + end) >> 1
        if marks[middle] > mark:
            end = middle
        else:
            begin = middle + 1
    return begin


@njit(cache=True, nogil=True)
def _cut_some(first, last, begins, ends, marks, until):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        ends[i] = _first_above(marks, begins[i], ends[i], until[i])


@njit(cache=True, nogil=True)
def _count_some(first, last, begins, ends, fan_out, replace, sizes):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        size = ends[i] - begins[i]
        sizes[i] = size if fan_out < 0 or size == 0 or (size <= fan_out and not replace) else fan_out


@njit(cache=True, nogil=True)
def _draw_some(first, last, begins, ends, keys, sums, replace, offsets, nodes, edges, others):  # type: ignore[no-untyped-def]
    """The other ends of some rows are on their way from memory while edges of the next rows are drawn."""
    for i in range(first, last + BEHIND):
        if i < last:
            _draw_row(begins[i], ends[i], keys[i], sums, replace, edges[offsets[i] : offsets[i + 1]])
            for place in range(offsets[i], offsets[i + 1]):
                prefetch(nodes, edges[place])
        if i >= first + BEHIND:
            for place in range(offsets[i - BEHIND], offsets[i - BEHIND + 1]):
                others[place] = nodes[edges[place]]


@njit(cache=True, nogil=True, inline="always")
def _draw_row(begin, end, key, sums, replace, edges):  # type: ignore[no-untyped-def]
    if not replace and end - begin == edges.size:
        for place in range(edges.size):
            edges[place] = begin + place
        return
    whole = sums[end - 1] if sums.size and begin < end else end - begin
    for to in range(edges.size):
        key += GOLDEN
        lot, slot = _below(mix(key), whole), to
        if not replace:  # as if the edges that are taken were not there
            slot = 0
            while slot < to:
                start, width = _span(sums, begin, edges[slot])
                if lot < start:
                    break
                lot += width
                slot += 1
        edge = _first_above(sums, begin, end, lot) if sums.size else begin + lot
        for place in range(to, slot, -1):
            edges[place] = edges[place - 1]
        edges[slot] = edge
        if not replace:
            whole -= _span(sums, begin, edge)[1]


@njit(cache=True, nogil=True, inline="always")
def _span(sums, begin, edge):  # type: ignore[no-untyped-def]
    """Where the share of an edge begins in its row, and how much that is."""
    if sums.size == 0:
        return edge - begin, 1
    start = sums[edge - 1] if edge > begin else 0
    return start, sums[edge] - start


def number(hops: list[Hop], ends: np.ndarray, bounds: np.ndarray, bits: int) -> tuple[Hop, np.ndarray]:
    places = np.empty(ends.size, np.int64)

    def some(batch: int, first: int, last: int) -> np.ndarray:
        known = [nodes[starts[batch] : starts[batch + 1]] for nodes, starts in hops]
        nodes = np.concatenate([*known, ends[first:last]])
        begin, width = nodes.size - (last - first), max(nodes.size, 1).bit_length() + 1
        table = np.full(1 << width, -1, np.int32)
        return nodes[begin : _find_places(begin, nodes, places[first:last], 64 - width, table)]

    new = in_parallel(some, list(zip(range(bounds.size - 1), bounds[:-1].tolist(), bounds[1:].tolist())))
    return (joined([ends[:0], *new]), np.cumsum([0, *(nodes.size for nodes in new)])), places


@njit(cache=True, nogil=True)
def _find_places(size, nodes, places, shift, table):  # type: ignore[no-untyped-def]
    """A table of places, half of which at most are taken; who finds its own taken tries the next."""
    begin = size
    for place in range(size):
        table[_slot(table, shift, nodes, nodes[place])] = place
    for i in range(places.size):
        node = nodes[begin + i]
        slot = _slot(table, shift, nodes, node)
        if table[slot] < 0:
            nodes[size], table[slot] = node, size
            size += 1
        places[i] = table[slot]
    return size


@njit(cache=True, nogil=True, inline="always")
def _slot(table, shift, nodes, node):  # type: ignore[no-untyped-def]
    slot = np.int64((np.uint64(node) * GOLDEN) >> np.uint64(shift))
    while table[slot] >= 0 and nodes[table[slot]] != node:
        slot = (slot + 1) & (table.size - 1)
    return slot


def walk(
    rows: Rows, lid_map: Any, walkers: np.ndarray, walks: Walks, own: np.ndarray, first: int, log: np.ndarray
) -> None:
    pieces = cut(len(walkers), max(1, min(4 * num_threads(), len(walkers) // TOGETHER)))
    given = *rows, lid_map.index, lid_map.table, walkers, walks, np.uint64(walks.key), own, first, log
    together(_walk_some, pieces, *given)


@njit(cache=True, nogil=True)
def _walk_some(start, stop, offsets, ends, sums, index, table, walkers, walks, key, own, first, log):  # type: ignore[no-untyped-def]
    """Short loops, so that many walkers wait for memory at the same time."""
    walkers, log = walkers[start:stop], log[start:stop]
    mask = (1 << walks.bits) - 1
    lids, places = np.empty(TOGETHER, np.int64), np.empty((2, TOGETHER), np.int64)
    for begin in range(0, len(walkers), TOGETHER):
        some, steps = walkers[begin : begin + TOGETHER], np.zeros(TOGETHER, np.int64)
        going = True
        while going:
            going = False
            for i in range(len(some)):
                lids[i] = _lid_of_turn(index, table, some, i, walks, mask) if steps[i] < ROUND else STAYS
                going |= lids[i] != STAYS
            for i in range(len(some)):
                if lids[i] >= 0:
                    places[0, i], places[1, i] = offsets[lids[i]], offsets[lids[i] + 1]
            for i in range(len(some)):
                if lids[i] >= 0:
                    lids[i] = _draw_step(ends, sums, some, i, walks, key, places[0, i], places[1, i])
            for i in range(len(some)):
                if lids[i] == STAYS:
                    continue
                step, drawn = some[i, 1], ends[lids[i]] if lids[i] >= 0 else some[i, 4]
                if _take_step(offsets, ends, index, table, some, i, walks, key, mask, drawn):
                    if begin + i < len(log):
                        log[begin + i, steps[i]] = drawn & mask
                    else:
                        own[some[i, 0] - first, step + 1] = drawn & mask
                    steps[i] += 1


@njit(cache=True, nogil=True, inline="always")
def _lid_of_turn(index, table, walkers, i, walks, mask):  # type: ignore[no-untyped-def]
    """The node that a walker is at if it can draw an edge there; else whether it can ask, or has to leave."""
    asks = walkers[i, 4] >= 0
    place = walkers[i, 2] if asks else walkers[i, 3]
    if walkers[i, 1] >= walks.length or place >> walks.bits != walks.rank:
        return STAYS
    return ASKS if asks else np.int64(lid_of(index, table, np.uint64(place & mask)))


@njit(cache=True, nogil=True, inline="always")
def _key_of(walkers, i, key):  # type: ignore[no-untyped-def]
    """What this attempt draws from: two numbers."""
    count = np.uint64((walkers[i, 1] << 32) + 2 * walkers[i, 5] + 1)
    return mix(key + np.uint64(walkers[i, 0]) * GOLDEN) + count * GOLDEN


@njit(cache=True, nogil=True, inline="always")
def _draw_step(ends, sums, walkers, i, walks, key, begin, end):  # type: ignore[no-untyped-def]
    if begin == end:
        walkers[i, 1] = walks.length
        return STAYS
    lot = _below(mix(_key_of(walkers, i, key)), sums[end - 1] if sums.size else end - begin)
    edge = _first_above(sums, begin, end, lot) if sums.size else begin + lot
    prefetch(ends, edge)
    return edge


@njit(cache=True, nogil=True, inline="always")
def _take_step(offsets, ends, index, table, walkers, i, walks, key, mask, drawn):  # type: ignore[no-untyped-def]
    """Whether the step that was drawn is taken (rejection sampling; Yang et al., SOSP 2019, section 4.1)."""
    before, taken = walkers[i, 2], True
    if before >= 0 and not walks.back == walks.far == 1.0:
        share = np.float64(np.int64(mix(_key_of(walkers, i, key) + GOLDEN) >> np.uint64(11))) * 2.0**-53
        lot, near = share * max(walks.back, walks.far, 1.0), max(walks.far, 1.0)
        taken = lot < (walks.back if drawn == before else min(walks.far, 1.0))
        if not taken and drawn != before and lot < near:  # it matters whether there is an edge
            if before >> walks.bits != walks.rank:
                walkers[i, 4] = drawn
                return False
            begin, end = _row_of(offsets, index, table, before & mask)
            taken = _has(ends, begin, end, drawn & mask, mask) == (walks.far < 1.0)
    walkers[i, 4] = -1
    if taken:
        walkers[i, 1], walkers[i, 2], walkers[i, 3], walkers[i, 5] = walkers[i, 1] + 1, walkers[i, 3], drawn, 0
    else:
        walkers[i, 5] += 1
    return taken


@njit(cache=True, nogil=True, inline="always")
def _row_of(offsets, index, table, gid):  # type: ignore[no-untyped-def]
    lid = lid_of(index, table, np.uint64(gid))
    return offsets[lid], offsets[lid + 1]


@njit(cache=True, nogil=True, inline="always")
def _has(ends, begin, end, gid, mask):  # type: ignore[no-untyped-def]
    last = end
    while begin < end:
        middle = (begin + end) >> 1
        if ends[middle] & mask < gid:
            begin = middle + 1
        else:
            end = middle
    return begin < last and ends[begin] & mask == gid
