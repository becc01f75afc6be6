"""Rows of neighbours, merged and sorted on the CPU: see interfaces.py and apps/shared/graphs/undirected.py."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cusp.kernels.arrays import add_up, mapped
from cusp.kernels.bits import unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.together import together
from cusp.runtime.threads import row_ranges

if TYPE_CHECKING:
    from cusp.apps.shared.graphs.undirected import RowPieces

SHORT = 32  # entries of a row that are sorted by insertion
DIGIT_BITS = 11  # at most, of a longer one


def merge_rows(
    arrived: "list[RowPieces]", num_proxies: int, weighted: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Every row is gathered, and sorted where it is: so each belongs to one thread, and stays in its caches."""
    begins, targets, sums = gather_rows(arrived, num_proxies, np.int32, np.float64, weighted)
    kept = np.zeros(num_proxies + 1, np.int64)
    pieces = row_ranges(begins)
    together(_sort_rows, pieces, *unsigned(begins, targets), sums, kept[1:])
    add_up(kept)
    if kept[-1] == targets.size:
        return kept, targets, sums if weighted else None
    left, left_sums = np.empty(kept[-1], np.int32), np.empty(kept[-1] if weighted else 0, np.float64)
    together(_move_rows, pieces, begins, kept, targets, sums, left, left_sums)
    return kept, left, left_sums if weighted else None


def gather_rows(
    arrived: "list[RowPieces]", num_rows: int, node_type: Any, weight_type: Any, weighted: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets of whole rows, nodes and weights; the pieces of a row follow each other as they came.

    ``arrived`` is emptied.
    """
    if len(arrived) == 1 and arrived[0].nodes is None:  # of one rank: all rows, in order
        rows = arrived.pop()
        targets = mapped(np.copy, rows.places, dtype=node_type)  # places are the partition's own, weights are not
        return rows.offsets, targets, rows.weights if weighted else np.empty(0, weight_type)
    begins = np.zeros(num_rows + 1, np.int64)
    for rows in arrived:
        together(_add_sizes, row_ranges(rows.offsets), rows.lids, rows.offsets, begins[1:])
    add_up(begins)
    targets, sums = np.empty(begins[-1], node_type), np.empty(begins[-1] if weighted else 0, weight_type)
    ends = mapped(np.copy, begins[:-1])
    while arrived:
        rows = arrived.pop(0)
        nodes, weights = targets[:0] if rows.nodes is None else rows.nodes, rows.weights if weighted else sums
        given = rows.lids, rows.offsets, rows.places, nodes, weights, ends, targets, sums
        together(_append_some, row_ranges(rows.offsets), *given)
    return begins, targets, sums


def rows_of_edges(offsets: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(offsets.size - 1, dtype=np.uint32), np.diff(offsets))


def rows_are_simple(offsets: np.ndarray, targets: np.ndarray) -> bool:
    simple = np.ones(1, np.uint8)
    together(_find_others, row_ranges(offsets), offsets, targets, simple)
    return bool(simple[0])


@njit(cache=True, nogil=True)
def _find_others(begin, end, offsets, targets, simple):  # type: ignore[no-untyped-def]
    """Simple becomes 0 if there is a row that is not."""
    for row in range(begin, end):
        last = np.int64(-1)
        for edge in range(offsets[row], offsets[row + 1]):
            if targets[edge] <= last or targets[edge] == row:
                simple[0] = 0
                return
            last = np.int64(targets[edge])


@njit(cache=True, nogil=True)
def _add_sizes(first, last, lids, offsets, sizes):  # type: ignore[no-untyped-def]
    for row in range(first, last):
        sizes[lids[row]] += offsets[row + 1] - offsets[row]


@njit(cache=True, nogil=True)
def _append_some(first, last, lids, offsets, places, nodes, weights, ends, targets, sums):  # type: ignore[no-untyped-def]
    for row in range(first, last):
        to = ends[lids[row]]
        for entry in range(offsets[row], offsets[row + 1]):
            targets[to] = nodes[places[entry]] if nodes.size else places[entry]
            if sums.size:
                sums[to] = weights[entry]
            to += 1
        ends[lids[row]] = to


@njit(cache=True, nogil=True)
def _sort_rows(first, last, offsets, targets, sums, kept):  # type: ignore[no-untyped-def]
    """Sort each row, and keep one of equal neighbours, with the sum of their weights as they came, and no loop."""
    one, longest = np.uint64(1), np.uint64(0)
    for row in range(first, last):
        longest = max(longest, offsets[row + 1] - offsets[row])
    keys, values = np.empty(longest, np.uint32), np.empty(min(sums.size, np.int64(longest)))
    places = np.empty(1 << DIGIT_BITS, np.uint64)
    for row in range(first, last):
        begin, end = offsets[row], offsets[row + 1]
        source, highest, ordered = np.uint32(row), np.uint32(0), True
        for entry in range(begin, end):
            ordered &= targets[entry] >= highest
            highest = max(highest, targets[entry])
        if not ordered and end - begin <= SHORT:
            _insert(targets, sums, begin, end)
        elif not ordered:
            _sort_by_digits(targets[begin:end], sums[begin:end], keys, values, highest, places)
        to = begin
        for entry in range(begin, end):
            target = targets[entry]
            if to > begin and targets[to - one] == target:
                if sums.size:
                    sums[to - one] += sums[entry]
            elif target != source:
                targets[to] = target
                if sums.size:
                    sums[to] = sums[entry]
                to += one
        kept[row] = to - begin


@njit(cache=True, nogil=True, inline="always")
def _insert(targets, sums, begin, end):  # type: ignore[no-untyped-def]
    one = np.uint64(1)
    for entry in range(begin + one, end):
        target, to = targets[entry], entry
        weight = sums[entry] if sums.size else 0.0
        while to > begin and targets[to - one] > target:
            targets[to] = targets[to - one]
            if sums.size:
                sums[to] = sums[to - one]
            to -= one
        targets[to] = target
        if sums.size:
            sums[to] = weight


@njit(cache=True, nogil=True)
def _sort_by_digits(targets, sums, keys, values, highest, places):  # type: ignore[no-untyped-def]
    """From the lowest digit to the highest, each time keeping the order of equal digits (Knuth, TAOCP 3, 5.2.5)."""
    bits, one = np.uint32(0), np.uint32(1)
    while highest >> bits:
        bits += one
    most = np.uint32(DIGIT_BITS if targets.size > places.size >> 1 else DIGIT_BITS - 3)
    digits = (bits + most - one) // most
    each = (bits + digits - one) // digits
    mask, shift = (one << each) - one, np.uint32(0)
    old, new, old_sums, new_sums = targets, keys[: targets.size], sums, values[: sums.size]
    for _ in range(digits):
        for digit in range(np.int64(mask) + 1):
            places[digit] = 0
        for target in old:
            places[(target >> shift) & mask] += np.uint64(1)
        before = np.uint64(0)
        for digit in range(np.int64(mask) + 1):
            here = places[digit]
            places[digit] = before
            before += here
        for entry in range(old.size):
            digit = (old[entry] >> shift) & mask
            to = places[digit]
            places[digit] = to + np.uint64(1)
            new[to] = old[entry]
            if old_sums.size:
                new_sums[to] = old_sums[entry]
        old, new, old_sums, new_sums = new, old, new_sums, old_sums
        shift += each
    if digits & one:
        for entry in range(targets.size):
            targets[entry] = keys[entry]
            if sums.size:
                sums[entry] = values[entry]


@njit(cache=True, nogil=True)
def _move_rows(first, last, offsets, kept, targets, sums, left, left_sums):  # type: ignore[no-untyped-def]
    """Rows without gaps."""
    for row in range(first, last):
        begin, size = kept[row], kept[row + 1] - kept[row]
        for entry in range(size):
            left[begin + entry] = targets[offsets[row] + entry]
        if sums.size:
            for entry in range(size):
                left_sums[begin + entry] = sums[offsets[row] + entry]
