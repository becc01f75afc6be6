"""Triangles on the CPU: see interfaces.py."""

import numpy as np

from cusp.apps.operators.triangles.counts_cpu import count_triangles as count_triangles
from cusp.apps.operators.triangles.counts_cpu import first_from
from cusp.kernels.arrays import offsets_of, sizes_of, take
from cusp.kernels.bits import unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import atomic_add
from cusp.runtime.teams.lent import borrow, give_back, thread_rows
from cusp.runtime.teams.together import together
from cusp.runtime.threads import row_ranges

ROWS_AT_ONCE = 1 << 24
SAMPLE = 1024  # targets that tell how many of a row are before it by degree


def split_rows(offsets: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Where degrees descend, all targets below a row are before it by degree, and nothing is looked up."""
    pieces, splits, found = row_ranges(offsets), np.empty(offsets.size - 1, np.int64), np.zeros(3, np.int64)
    together(_split_some, pieces, *unsigned(offsets, targets, splits), found)
    rest = pieces if found[1] else [(0, 0)]  # no rows: a rehearsal loads the code
    together(_work_by_degree, rest, offsets, targets, found)
    work, ascend, least = found.tolist()
    return splits, work, least if ascend else work


@njit(cache=True, nogil=True)
def _split_some(first, last, offsets, targets, splits, found):  # type: ignore[no-untyped-def]
    """Found: the work; how many rows are longer than the one before."""
    work, longer, before = np.uint64(0), 0, offsets[first] - offsets[first - 1] if first > 0 else offsets[last]
    for row in range(np.uint64(first), np.uint64(last)):
        size = offsets[row + np.uint64(1)] - offsets[row]
        longer += size > before
        before = size
        splits[row] = first_from(targets, offsets[row], offsets[row + np.uint64(1)], row)
        below = splits[row] - offsets[row]
        work += below * below
    atomic_add(found, 0, np.int64(work))
    atomic_add(found, 1, longer)


@njit(cache=True, nogil=True)
def _work_by_degree(first, last, offsets, targets, found):  # type: ignore[no-untyped-def]
    work = 0
    for row in range(first, last):
        size, before = offsets[row + 1] - offsets[row], 0
        step = max(-(-size // SAMPLE), 1)
        for target in targets[offsets[row] : offsets[row + 1] : step]:
            degree = offsets[target + 1] - offsets[target]
            before += degree > size or (degree == size and target < row)
        work += (step * before) ** 2
    atomic_add(found, 2, work)


def lower_rows(
    offsets: np.ndarray, splits: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Few rows are read more than once: to copy them costs more than it gains."""
    return offsets[:-1], splits, targets


def orient(
    rows: np.ndarray, begins: np.ndarray, ends: np.ndarray, targets: np.ndarray, places: np.ndarray,
    in_order: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    first, last = take(begins, rows), take(ends, rows)
    pieces = row_ranges(offsets_of(last - first))
    own, rest, counts = take(places, rows), (targets, places), np.empty(rows.size, np.int64)
    together(_count_before, pieces, first, last, own, *rest, counts)
    kept = offsets_of(counts)
    entries = np.empty(kept[-1], places.dtype)
    together(_write_before, pieces, first, last, own, *rest, kept, entries)
    return kept, entries


@njit(cache=True, nogil=True)
def _count_before(first, last, begins, ends, own, targets, places, counts):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        counts[i] = 0
        for edge in range(begins[i], ends[i]):
            counts[i] += places[targets[edge]] < own[i]


@njit(cache=True, nogil=True)
def _write_before(first, last, begins, ends, own, targets, places, kept, entries):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        to = kept[i]
        for edge in range(begins[i], ends[i]):
            place = places[targets[edge]]
            if place < own[i]:
                entries[to] = place
                to += 1


def count_common(
    offsets: np.ndarray, targets: np.ndarray, highs: np.ndarray, lows: np.ndarray, begins: np.ndarray,
    entries: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """A row of the CSR is marked once for all pairs that follow with it."""
    counts, pieces = np.empty(highs.size, np.int64), row_ranges(offsets_of(sizes_of(begins, lows)))
    given = unsigned(offsets, targets, highs, lows, begins, entries)
    together(_count_marked, pieces, *given, *thread_rows(offsets.size - 1, np.uint8), counts)
    return counts


@njit(cache=True, nogil=True)
def _count_marked(first, last, offsets, targets, highs, lows, begins, entries, lent, marks, counts):  # type: ignore[no-untyped-def]
    lane = borrow(lent)
    marks = marks[lane]
    for i in range(first, last):
        high = targets[offsets[highs[i]] : offsets[highs[i] + np.uint64(1)]]
        if i == first or highs[i] != highs[i - 1]:
            for node in high:
                marks[node] = 1
        common = np.int64(0)
        for node in entries[begins[lows[i]] : begins[lows[i] + np.uint64(1)]]:
            common += marks[node]
        counts[i] = common
        if i + 1 == last or highs[i] != highs[i + 1]:
            for node in high:
                marks[node] = 0
    give_back(lent, lane)
