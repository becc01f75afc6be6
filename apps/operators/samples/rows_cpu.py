"""Rows for random choices, put into an order that no partition changes; on the host, for every device."""

from typing import TYPE_CHECKING

import numpy as np

from cusp.apps.operators.samples.interfaces import BITS
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.together import together
from cusp.runtime.threads import row_ranges

if TYPE_CHECKING:
    from cusp.apps.shared.graphs.undirected import RowPieces


def order_rows(
    offsets: np.ndarray, ends: np.ndarray, marks: np.ndarray, numbers: np.ndarray, bits: int, by_marks: bool
) -> None:
    """Sort each row by global id and then by mark, or by mark first; edges that are alike by number.

    Parameters
    ----------
    offsets, ends, marks
        As in :class:`~cusp.apps.operators.samples.interfaces.Rows`; there may be no marks.
    numbers : (edges,) int64, or (0,)
        Of edges.
    bits : int
        The lowest bits of ``ends`` are global ids.
    """
    mask = (1 << bits) - 1
    together(_order_some, row_ranges(offsets), offsets, ends, marks, numbers, mask, by_marks)


def add_shares(offsets: np.ndarray, weights: np.ndarray, sums: np.ndarray) -> None:
    """Running sums of each row's weights, all above 0, as whole numbers: in all about 2^BITS, and each at least 1."""
    together(_add_some, row_ranges(offsets), offsets, weights, sums)


def find_places(
    arrived: "list[RowPieces]", offsets: np.ndarray, ends: np.ndarray, marks: np.ndarray, firsts: np.ndarray
) -> list[np.ndarray]:
    """Where the entries of pieces are in the sorted rows that were made of them; ``firsts`` are the places of rows.

    Entries that are alike get different places: the earlier the piece, the lower.
    """
    taken, found = np.zeros(ends.size, np.int32), [np.empty(rows.places.size, np.int64) for rows in arrived]
    for rows, places in zip(arrived, found):
        given = rows.lids, rows.offsets, rows.places, rows.nodes, marks if rows.weights is None else rows.weights
        together(_find_some, row_ranges(rows.offsets), *given, offsets, ends, marks, taken, firsts, places)
    return found


@njit(cache=True, nogil=True)
def _find_some(  # type: ignore[no-untyped-def]
    begin, end, lids, pieces, nodes, gids, weights, offsets, ends, marks, taken, firsts, places
):
    for row in range(begin, end):
        first = offsets[lids[row]]
        for entry in range(pieces[row], pieces[row + 1]):
            gid, low, high = gids[nodes[entry]], first, offsets[lids[row] + 1]
            while low < high:
                middle = (low + high) >> 1
                if ends[middle] < gid or (marks.size and ends[middle] == gid and marks[middle] < weights[entry]):
                    low = middle + 1
                else:
                    high = middle
            places[entry] = firsts[lids[row]] + low - first + taken[low]
            taken[low] += 1


@njit(cache=True, nogil=True)
def _order_some(first, last, offsets, ends, marks, numbers, mask, by_marks):  # type: ignore[no-untyped-def]
    """Shell's sort, with gaps of 3 * gap + 1 (Knuth, TAOCP 3, 5.2.1): rows that are in order stay as they are."""
    for row in range(first, last):
        begin, end = offsets[row], offsets[row + 1]
        if _is_ordered(ends, marks, numbers, begin, end, mask, by_marks):
            continue
        gap = 1
        while 3 * gap + 1 < end - begin:
            gap = 3 * gap + 1
        while gap:
            for place in range(begin + gap, end):
                edge, to = _edge(ends, marks, numbers, place), place
                while to >= begin + gap:
                    other = _edge(ends, marks, numbers, to - gap)
                    if not _before(edge, other, mask, by_marks):
                        break
                    _put(ends, marks, numbers, to, other)
                    to -= gap
                _put(ends, marks, numbers, to, edge)
            gap //= 3


@njit(cache=True, nogil=True, inline="always")
def _is_ordered(ends, marks, numbers, begin, end, mask, by_marks):  # type: ignore[no-untyped-def]
    for place in range(begin + 1, end):
        before = _edge(ends, marks, numbers, place - 1)
        if _before(_edge(ends, marks, numbers, place), before, mask, by_marks):
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def _edge(ends, marks, numbers, place):  # type: ignore[no-untyped-def]
    return ends[place], marks[place] if marks.size else 0, numbers[place] if numbers.size else 0


@njit(cache=True, nogil=True, inline="always")
def _put(ends, marks, numbers, place, edge):  # type: ignore[no-untyped-def]
    ends[place] = edge[0]
    if marks.size:
        marks[place] = edge[1]
    if numbers.size:
        numbers[place] = edge[2]


@njit(cache=True, nogil=True, inline="always")
def _before(edge, other, mask, by_marks):  # type: ignore[no-untyped-def]
    gid, mark, number = edge[0] & mask, edge[1], edge[2]
    gid_of_other, mark_of_other, number_of_other = other[0] & mask, other[1], other[2]
    if by_marks and mark != mark_of_other:
        return mark < mark_of_other
    if gid != gid_of_other:
        return gid < gid_of_other
    return mark < mark_of_other or (mark == mark_of_other and number < number_of_other)


@njit(cache=True, nogil=True)
def _add_some(first, last, offsets, weights, sums):  # type: ignore[no-untyped-def]
    for row in range(first, last):
        largest, total, upto = 0.0, 0.0, 0
        for edge in range(offsets[row], offsets[row + 1]):
            largest = max(largest, float(weights[edge]))
        for edge in range(offsets[row], offsets[row + 1]):
            total += weights[edge] / largest
        for edge in range(offsets[row], offsets[row + 1]):
            upto += max(1, np.int64(weights[edge] / largest / total * float(1 << BITS)))
            sums[edge] = upto
