"""Checksums of whole datasets from those of their parts, of any sizes, which simply add up."""

import numpy as np

from cusp.runtime.compiled_code import njit

_MASK = 0xFFFFFFFFFFFFFFFF


@njit(cache=True, nogil=True)
def _weighted_sum(values, first):  # type: ignore[no-untyped-def]
    total = np.uint64(0)
    weight = np.uint64(2) * np.uint64(first) + np.uint64(1)
    for i in range(values.size):
        total += (np.uint64(values[i]) + np.uint64(1)) * (weight + np.uint64(2) * np.uint64(i))
    return total


@njit(cache=True, nogil=True)
def _sum_and_highest(values, first):  # type: ignore[no-untyped-def]
    total, highest = np.uint64(0), values[0]
    weight = np.uint64(2) * np.uint64(first) + np.uint64(1)
    for i in range(values.size):
        total += (np.uint64(values[i]) + np.uint64(1)) * (weight + np.uint64(2) * np.uint64(i))
        highest = max(highest, values[i])
    return total, highest


def as_bits(values: np.ndarray) -> np.ndarray:
    """View numbers of any type as unsigned integers of the same width."""
    return values.view(f"u{values.dtype.itemsize}")


def checksum(values: np.ndarray, first: int = 0) -> int:
    """Checksum of ``values``, which are at positions ``first``, ``first + 1`` ... of a dataset.

    ``sum((bits(values[i]) + 1) * (2 * i + 1)) mod 2**64`` over positions ``i``, with the bits taken as an unsigned
    integer. The factors are odd, so any change of a single value changes the sum, and they differ, so swapped or
    shifted values do. Parts add up (mod 2**64), whichever rank read them.

    >>> values = np.array([3, 1, 4, 1, 5])
    >>> combine([checksum(values[:2]), checksum(values[2:], first=2)]) == checksum(values)
    True
    """
    if values.size == 0:
        return 0
    return int(_weighted_sum(as_bits(values), first)) & _MASK


def sum_and_highest(values: np.ndarray, first: int = 0) -> tuple[int, int]:
    """:func:`checksum`, and the highest of at least one value, taken as unsigned integers too; in one pass."""
    total, highest = _sum_and_highest(as_bits(values), first)
    return int(total) & _MASK, int(highest)


def combine(parts: "list[int]") -> int:
    """Checksum of a dataset from those of its parts."""
    return sum(parts) & _MASK
