"""Passes that threads share in compiled code: every piece once, whatever the threads, the arguments and the cache."""

import os
import subprocess
import sys
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

from cusp.runtime import threads
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import atomic_add
from cusp.runtime.teams.lent import borrow, give_back
from cusp.runtime.teams.together import together
from cusp.runtime.threads import cut, in_parallel, numbered

SIZE = 100_000


class Given(NamedTuple):
    """Arguments of several types, in a tuple."""

    factors: np.ndarray
    shift: float
    negative: bool


@njit(nogil=True)
def add(first, last, values, given):  # type: ignore[no-untyped-def]
    for place in range(first, last):
        more = values.dtype.type(given.factors[place] * given.shift)
        values[place] += -more if given.negative else more


@njit(nogil=True)
def divide(first, last, values, by):  # type: ignore[no-untyped-def]
    for place in range(first, last):
        values[place] = place // by


@pytest.fixture(params=[1, 2, 3, 7])
def number(request: Any) -> Any:
    """Threads, as many as cores or more."""
    threads.use_threads(request.param)
    yield request.param
    threads.use_threads(None)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
@pytest.mark.parametrize("pieces", [1, 2, 16, 1000])
def test_each_piece_is_done_once(number, dtype, pieces):
    factors = np.arange(SIZE, dtype=np.int32)
    for negative in False, True:
        values = np.zeros(SIZE, dtype)
        for _ in range(20):
            together(add, cut(SIZE, pieces), values, Given(factors, 2.0, negative))
        np.testing.assert_array_equal(values, factors.astype(dtype) * (-40 if negative else 40))


@njit(nogil=True)
def add_some(number, first, last, values, sums):  # type: ignore[no-untyped-def]
    sums[number] = values[first:last].sum()


def test_pieces_of_three_numbers(number):
    values, sums = np.arange(SIZE), np.zeros(41, np.int64)
    together(add_some, numbered([*cut(SIZE, 40), (7, 7)]), values, sums)
    assert sums.tolist() == [*values.reshape(40, -1).sum(axis=1), 0]


def test_what_is_borrowed_has_one_owner(number):
    lent, owners, seen = np.zeros(number, np.int64), np.zeros(number, np.int64), np.zeros(1, np.int64)
    together(own_one, cut(SIZE, 400), lent, owners, seen)
    assert seen[0] == 0 and owners.sum() == 400 and not lent.any()


@njit(nogil=True)
def own_one(first, last, lent, owners, seen):  # type: ignore[no-untyped-def]
    place = borrow(lent)
    for _ in range(first, last):
        seen[0] |= atomic_add(lent, place, 1) - 1
        atomic_add(lent, place, -1)
    owners[place] += 1
    give_back(lent, place)


def test_nothing_to_do(number):
    values = np.ones(3)
    together(add, [(2, 2)], values, Given(np.ones(3, np.int32), 1.0, False))
    together(add, [(0, 0)] * 5, values, Given(np.ones(3, np.int32), 1.0, False))
    assert values.tolist() == [1, 1, 1]


def test_a_kernel_that_raises_is_no_silent_loss(number):
    with pytest.raises(ArithmeticError, match="divide: it must not raise"):
        together(divide, cut(SIZE, 40), np.zeros(SIZE, np.int64), 0)
    values = np.zeros(SIZE, np.int64)
    together(divide, cut(SIZE, 40), values, 2)
    np.testing.assert_array_equal(values, np.arange(SIZE) // 2)


def test_several_callers_at_once(number):
    """One of them leads the helpers, the others are alone."""

    def call(values: np.ndarray) -> None:
        for _ in range(50):
            together(add, cut(SIZE, 30), values, Given(np.ones(SIZE, np.int32), 1.0, False))

    found = np.zeros((4, SIZE))
    callers = [threading.Thread(target=call, args=[values]) for values in found]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert (found == 50).all()


def test_in_a_piece_and_between_passes_of_python(number):
    """Pieces of both kinds meet the same threads, awake or asleep."""
    found = np.zeros((number + 1, SIZE))
    for turn in range(30):
        in_parallel(
            lambda row: together(add, cut(SIZE, 4), found[row], Given(np.ones(SIZE, np.int32), 1.0, False)),
            [(row,) for row in range(number + 1)],
        )
        together(add, cut(SIZE, 9), found[0], Given(np.ones(SIZE, np.int32), 1.0, False))
        if turn % 10 == 0:
            threading.Event().wait(0.01)
    assert (found[0] == 60).all() and (found[1:] == 30).all()


def test_a_child_has_threads_of_its_own(number):
    values = np.zeros(SIZE)
    together(add, cut(SIZE, 9), values, Given(np.ones(SIZE, np.int32), 1.0, False))
    child = os.fork()
    if child == 0:
        together(add, cut(SIZE, 9), values, Given(np.ones(SIZE, np.int32), 1.0, False))
        os._exit(int(not (values == 2).all()))
    assert os.waitpid(child, 0)[1] == 0


MODULE = """
import sys
import numpy as np
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.together import together

@njit(cache=True, nogil=True)
def one(first, last, values):
    values[first:last] += 1

@njit(cache=True, nogil=True)
def two(first, last, values):
    values[first:last] += 2

for name in sys.argv[1:]:
    values = np.zeros(10)
    together(globals()[name], [(0, 5), (5, 10)], values)
    assert (values == {"one": 1, "two": 2}[name]).all(), name
"""


def test_kernels_of_the_same_types_from_the_cache(tmp_path):
    """Each is compiled in a process of its own first, so what is compiled for both has the same number."""
    path = tmp_path / "kernels_of_a_test.py"
    path.write_text(MODULE)
    for names in ["one"], ["two"], ["one", "two"], ["two", "one"]:
        done = subprocess.run(
            [sys.executable, path, *names], env=os.environ | {"CUSP_CACHE": str(tmp_path / "cache")}, timeout=100
        )
        assert done.returncode == 0
