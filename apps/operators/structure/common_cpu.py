"""Common neighbours on the CPU: see interfaces.py."""

import numpy as np

from cusp.kernels.arrays import offsets_of, sizes_of
from cusp.kernels.bits import unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import in_parallel, row_ranges


def count_common(
    offsets: np.ndarray, targets: np.ndarray, highs: np.ndarray, lows: np.ndarray, begins: np.ndarray,
    entries: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """A row of the CSR is marked once for all pairs that follow with it."""
    counts = np.empty(highs.size, np.int64)
    rest = unsigned(offsets, targets), unsigned(begins, entries)

    def count(first: int, last: int) -> None:
        marks = np.zeros(offsets.size - 1, np.uint8)
        _count(*rest[0], *unsigned(highs[first:last], lows[first:last]), *rest[1], marks, counts[first:last])

    in_parallel(count, row_ranges(offsets_of(sizes_of(begins, lows))))
    return counts


@njit(cache=True, nogil=True)
def _count(offsets, targets, highs, lows, begins, entries, marks, counts):  # type: ignore[no-untyped-def]
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
