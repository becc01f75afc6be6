"""Bits for compiled loops: the same numbers compiled and in Python."""

import numpy as np
from numba import njit

from cusp.kernels.bits import first_bit, popcount


@njit
def compiled(words):  # type: ignore[no-untyped-def]
    """Set bits and the place of the lowest one, of each word."""
    return [(popcount(word), first_bit(word)) for word in words]


def test_counts_and_places():
    """Against the binary digits, for words with one bit, all bits and some."""
    random = np.random.default_rng(1).integers(1, 2**64, 50, np.uint64).tolist()
    words = [*(1 << place for place in range(64)), 2**64 - 1, *(value >> 9 << 9 | 2**40 for value in random)]
    digits = [f"{word:b}" for word in words]
    expected = [(text.count("1"), len(text) - 1 - text.rindex("1")) for text in digits]
    assert compiled(np.array(words, np.uint64)) == expected
    assert [(popcount(word), first_bit(word)) for word in np.array(words, np.uint64)] == expected
