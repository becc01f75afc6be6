"""Sums over rows of a CSR or CSC on the CPU: see interfaces.py. A row is summed by one thread, in its own order."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cusp.kernels.arrays import compress, mapped, offsets_of, sizes_of, total
from cusp.kernels.bits import unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.together import together
from cusp.runtime.threads import Range, row_spans


@dataclass(frozen=True)
class RowGroups:
    """Rows with edges, in groups that are summed one group at a time.

    Attributes
    ----------
    lids : (rows,) int32
        Empty if row i is that of local id i.
    offsets : (proxies + 1,) int64
        Of the CSR or CSC.
    groups : list of lists of (int, int)
        Group g is ``lids[first:last]`` for all of ``groups[g]``, which have about as many edges each.
    """

    lids: np.ndarray
    offsets: np.ndarray
    groups: list[list[Range]]


def group_rows(lids: np.ndarray, bounds: Sequence[int], offsets: np.ndarray) -> RowGroups:
    sizes = sizes_of(offsets, lids)
    filled = mapped(lambda some: some > 0, sizes, dtype=np.bool_)
    firsts = np.cumsum([total(filled[first:last]) for first, last in pairwise([0, *bounds])]).tolist()
    before = offsets_of(compress(filled, sizes))
    lids = compress(filled, lids)
    first_ones = len(bounds) == 2 and lids.size > 0 and lids[-1] == lids.size - 1  # those of one group ascend
    spans = [row_spans(before, *group) for group in pairwise(firsts)]
    return RowGroups(lids[:0] if first_ones else lids, offsets, spans)


def sum_rows(
    rows: RowGroups, group: int, columns: np.ndarray, values: np.ndarray, sums: np.ndarray,
    weights: np.ndarray | None = None,
) -> None:  # fmt: skip
    edges, pieces = (*unsigned(rows.lids, rows.offsets, columns), values, sums), rows.groups[group]
    if weights is None:
        together(sum_plain_rows, pieces, *edges)
    else:
        together(sum_weighted_rows, pieces, *edges, weights)


@njit(cache=True, nogil=True)
def sum_plain_rows(first, last, lids, offsets, columns, values, sums):  # type: ignore[no-untyped-def]
    """Unsigned places, whose sign need not be checked; four sums, so that no addition waits for the one before."""
    one, four, alike = np.uint64(1), np.uint64(4), lids.size == 0
    for place in range(np.uint64(first), np.uint64(last)):
        row = place if alike else np.uint64(lids[place])
        a = b = c = d = 0.0
        edge, end = offsets[row], offsets[row + one]
        while edge + four <= end:
            a += values[columns[edge]]
            b += values[columns[edge + one]]
            c += values[columns[edge + np.uint64(2)]]
            d += values[columns[edge + np.uint64(3)]]
            edge += four
        while edge < end:
            a += values[columns[edge]]
            edge += one
        sums[row] = (a + b) + (c + d)


@njit(cache=True, nogil=True)
def sum_weighted_rows(first, last, lids, offsets, columns, values, sums, weights):  # type: ignore[no-untyped-def]
    """As :func:`sum_plain_rows`, with two sums: each edge is two loads from memory already."""
    one, two, alike = np.uint64(1), np.uint64(2), lids.size == 0
    for place in range(np.uint64(first), np.uint64(last)):
        row = place if alike else np.uint64(lids[place])
        a = b = 0.0
        edge, end = offsets[row], offsets[row + one]
        while edge + two <= end:
            a += values[columns[edge]] * weights[edge]
            b += values[columns[edge + one]] * weights[edge + one]
            edge += two
        if edge < end:
            a += values[columns[edge]] * weights[edge]
        sums[row] = a + b
