"""Flags in memory that several processes see: what was written before one is raised is seen by who finds it raised.

Stores of NumPy say nothing about order, and processors other than x86 make use of that. So flags are stored and loaded
by :mod:`cusp.kernels.atomics`.

A flag is a number that only grows: it is raised to the number of an exchange, and waited for with "at least".
"""

from cusp.kernels.atomics import load, store
from cusp.runtime.compiled_code import njit

LINE = 8  # words of a cache line: flags of two writers are never in the same


@njit(cache=True, nogil=True)
def raise_flag(words, place, value):  # type: ignore[no-untyped-def]
    """Announce what was written before."""
    store(words, place, value)


@njit(cache=True, nogil=True)
def missing(words, places, value, polls):  # type: ignore[no-untyped-def]
    """Entry of the first of the flags at ``places`` that is below ``value`` after so many looks; -1 if none is."""
    for entry in range(places.size):
        left = polls
        while load(words, places[entry]) < value:
            left -= 1
            if left < 0:
                return entry
    return -1
