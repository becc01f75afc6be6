"""Triangles on the CPU: see interfaces.py."""

import numpy as np

from cusp.apps.operators.triangles.counts_cpu import count_triangles as count_triangles
from cusp.apps.operators.triangles.counts_cpu import first_from
from cusp.kernels.arrays import offsets_of, sizes_of, take
from cusp.kernels.bits import unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import in_parallel, row_ranges

ROWS_AT_ONCE = 1 << 24
SAMPLE = 1024  # targets that tell how many of a row are before it by degree


def split_rows(offsets: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Where degrees descend, all targets below a row are before it by degree, and nothing is looked up."""
    pieces, splits = row_ranges(offsets), np.empty(offsets.size - 1, np.int64)
    works = in_parallel(lambda a, b: _split_some(a, b, *unsigned(offsets, targets, splits)), pieces)
    descend = all(in_parallel(lambda a, b: _degrees_descend(offsets[max(a - 1, 0) : b + 1]), pieces))
    rest = [(0, 0)] if descend else pieces  # no rows: a rehearsal loads the code
    least = sum(in_parallel(lambda a, b: _work_by_degree(a, b, offsets, targets), rest))
    return splits, sum(works), sum(works) if descend else least


@njit(cache=True, nogil=True)
def _split_some(first, last, offsets, targets, splits):  # type: ignore[no-untyped-def]
    work = np.uint64(0)
    for row in range(np.uint64(first), np.uint64(last)):
        splits[row] = first_from(targets, offsets[row], offsets[row + np.uint64(1)], row)
        below = splits[row] - offsets[row]
        work += below * below
    return np.int64(work)


@njit(cache=True, nogil=True)
def _degrees_descend(offsets):  # type: ignore[no-untyped-def]
    for row in range(1, offsets.size - 1):
        if offsets[row + 1] - offsets[row] > offsets[row] - offsets[row - 1]:
            return False
    return True


@njit(cache=True, nogil=True)
def _work_by_degree(first, last, offsets, targets):  # type: ignore[no-untyped-def]
    work = 0
    for row in range(first, last):
        size, before = offsets[row + 1] - offsets[row], 0
        step = max(-(-size // SAMPLE), 1)
        for target in targets[offsets[row] : offsets[row + 1] : step]:
            degree = offsets[target + 1] - offsets[target]
            before += degree > size or (degree == size and target < row)
        work += (step * before) ** 2
    return work


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
    in_parallel(lambda a, b: _count_before(first[a:b], last[a:b], own[a:b], *rest, counts[a:b]), pieces)
    kept = offsets_of(counts)
    entries = np.empty(kept[-1], places.dtype)
    in_parallel(lambda a, b: _write_before(first[a:b], last[a:b], own[a:b], *rest, kept[a:], entries), pieces)
    return kept, entries


@njit(cache=True, nogil=True)
def _count_before(begins, ends, own, targets, places, counts):  # type: ignore[no-untyped-def]
    for i in range(begins.size):
        counts[i] = 0
        for edge in range(begins[i], ends[i]):
            counts[i] += places[targets[edge]] < own[i]


@njit(cache=True, nogil=True)
def _write_before(begins, ends, own, targets, places, kept, entries):  # type: ignore[no-untyped-def]
    for i in range(begins.size):
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
    counts = np.empty(highs.size, np.int64)
    rest = unsigned(offsets, targets), unsigned(begins, entries)

    def count(first: int, last: int) -> None:
        marks = np.zeros(offsets.size - 1, np.uint8)
        _count_marked(*rest[0], *unsigned(highs[first:last], lows[first:last]), *rest[1], marks, counts[first:last])

    in_parallel(count, row_ranges(offsets_of(sizes_of(begins, lows))))
    return counts


@njit(cache=True, nogil=True)
def _count_marked(offsets, targets, highs, lows, begins, entries, marks, counts):  # type: ignore[no-untyped-def]
    for i in range(highs.size):
        high = targets[offsets[highs[i]] : offsets[highs[i] + np.uint64(1)]]
        if i == 0 or highs[i] != highs[i - 1]:
            for node in high:
                marks[node] = 1
        common = np.int64(0)
        for node in entries[begins[lows[i]] : begins[lows[i] + np.uint64(1)]]:
            common += marks[node]
        counts[i] = common
        if i + 1 == highs.size or highs[i] != highs[i + 1]:
            for node in high:
                marks[node] = 0
