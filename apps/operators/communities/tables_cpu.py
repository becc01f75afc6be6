"""The weight from a row to each community around it, on CPUs: in an array of all communities, or in a hash table.

The array takes less time for an edge while those of all threads fit in the cache that they share. Else each read comes
from memory, which 16 threads wait for; then a table as short as the row needs stays in a cache of its core.
"""

from typing import NamedTuple

import numpy as np

from cusp.kernels.arrays import extremes, sizes_of, total_of
from cusp.kernels.bits import GOLDEN
from cusp.runtime.compiled_code import njit

SHARED = 1 << 22  # entries, 32 MB: the cache that threads share on most hosts, or what one of them has of a larger one
EMPTY, ONE = np.uint32(0), np.uint32(1)


class Table(NamedTuple):
    """Of one thread; empty between two rows.

    Attributes
    ----------
    keys : (places,) uint32, or (0,) for an array of all communities
        Communities, from 1 on, or EMPTY: open addressing with linear probing (Knuth, TAOCP 3, section 6.4).
    sums : (places,) float64
    filled : (edges of a row,) uint32
        Places, in the order in which they were filled. In an array, one to which an edge of weight 0 leads may be there
        twice, which changes nothing.
    """

    keys: np.ndarray
    sums: np.ndarray
    filled: np.ndarray


def new_tables(threads: int, offsets: np.ndarray, communities: int) -> Table:
    """Those of all threads for these rows: arrays with a row for each, which first touches its memory itself."""
    sizes = sizes_of(offsets)
    longest = extremes(sizes)[1] if sizes.size else 0
    hashed = threads * total_of(lambda some: some > 0, sizes) > SHARED
    places = 1 << 64 - int(shift_of(longest, communities)) if hashed else communities
    keys, filled = (threads, places if hashed else 0), (threads, longest)
    return Table(np.zeros(keys, np.uint32), np.zeros((threads, places)), np.empty(filled, np.uint32))


@njit(cache=True, nogil=True, inline="always")
def shift_of(edges, communities):  # type: ignore[no-untyped-def]
    """Of the hash, for a row with so many edges: half of its places stay empty."""
    size, bits = 2 * min(np.int64(edges), communities), 4
    while 1 << bits < size:
        bits += 1
    return np.uint64(64 - bits)


@njit(cache=True, nogil=True, inline="always")
def place_of(community, keys, shift):  # type: ignore[no-untyped-def]
    """Where a community is, or the empty place that it gets."""
    key, one = np.uint32(community + ONE), np.uint64(1)
    place = np.uint64(community) * GOLDEN >> shift
    while keys[place] != key and keys[place] != EMPTY:
        place = (place + one) & ((one << (np.uint64(64) - shift)) - one)
    return place


@njit(cache=True, nogil=True, inline="always")
def fill(begin, end, targets, weights, numbers, table):  # type: ignore[no-untyped-def]
    """An array gets the weight to each community to which these edges lead; returns how many they are."""
    weighted, count, sums, filled = weights.size > 0, 0, table.sums, table.filled
    for edge in range(begin, end):
        community = numbers[targets[edge]]
        before = sums[community]
        filled[count] = community
        count += before == 0
        sums[community] = before + (weights[edge] if weighted else 1.0)
    return count


@njit(cache=True, nogil=True, inline="always")
def fill_hashed(begin, end, targets, weights, numbers, table, shift):  # type: ignore[no-untyped-def]
    """The same of a hash table."""
    weighted, count, keys, sums, filled = weights.size > 0, 0, table.keys, table.sums, table.filled
    for edge in range(begin, end):
        community = numbers[targets[edge]]
        place = place_of(community, keys, shift)
        filled[count] = place
        count += keys[place] == EMPTY
        keys[place] = community + ONE
        sums[place] += weights[edge] if weighted else 1.0
    return count
