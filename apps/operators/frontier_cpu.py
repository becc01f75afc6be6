"""Frontiers on the CPU: bits of a label, counted; memory for an operator's own queue."""

import numpy as np
from numba import njit

from cusp.kernels.bits import first_bit
from cusp.partition import Partition


def drains(ranks: int) -> bool:
    """Whether a whole traversal runs in one call: on the CPU a round costs too little for that to pay."""
    return False


def make_queue(part: Partition) -> np.ndarray:
    """Memory that an operator needs while it runs, made once per partition."""
    return np.empty(part.num_proxies + 1, np.int32)


@njit(cache=True, nogil=True, inline="always")
def get_bit(words, place):  # type: ignore[no-untyped-def]
    return (words[place >> 6] >> np.uint64(place & 63)) & np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def set_bit(words, place):  # type: ignore[no-untyped-def]
    words[place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@njit(cache=True, nogil=True)
def frontier_size(updated, degrees):  # type: ignore[no-untyped-def]
    """Updated masters, and the out-edges that they have in the whole graph."""
    nodes = edges = 0
    for word in range((degrees.size + 63) >> 6):
        bits = updated[word]
        while bits:
            lid = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            if lid < degrees.size:
                nodes += 1
                edges += degrees[lid]
    return nodes, edges
