"""Frontiers on the CPU, see interfaces.py; and the bits of labels for compiled loops."""

import numpy as np

from cusp.partition import Partition
from cusp.runtime.compiled_code import njit


def make_queue(part: Partition) -> np.ndarray:
    return np.empty(part.num_proxies + 1, np.int32)


@njit(cache=True, nogil=True, inline="always")
def get_bit(words, place):  # type: ignore[no-untyped-def]
    return (words[place >> 6] >> np.uint64(place & 63)) & np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def set_bit(words, place):  # type: ignore[no-untyped-def]
    words[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
