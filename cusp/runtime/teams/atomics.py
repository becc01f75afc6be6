"""Atomic operations on entries of arrays, for kernels that several threads or processes run at once.

What a thread wrote before an operation on an entry is seen by one that comes to this entry later, after its operation:
stores have release order, loads acquire order (C++ standard, section 6.9.2). Without numba's compiler there is one
thread at a time, and plain Python will do; compiled as it stands, it is for loops that one thread runs.
"""

import os
import platform

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from cusp.runtime.compiled_code import instruction

PAUSE = {"x86_64": ("llvm.x86.sse2.pause",), "aarch64": ("llvm.aarch64.hint", 1)}  # while a thread waits
YIELDS = 50  # after which a thread sleeps
NAP = 100  # microseconds


def load(array, place):  # type: ignore[no-untyped-def]
    """``array[place]``, with all that was written before it was stored. ``place`` is not negative."""
    return array[place]


def store(array, place, value):  # type: ignore[no-untyped-def]
    """``array[place] = value``, after all that was written before. ``place`` is not negative."""
    array[place] = value


def atomic_add(array, place, value):  # type: ignore[no-untyped-def]
    """``array[place] += value``; returns what was there. ``place`` is not negative."""
    old = array[place]
    array[place] += value
    return old


def atomic_or(array, place, bits):  # type: ignore[no-untyped-def]
    """``array[place] |= bits``; returns what was there. ``place`` is not negative."""
    old = array[place]
    array[place] |= bits
    return old


def atomic_and(array, place, bits):  # type: ignore[no-untyped-def]
    """``array[place] &= bits``; returns what was there. ``place`` is not negative."""
    old = array[place]
    array[place] &= bits
    return old


def atomic_min(array, place, value):  # type: ignore[no-untyped-def]
    """``array[place] = min(array[place], value)`` of integers; returns what was there. ``place`` is not negative."""
    old = array[place]
    array[place] = min(old, value)
    return old


def replaced(array, place, old, new):  # type: ignore[no-untyped-def]
    """Write ``new`` where ``old`` still is, bit for bit; returns whether it was. ``place`` is not negative."""
    array[place] = new
    return True


def fence():  # type: ignore[no-untyped-def]
    """What this thread wrote before is seen by others before it reads what comes after."""


def wait_a_little(looks, patience):  # type: ignore[no-untyped-def]
    """Between two looks at a flag of another thread: keep the core ``patience`` times, then yield it, then sleep."""
    os.sched_yield()


def _entry(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    return builder.gep(context.make_array(signature.args[0])(context, builder, arguments[0]).data, [arguments[1]])


def _read_modify_write(operation):  # type: ignore[no-untyped-def]
    """An instruction (array, int64 place, value of the array's type) -> what was there."""

    def change(typing_context, array, place, value):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            of_floats, unsigned = isinstance(array.dtype, types.Float), not getattr(array.dtype, "signed", True)
            kind = "fadd" if of_floats else "umin" if operation == "min" and unsigned else operation
            return builder.atomic_rmw(kind, _entry(context, builder, signature, arguments), arguments[2], "acq_rel")

        return array.dtype(array, types.int64, array.dtype), generate

    return change


for _function, _operation in (atomic_add, "add"), (atomic_or, "or"), (atomic_and, "and"), (atomic_min, "min"):
    instruction(_function)(_read_modify_write(_operation))


@instruction(load)
def _load(typing_context, array, place):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load_atomic(_entry(context, builder, signature, arguments), "acquire", array.dtype.bitwidth // 8)

    return array.dtype(array, types.int64), generate


@instruction(store)
def _store(typing_context, array, place, value):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        entry = _entry(context, builder, signature, arguments)
        builder.store_atomic(arguments[2], entry, "release", array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, array.dtype), generate


@instruction(fence)
def _fence(typing_context):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@instruction(replaced)
def _replaced(typing_context, array, place, old, new):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        word = ir.IntType(array.dtype.bitwidth)
        entry = builder.bitcast(_entry(context, builder, signature, arguments), word.as_pointer())
        old, new = (builder.bitcast(value, word) for value in arguments[2:])
        return builder.extract_value(builder.cmpxchg(entry, old, new, "acq_rel", "acquire"), 1)

    return types.boolean(array, types.int64, array.dtype, array.dtype), generate


@intrinsic
def _pause(typing_context):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        name, *numbers = PAUSE.get(platform.machine(), ("llvm.donothing",))
        values = [ir.Constant(ir.IntType(32), number) for number in numbers]
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)
        return context.get_dummy_value()

    return types.void(), generate


_yield = types.ExternalFunction("sched_yield", types.int32())
_usleep = types.ExternalFunction("usleep", types.int32(types.uint32))


@overload(wait_a_little)
def _wait_a_little(looks, patience):  # type: ignore[no-untyped-def]
    def wait(looks, patience):  # type: ignore[no-untyped-def]
        if looks < patience:
            _pause()
        elif looks < patience + YIELDS:
            _yield()
        else:
            _usleep(np.uint32(NAP))

    return wait
