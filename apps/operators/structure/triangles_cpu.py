"""Triangles on the CPU: see interfaces.py."""

import numpy as np

from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import edges_before, in_parallel, num_threads, row_ranges

ROWS_AT_ONCE = 1 << 24


def orient(
    rows: np.ndarray, offsets: np.ndarray, targets: np.ndarray, places: np.ndarray, in_order: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    begins = np.zeros(rows.size + 1, np.int64)
    pieces = row_ranges(edges_before(offsets, rows))
    rest = (offsets, targets, places)
    in_parallel(lambda first, last: _count_before(rows[first:last], *rest, begins[first + 1 :]), pieces)
    np.cumsum(begins, out=begins)
    entries = np.empty(begins[-1], places.dtype)
    in_parallel(lambda first, last: _write_before(rows[first:last], *rest, begins[first:], entries), pieces)
    return begins, entries


@njit(cache=True, nogil=True)
def _count_before(rows, offsets, targets, places, counts):  # type: ignore[no-untyped-def]
    for i in range(rows.size):
        own = places[rows[i]]
        for edge in range(offsets[rows[i]], offsets[rows[i] + 1]):
            counts[i] += places[targets[edge]] < own


@njit(cache=True, nogil=True)
def _write_before(rows, offsets, targets, places, begins, entries):  # type: ignore[no-untyped-def]
    for i in range(rows.size):
        own = places[rows[i]]
        to = begins[i]
        for edge in range(offsets[rows[i]], offsets[rows[i] + 1]):
            place = places[targets[edge]]
            if place < own:
                entries[to] = place
                to += 1


def count_triangles(
    middles: np.ndarray, row_offsets: np.ndarray, rows: np.ndarray, in_offsets: np.ndarray, sources: np.ndarray,
    offsets: np.ndarray, targets: np.ndarray, counts: np.ndarray,
) -> int:  # fmt: skip
    """Each v's row is marked once for all u.

    Nodes of high degree have low numbers, so the marks looked at are mostly in the cache. A thread has marks and counts
    of its own; those are whole numbers, whose sum is the same in any order.
    """
    row_words, *words = [array.view(np.uint64) for array in (row_offsets, in_offsets, offsets)]
    middle_nodes, *nodes = [array.view(np.uint32) for array in (middles, rows, sources, targets)]
    pieces = row_ranges(edges_before(in_offsets, middles))
    own = [(np.zeros(offsets.size, np.uint8), np.zeros_like(counts)) for _ in range(min(num_threads(), len(pieces)))]
    free = [*own]

    def count(first: int, last: int) -> int:
        mine = free.pop()
        total = _count(row_words[first : last + 1], *words, middle_nodes[first:last], *nodes, *mine)
        free.append(mine)
        return int(total)

    total = sum(in_parallel(count, pieces))
    for _, found in own:
        counts += found
    return total


@njit(cache=True, nogil=True)
def _count(row_offsets, in_offsets, offsets, middles, rows, sources, targets, marks, counts):  # type: ignore[no-untyped-def]
    """All places are unsigned, so their sign need not be checked."""
    one, total = np.uint64(1), np.int64(0)
    for i in range(middles.size):
        middle = middles[i]
        row = rows[row_offsets[i] : row_offsets[i + 1]]
        users = sources[in_offsets[middle] : in_offsets[middle + one]]
        if row.size == 0 or users.size == 0:
            continue
        for node in row:
            marks[node] = 1
        at_middle = np.int64(0)
        for user in users:
            closing = np.int64(0)
            edge = offsets[user]
            node = targets[edge]
            while node < middle:  # which is in the row
                closing += marks[node]
                edge += one
                node = targets[edge]
            at_middle += closing
            if counts.size and closing:
                counts[user] += closing
                for closed in targets[offsets[user] : edge]:
                    counts[closed] += marks[closed]
        if counts.size:
            counts[middle] += at_middle
        total += at_middle
        for node in row:
            marks[node] = 0
    return total
