"""Triangles on the CPU: see interfaces.py."""

import numpy as np
from numba import njit

ROWS_AT_ONCE = 1 << 24


def orient(
    rows: np.ndarray, offsets: np.ndarray, targets: np.ndarray, places: np.ndarray, in_order: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    begins = np.zeros(rows.size + 1, np.int64)
    _count_before(rows, offsets, targets, places, begins)
    np.cumsum(begins, out=begins)
    entries = np.empty(begins[-1], places.dtype)
    _write_before(rows, offsets, targets, places, begins, entries)
    return begins, entries


@njit(cache=True, nogil=True)
def _count_before(rows, offsets, targets, places, begins):  # type: ignore[no-untyped-def]
    for i in range(rows.size):
        own = places[rows[i]]
        for edge in range(offsets[rows[i]], offsets[rows[i] + 1]):
            begins[i + 1] += places[targets[edge]] < own


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

    Nodes of high degree have low numbers, so the marks looked at are mostly in the cache.
    """
    marks = np.zeros(offsets.size, np.uint8)
    words = [array.view(np.uint64) for array in (row_offsets, in_offsets, offsets)]
    nodes = [array.view(np.uint32) for array in (middles, rows, sources, targets)]
    return int(_count(*words, *nodes, marks, counts))


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
