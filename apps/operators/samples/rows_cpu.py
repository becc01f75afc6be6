"""Rows for random choices, put into an order that no partition changes; on the host, for every device."""

import numpy as np

from cusp.apps.operators.samples.interfaces import BITS
from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import in_parallel, row_ranges


def order_rows(offsets: np.ndarray, ends: np.ndarray, marks: np.ndarray, bits: int, by_marks: bool) -> None:
    """Sort each row by global id and then by mark, or by mark first.

    Parameters
    ----------
    offsets, ends, marks
        As in :class:`~cusp.apps.operators.samples.interfaces.Rows`; there may be no marks.
    bits : int
        The lowest bits of ``ends`` are global ids.
    """
    mask = (1 << bits) - 1
    in_parallel(lambda a, b: _order_some(offsets[a : b + 1], ends, marks, mask, by_marks), row_ranges(offsets))


def add_shares(offsets: np.ndarray, weights: np.ndarray, sums: np.ndarray) -> None:
    """Running sums of each row's weights, all above 0, as whole numbers: in all about 2^BITS, and each at least 1."""
    in_parallel(lambda a, b: _add_some(offsets[a : b + 1], weights, sums), row_ranges(offsets))


@njit(cache=True, nogil=True)
def _order_some(offsets, ends, marks, mask, by_marks):  # type: ignore[no-untyped-def]
    """Shell's sort, with gaps of 3 * gap + 1 (Knuth, TAOCP 3, 5.2.1): rows that are in order stay as they are."""
    for row in range(offsets.size - 1):
        begin, end = offsets[row], offsets[row + 1]
        if _is_ordered(ends, marks, begin, end, mask, by_marks):
            continue
        gap = 1
        while 3 * gap + 1 < end - begin:
            gap = 3 * gap + 1
        while gap:
            for place in range(begin + gap, end):
                node, mark, to = ends[place], marks[place] if marks.size else 0, place
                while to >= begin + gap and _before(
                    node & mask, mark, ends[to - gap] & mask, marks[to - gap] if marks.size else 0, by_marks
                ):
                    ends[to] = ends[to - gap]
                    if marks.size:
                        marks[to] = marks[to - gap]
                    to -= gap
                ends[to] = node
                if marks.size:
                    marks[to] = mark
            gap //= 3


@njit(cache=True, nogil=True, inline="always")
def _is_ordered(ends, marks, begin, end, mask, by_marks):  # type: ignore[no-untyped-def]
    for place in range(begin + 1, end):
        mark, before = (marks[place], marks[place - 1]) if marks.size else (0, 0)
        if _before(ends[place] & mask, mark, ends[place - 1] & mask, before, by_marks):
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def _before(gid, mark, other, other_mark, by_marks):  # type: ignore[no-untyped-def]
    if by_marks:
        return mark < other_mark or (mark == other_mark and gid < other)
    return gid < other or (gid == other and mark < other_mark)


@njit(cache=True, nogil=True)
def _add_some(offsets, weights, sums):  # type: ignore[no-untyped-def]
    for row in range(offsets.size - 1):
        largest, total, upto = 0.0, 0.0, 0
        for edge in range(offsets[row], offsets[row + 1]):
            largest = max(largest, float(weights[edge]))
        for edge in range(offsets[row], offsets[row + 1]):
            total += weights[edge] / largest
        for edge in range(offsets[row], offsets[row + 1]):
            upto += max(1, np.int64(weights[edge] / largest / total * float(1 << BITS)))
            sums[edge] = upto
