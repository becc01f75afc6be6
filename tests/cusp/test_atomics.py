"""Atomic operations: nothing is lost when several threads change the same entries, compiled or not."""

import numpy as np
import pytest
from numba import njit

from cusp.runtime import threads
from cusp.runtime.teams.atomics import atomic_add, atomic_and, atomic_min, atomic_or, fence, load, store, wait_a_little

TIMES = 200_000


@njit(nogil=True)
def change(number, words, least, sums):  # type: ignore[no-untyped-def]
    """Thread ``number`` sets every fourth bit, and offers ever lower values; returns what it saw lowered, added up."""
    total = 0
    for turn in range(TIMES):
        atomic_add(sums, 0, sums.dtype.type(1))
        atomic_or(words, turn % words.size, np.uint64(1) << np.uint64(4 * (turn // words.size % 16) + number))
        value = least.dtype.type(3 * TIMES - 4 * turn - number)
        old = atomic_min(least, 0, value)
        total += max(np.int64(old) - np.int64(value), 0)
    return total


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_nothing_is_lost(monkeypatch, kind):
    monkeypatch.setattr(threads._Chosen, "threads", 4)
    words, least, sums = np.zeros(8, np.uint64), np.array([2**30], kind), np.zeros(1, kind)
    lowered = threads.in_parallel(lambda number: change(number, words, least, sums), [(number,) for number in range(4)])
    assert sums[0] == 4 * TIMES
    assert (words == np.uint64(2**64 - 1)).all()
    assert sum(lowered) == 2**30 - least[0]
    assert least[0] == 3 * TIMES - 4 * (TIMES - 1) - 3


def test_the_least_of_unsigned_numbers():
    least = np.array([2**32 - 1], np.uint32)
    lower = njit(lambda array, value: atomic_min(array, 0, value))
    assert lower(least, np.uint32(7)) == 2**32 - 1 and lower(least, np.uint32(2**31)) == 7
    assert least[0] == 7


def test_bits_are_cleared_and_what_was_there_is_returned():
    words = np.array([7, 12], np.uint64)
    clear = njit(lambda array, bits: atomic_and(array, 1, ~bits))
    put = njit(lambda array, bits: atomic_or(array, 0, bits))
    assert clear(words, np.uint64(4)) == 12 and put(words, np.uint64(8)) == 7
    assert words.tolist() == [15, 8]


@njit(nogil=True)
def hand_over(number, flags, values):  # type: ignore[no-untyped-def]
    """Two threads write in turn; each writes one more than what it finds. Returns how often one found something old."""
    wrong = 0
    for turn in range(1000):
        looks = 0
        while load(flags, 0) != 2 * turn + number:
            wait_a_little(looks, 100)
            looks += 1
        wrong += values[0] != 2 * turn + number
        values[0] += 1
        fence()
        store(flags, 0, 2 * turn + number + 1)
    return wrong


def test_what_was_written_before_a_flag_is_seen_with_it(monkeypatch):
    monkeypatch.setattr(threads._Chosen, "threads", 2)
    flags, values = np.zeros(1, np.int64), np.zeros(1, np.int64)
    assert threads.in_parallel(lambda number: hand_over(number, flags, values), [(0,), (1,)]) == [0, 0]
    assert values[0] == 2000


def test_without_the_compiler():
    words, least = np.array([4, 1]), np.array([9])
    assert atomic_or(words, 1, 6) == 1 and atomic_and(words, 1, 3) == 7
    assert atomic_min(least, 0, 5) == 9 and atomic_min(least, 0, 6) == 5
    assert atomic_add(words, 0, 5) == 4 and load(words, 0) == 9
    store(words, 0, 4)
    fence()
    wait_a_little(0, 0)
    assert words.tolist() == [4, 3] and least.tolist() == [5]
