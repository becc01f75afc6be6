"""A few numbers of every rank, combined: sums in the order of ranks, so that all transports give the same bits."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from cusp.runtime.compiled_code import njit

SUM, LOWEST, HIGHEST = range(3)
FLOATS = (float, np.floating)
MOST = 14  # numbers at a time: with two words before them, two cache lines


class Numbers:
    """Numbers of this rank in words, and where those of all ranks come together.

    Attributes
    ----------
    own, result : (1 + MOST,) int64
        Which of the numbers are floats, a bit for each place, and the numbers: int64 or the bits of float64.
    """

    def __init__(self) -> None:
        self.own, self.result = np.zeros(1 + MOST, np.int64), np.zeros(1 + MOST, np.int64)
        self.float_result = self.result.view(np.float64)
        own, result = self.own.data, self.result.data  # faster than arrays for one number at a time
        self._own: Any = own
        self._result: Any = result
        self._own_floats: Any = own.cast("B").cast("d")
        self._float_result: Any = result.cast("B").cast("d")

    def write(self, numbers: Iterable) -> None:
        """Put numbers into ``own``."""
        floats = 0
        for place, number in enumerate(numbers, 1):
            if isinstance(number, FLOATS):
                self._own_floats[place] = float(number)
                floats |= 1 << place
            else:
                self._own[place] = int(number)
        self._own[0] = floats

    def read(self, count: int) -> tuple:
        """The first numbers of ``result``."""
        floats, whole = self._float_result, self._result
        are_floats = whole[0]
        return tuple([floats[at] if are_floats >> at & 1 else whole[at] for at in range(1, count + 1)])


@njit(cache=True, nogil=True)
def combine(words, floats, start, stride, ranks, how, count, result, float_result):  # type: ignore[no-untyped-def]
    """Combine numbers of ranks, those of the first from word ``start`` on, those of the next ``stride`` words later.

    Where some ranks give a whole number and others a float, it is a float. ``floats`` is the memory of ``words``.
    """
    kinds = 0
    for rank in range(ranks):
        kinds |= words[start + rank * stride]
    result[0] = kinds
    for place in range(1, count + 1):
        is_float = (kinds >> place) & 1
        for rank in range(ranks):
            at = start + rank * stride
            if is_float:
                number = floats[at + place] if (words[at] >> place) & 1 else np.float64(words[at + place])
                float_result[place] = number if rank == 0 else _joined(how, float_result[place], number)
            else:
                whole = words[at + place]
                result[place] = whole if rank == 0 else _joined(how, result[place], whole)


@njit(cache=True, nogil=True, inline="always")
def _joined(how, old, new):  # type: ignore[no-untyped-def]
    if how == SUM:
        return old + new
    return new if (new < old) == (how == LOWEST) and new != old else old
