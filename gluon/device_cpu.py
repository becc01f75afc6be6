"""The values and bits of labels on the CPU, see interfaces.py."""

from typing import Any

import numpy as np

from cusp.kernels.bits import first_bit, popcount
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import atomic_or
from cusp.runtime.teams.together import together
from cusp.runtime.threads import ranges

xp = np  # what makes and handles its arrays


def full(size: int, fill: float, dtype: Any) -> np.ndarray:
    values, pieces = np.empty(size, dtype), ranges(size)
    if len(pieces) == 1:
        values.fill(fill)
    else:  # memory is first written by the threads that will read it
        together(_fill, pieces, *(array.view(f"u{values.itemsize}") for array in (np.full(1, fill, dtype), values)))
    return values


@njit(cache=True, nogil=True)
def _fill(first, last, fill, values):  # type: ignore[no-untyped-def]
    value = fill[0]
    for place in range(np.uint64(first), np.uint64(last)):
        values[place] = value


def no_bits(size: int) -> np.ndarray:
    return np.zeros(-(-size // 64), np.uint64)


def clear(words: np.ndarray) -> None:
    words.fill(0)


def write(part: Partition, gid: int, value: float, values: np.ndarray, updated: np.ndarray) -> None:
    lid = part.lid(gid)
    if lid >= 0:
        values[lid] = value
        updated[lid >> 6] |= np.uint64(1 << (lid & 63))


def signed(values: np.ndarray, nothing: np.generic, dtype: np.dtype) -> np.ndarray:
    results = np.empty(values.size, dtype)
    together(_signed, ranges(values.size), values, nothing, results)
    return results


@njit(cache=True, nogil=True)
def _signed(first, last, values, nothing, results):  # type: ignore[no-untyped-def]
    values, results = values[first:last], results[first:last]
    for place in range(values.size):
        results[place] = -1 if values[place] == nothing else values[place]


def wait() -> None:
    """A call returns when all is done."""


@njit(cache=True, nogil=True, inline="always")
def get_bit(words, place):  # type: ignore[no-untyped-def]
    return (words[place >> 6] >> np.uint64(place & 63)) & np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def set_bit(words, place):  # type: ignore[no-untyped-def]
    words[place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@njit(cache=True, nogil=True, inline="always")
def set_bit_atomic(words, place):  # type: ignore[no-untyped-def]
    """While other threads set bits in the same word."""
    atomic_or(words, place >> 6, np.uint64(1) << np.uint64(place & 63))


@njit(cache=True, nogil=True)
def set_bits(places, words):  # type: ignore[no-untyped-def]
    for place in places:
        set_bit(words, place)


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
def list_bits(words, places):  # type: ignore[no-untyped-def]
    """Places of the set bits, ascending; returns how many."""
    entry = 0
    for word in range(words.size):
        entry = _list_word(word, words[word], places, entry)
    return entry


@njit(cache=True, nogil=True)
def move_bits(words, places):  # type: ignore[no-untyped-def]
    """The same, and they are cleared."""
    entry = 0
    for word in range(words.size):
        bits = words[word]
        if bits:
            words[word] = 0
            entry = _list_word(word, bits, places, entry)
    return entry


@njit(cache=True, nogil=True, inline="always")
def _list_word(word, bits, places, entry):  # type: ignore[no-untyped-def]
    while bits:
        places[entry] = word * 64 + first_bit(bits)
        bits &= bits - np.uint64(1)
        entry += 1
    return entry
