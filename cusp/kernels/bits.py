"""Bits, hashes and look-ups for compiled loops: what a :class:`~cusp.lid_map.LidMap` and loops that make one share."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import register_jitable

from cusp.runtime.compiled_code import instruction, njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio (Knuth, TAOCP 3, section 6.4)


@register_jitable(inline="always")
def mix(number):  # type: ignore[no-untyped-def]
    """SplitMix64's finalizer, a bijection of 64-bit numbers: of a uint64 in a compiled loop, of an array anywhere.

    Of ``key + counter * GOLDEN``, it is the generator itself (Steele, Lea and Flood, OOPSLA 2014).
    """
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


def unsigned(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same integers, none of them negative, as unsigned ones: a look-up by these is not checked for its sign.

    Compiled loops that walk through rows take two thirds of the time with them. In such a loop a signed number must not
    meet a ``uint64``, since the two make a float: use ``np.uint64(1)``.
    """
    return tuple(array.view(f"u{array.itemsize}") for array in arrays)


def popcount(word):  # type: ignore[no-untyped-def]
    """Number of set bits of a uint64."""
    return int(word).bit_count()


@instruction(popcount)
def _ctpop(typing_context, word):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def first_bit(word):  # type: ignore[no-untyped-def]
    """Place of the lowest set bit of a uint64 that is not 0; ``word &= word - 1`` then clears it."""
    return (int(word) & -int(word)).bit_length() - 1


@instruction(first_bit)
def _cttz(typing_context, word):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


def prefetch(array, place):  # type: ignore[no-untyped-def]
    """Let memory bring the entry of an array that a loop will soon ask for; any ``place`` will do."""


def prefetch_to_write(array, place):  # type: ignore[no-untyped-def]
    """The same of an entry that will be written, too: no other core has it then."""


def _prefetch_as(writes):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        entries = context.make_array(signature.args[0])(context, builder, arguments[0])
        entry = builder.bitcast(builder.gep(entries.data, [arguments[1]]), cgutils.voidptr_t)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, *[ir.IntType(32)] * 3])
        how = [ir.Constant(ir.IntType(32), number) for number in (writes, 3, 1)]  # near, data
        builder.call(builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], kind), [entry, *how])
        return context.get_dummy_value()

    return generate


@instruction(prefetch)
def _prefetch(typing_context, array, place):  # type: ignore[no-untyped-def]
    return types.void(array, types.int64), _prefetch_as(0)


@instruction(prefetch_to_write)
def _prefetch_to_write(typing_context, array, place):  # type: ignore[no-untyped-def]
    return types.void(array, types.int64), _prefetch_as(1)


@njit(cache=True, nogil=True, inline="always")
def lid_of(index, table, gid):  # type: ignore[no-untyped-def]
    """Local id of a node that has a proxy here."""
    word = gid >> np.uint64(6)
    below = index[2 * word] & ((np.uint64(1) << (gid & np.uint64(63))) - np.uint64(1))
    return table[index[2 * word + 1] + popcount(below)]


@njit(cache=True, nogil=True)
def look_up(index, table, gids, lids):  # type: ignore[no-untyped-def]
    """``lids[i]`` = local id of ``gids[i]``, or -1, also if that is no node."""
    words = np.uint64(index.size // 2)
    for i in range(gids.size):
        gid, lids[i] = np.uint64(gids[i]), -1
        word = gid >> np.uint64(6)
        if word < words and index[2 * word] >> (gid & np.uint64(63)) & np.uint64(1):
            lids[i] = lid_of(index, table, gid)
