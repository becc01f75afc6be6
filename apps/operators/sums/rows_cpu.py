"""Sums over rows of a CSR or CSC on the CPU: see interfaces.py."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit


@dataclass(frozen=True)
class RowGroups:
    """Rows with edges, in groups that are summed one group at a time.

    Attributes
    ----------
    lids : (rows,) int32
    offsets : (proxies + 1,) int64
        Of the CSR or CSC.
    bounds : list of int
        Group g is ``lids[bounds[g] : bounds[g + 1]]``.
    """

    lids: np.ndarray
    offsets: np.ndarray
    bounds: list[int]


def group_rows(lids: np.ndarray, bounds: Sequence[int], offsets: np.ndarray) -> RowGroups:
    filled = offsets[lids + 1] > offsets[lids]
    before = np.concatenate([[0], np.cumsum(filled)])
    return RowGroups(lids[filled], offsets, before[list(bounds)].tolist())


def sum_rows(rows: RowGroups, group: int, columns: np.ndarray, values: np.ndarray, sums: np.ndarray) -> None:
    lids = rows.lids[rows.bounds[group] : rows.bounds[group + 1]]
    _sum_rows(lids.view(np.uint32), rows.offsets.view(np.uint64), columns.view(np.uint32), values, sums)


@njit(cache=True, nogil=True)
def _sum_rows(lids, offsets, columns, values, sums):  # type: ignore[no-untyped-def]
    """Unsigned places, whose sign need not be checked; four sums, so that no addition waits for the one before."""
    one, four = np.uint64(1), np.uint64(4)
    for place in range(lids.size):
        row = lids[place]
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
