"""What the sync layer does to labels on the CPU, see interfaces.py; values extracted into a message, and combined.

A block of a message, in words of 8 bytes, is the smallest of what carries the updated entries of a
list of local ids that both sides know (Gluon, PLDI 2018, section 4.2: memoised order, wire modes)::

    header: mode + (number of entries << 8) | positions | values, padded to a word

    NONE      no entry was updated
    ALL       every entry was: no positions
    BITSET    one bit per entry of the list
    OFFSETS   uint32 positions in the list

Values are left out where the receiver knows them (the level of a BFS).
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from cusp.kernels.bits import first_bit, popcount
from cusp.partition import Partition
from gluon.reduction_cpu import compiled_with

if TYPE_CHECKING:
    from gluon.reduction import Reduction

NONE, ALL, BITSET, OFFSETS = range(4)
xp = np  # what makes and handles its arrays


def full(size: int, fill: float, dtype: np.dtype) -> np.ndarray:
    return np.full(size, fill, dtype)


def no_bits(size: int) -> np.ndarray:
    return np.zeros(-(-size // 64), np.uint64)


def clear(words: np.ndarray) -> None:
    words.fill(0)


def write(part: Partition, gid: int, value: float, values: np.ndarray, updated: np.ndarray) -> None:
    lid = part.lid(gid)
    if lid >= 0:
        values[lid] = value
        updated[lid >> 6] |= np.uint64(1 << (lid & 63))


def wait() -> None:
    """A call returns when all is done."""


def block_words(entries: int, itemsize: int) -> int:
    """Words of the largest block for a list of ``entries``."""
    return 1 + -(-entries // 64) + -(-entries * itemsize // 8)


@njit(cache=True, nogil=True)
def extract(lids, values, updated, with_values, reset, identity, words, halves, items, start):  # type: ignore[no-untyped-def]
    """Write one block from word ``start`` on; returns the word after it.

    ``halves`` and ``items`` are the memory of ``words`` seen as uint32 and as the label's type. With
    ``reset``, what was sent goes back to the identity and is no longer updated.
    """
    chosen = np.zeros((lids.size + 63) // 64, np.uint64)
    count = 0
    for i in range(lids.size):
        bit = (updated[lids[i] >> 6] >> np.uint64(lids[i] & 63)) & np.uint64(1)
        chosen[i >> 6] |= bit << np.uint64(i & 63)
        count += np.int64(bit)
    mode = NONE
    at = start + 1
    if count == lids.size and count > 0:
        mode = ALL
    elif count > 0 and (count + 1) // 2 < chosen.size:
        mode = OFFSETS
    elif count > 0:
        mode = BITSET
        for word in range(chosen.size):  # a slice would make numba compile the text of its errors
            words[at + word] = chosen[word]
        at += chosen.size
    words[start] = np.uint64(mode | (count << 8))
    half = 2 * at
    if mode == OFFSETS:
        at += (count + 1) // 2
    item = at * 8 // values.itemsize
    for word in range(chosen.size if mode != NONE else 0):
        bits = chosen[word]
        while bits:
            i = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            lid = lids[i]
            if mode == OFFSETS:
                halves[half] = i
                half += 1
            if with_values:
                items[item] = values[lid]
                item += 1
            if reset:
                values[lid] = identity
                updated[lid >> 6] &= ~(np.uint64(1) << np.uint64(lid & 63))
    return at + ((count * values.itemsize + 7) // 8 if with_values else 0)


combine_one: Any = None  # compiled_with puts that of a reduction in its place


def _combine(lids, values, updated, with_values, implied, words, halves, items, start):  # type: ignore[no-untyped-def]
    """Apply one block from word ``start`` on; returns the word after it."""
    mode = np.int64(words[start] & np.uint64(255))
    count = np.int64(words[start] >> np.uint64(8))
    at = start + 1
    bitset = at
    half = 2 * at
    if mode == BITSET:
        at += (lids.size + 63) // 64
    elif mode == OFFSETS:
        at += (count + 1) // 2
    item = at * 8 // values.itemsize
    if mode == BITSET:
        for word in range((lids.size + 63) // 64):
            bits = words[bitset + word]
            while bits:
                i = word * 64 + first_bit(bits)
                bits &= bits - np.uint64(1)
                combine_one(lids[i], items[item] if with_values else implied, values, updated)
                item += 1
    else:
        for i in range(count):
            lid = lids[halves[half + i]] if mode == OFFSETS else lids[i]
            combine_one(lid, items[item + i] if with_values else implied, values, updated)
    return at + ((count * values.itemsize + 7) // 8 if with_values else 0)


@functools.cache
def combine_by(reduction: "Reduction") -> Callable[..., int]:
    """A function that applies one block of a message by a reduction; its parameters are those of ``_combine``."""
    return compiled_with(reduction, _combine)


@njit(cache=True, nogil=True)
def count_bits(words, size):  # type: ignore[no-untyped-def]
    total = np.uint64(0)
    for word in range(size >> 6):
        total += popcount(words[word])
    if size & 63:
        total += popcount(words[size >> 6] & ((np.uint64(1) << np.uint64(size & 63)) - np.uint64(1)))
    return total


def take_bits(words: np.ndarray, size: int) -> np.ndarray:
    places = np.empty(int(count_bits(words, size)), np.int32)
    move_bits(words, places)
    return places


@njit(cache=True, nogil=True)
def move_bits(words, places):  # type: ignore[no-untyped-def]
    """Places of the set bits, ascending; they are cleared. Returns how many."""
    entry = 0
    for word in range(words.size):
        bits = words[word]
        if bits:
            words[word] = 0
            while bits:
                places[entry] = word * 64 + first_bit(bits)
                bits &= bits - np.uint64(1)
                entry += 1
    return entry
