"""Triangles on the CPU: see interfaces.py."""

import numpy as np

from cusp.kernels.arrays import mapped, offsets_of, sizes_of, take
from cusp.kernels.bits import unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import in_parallel, num_threads, row_ranges

ROWS_AT_ONCE = 1 << 24
SAMPLE = 1024  # targets that tell how many of a row are before it by degree
FEW = 4  # nodes of a row that are compared faster than marked


def split_rows(offsets: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, int, int]:
    splits = np.empty(offsets.size - 1, np.int64)

    def split(first: int, last: int) -> tuple[int, int]:
        return _split_some(first, offsets, targets, splits[first:last])

    works = in_parallel(split, row_ranges(offsets))
    return splits, sum(work for work, _ in works), sum(least for _, least in works)


@njit(cache=True, nogil=True)
def _split_some(first, offsets, targets, splits):  # type: ignore[no-untyped-def]
    work = least = 0
    for i in range(splits.size):
        row, size = first + i, offsets[first + i + 1] - offsets[first + i]
        targets_of = targets[offsets[row] : offsets[row + 1]]
        step, below, before = -(-size // SAMPLE), np.searchsorted(targets_of, row), 0
        for place in range(0, size, max(step, 1)):
            target = targets_of[place]
            degree = offsets[target + 1] - offsets[target]
            before += degree > size or (degree == size and target < row)
        splits[i] = offsets[row] + below
        work += below * below
        least += (step * before) ** 2
    return work, least


def lower_rows(offsets: np.ndarray, splits: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    begins = offsets_of(mapped(np.subtract, splits, offsets[:-1]))
    lower = np.empty(begins[-1], np.int32)
    in_parallel(lambda first, last: _copy_some(offsets[first:last], targets, begins[first:], lower), row_ranges(begins))
    return begins, lower


@njit(cache=True, nogil=True)
def _copy_some(offsets, targets, begins, lower):  # type: ignore[no-untyped-def]
    for row in range(offsets.size):
        for place in range(begins[row + 1] - begins[row]):
            lower[begins[row] + place] = targets[offsets[row] + place]


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


def count_triangles(
    middles: np.ndarray, row_begins: np.ndarray, row_ends: np.ndarray, rows: np.ndarray, in_begins: np.ndarray,
    in_ends: np.ndarray, sources: np.ndarray, begins: np.ndarray, ends: np.ndarray, targets: np.ndarray,
    counts: np.ndarray,
) -> int:  # fmt: skip
    """Each v's row is marked once for all u, unless it is short: then its nodes are compared with.

    Nodes of high degree have low numbers, so the marks looked at are mostly in the cache. A thread has marks and counts
    of its own; those are whole numbers, whose sum is the same in any order.
    """
    users = mapped(lambda some: in_ends[some] - in_begins[some], middles, dtype=np.int64)
    pieces = row_ranges(offsets_of(users))
    own = [(np.zeros(begins.size, np.uint8), np.zeros_like(counts)) for _ in range(min(num_threads(), len(pieces)))]
    free = [*own]
    rest = unsigned(rows, in_begins, in_ends, sources, begins, targets)

    def count(first: int, last: int) -> int:
        mine = free.pop()
        own_rows = unsigned(middles[first:last], row_begins[first:last], row_ends[first:last])
        total = _count(*own_rows, *rest, *mine)
        free.append(mine)
        return int(total)

    total = sum(in_parallel(count, pieces))
    for _, found in own:
        counts += found
    return total


@njit(cache=True, nogil=True)
def _count(middles, row_begins, row_ends, rows, in_begins, in_ends, sources, begins, targets, marks, counts):  # type: ignore[no-untyped-def]
    """All places are unsigned, so their sign need not be checked."""
    one, total = np.uint64(1), np.int64(0)
    for i in range(middles.size):
        middle, begin, end = middles[i], row_begins[i], row_ends[i]
        if begin == end or in_begins[middle] == in_ends[middle]:
            continue
        row, few = rows[begin:end], end - begin <= FEW
        for node in row[: 0 if few else row.size]:
            marks[node] = 1
        at_middle = np.int64(0)
        for place in range(in_begins[middle], in_ends[middle]):
            user, closing, edge = sources[place], np.int64(0), begins[sources[place]]
            node = targets[edge]
            if few:
                while node < middle:  # which is in the row
                    closing += _is_in(node, row)
                    edge += one
                    node = targets[edge]
            else:
                while node < middle:
                    closing += marks[node]
                    edge += one
                    node = targets[edge]
            at_middle += closing
            if counts.size and closing:
                counts[user] += closing
                for closed in targets[begins[user] : edge]:
                    counts[closed] += _is_in(closed, row) if few else np.int64(marks[closed])
        if counts.size:
            counts[middle] += at_middle
        total += at_middle
        for node in row[: 0 if few else row.size]:
            marks[node] = 0
    return total


@njit(cache=True, nogil=True, inline="always")
def _is_in(node, row):  # type: ignore[no-untyped-def]
    """1 if a node is in a row of few, else 0."""
    found = np.int64(0)
    for other in row:
        found |= np.int64(other == node)
    return found


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
