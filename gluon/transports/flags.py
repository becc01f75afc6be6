"""Flags in memory that several processes see: what was written before one is raised is seen by who finds it raised.

Stores of NumPy say nothing about order, and processors other than x86 make use of that. So flags are stored with
release and loaded with acquire order: who loads what such a store has written sees all that was written before (C++
standard, section 6.9.2).

A flag is a number that only grows: it is raised to the number of an exchange, and waited for with "at least".
"""

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from cusp.runtime.compiled_code import njit

LINE = 8  # words of a cache line: flags of two writers are never in the same


def _pointer(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    of_array, of_place = signature.args[:2]
    array = context.make_array(of_array)(context, builder, arguments[0])
    place = context.cast(builder, arguments[1], of_place, types.intp)
    return cgutils.get_item_pointer(context, builder, of_array, array, [place], wraparound=False)


@intrinsic
def load(typing_context, words, place):  # type: ignore[no-untyped-def]
    """``words[place]`` of an array of int64, with acquire order."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load_atomic(_pointer(context, builder, signature, arguments), "acquire", 8)

    return types.int64(words, place), generate


@intrinsic
def store(typing_context, words, place, value):  # type: ignore[no-untyped-def]
    """``words[place] = value`` for an array of int64, with release order."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        value = context.cast(builder, arguments[2], signature.args[2], types.int64)
        builder.store_atomic(value, _pointer(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.none(words, place, value), generate


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
