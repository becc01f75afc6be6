"""Frontiers on the CPU, see interfaces.py; and the bits of labels for compiled loops."""

import numpy as np

from cusp.apps.operators.interfaces import is_sparse
from cusp.kernels.bits import first_bit
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from gluon.sync import Sync


def drains(sync: Sync) -> bool:
    return sync.plan.apart


def runs_ahead(part: Partition, sync: Sync) -> bool:
    return not sync.plan.apart and is_sparse(part)


def make_queue(part: Partition) -> np.ndarray:
    return np.empty(part.num_proxies + 1, np.int32)


@njit(cache=True, nogil=True, inline="always")
def get_bit(words, place):  # type: ignore[no-untyped-def]
    return (words[place >> 6] >> np.uint64(place & 63)) & np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def set_bit(words, place):  # type: ignore[no-untyped-def]
    words[place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@njit(cache=True, nogil=True)
def frontier_size(updated, degrees):  # type: ignore[no-untyped-def]
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
