"""Atomic operations on entries of arrays, for kernels that several threads run at once.

What a thread wrote before an operation on an entry is seen by one that comes to this entry later, after its operation.
Without numba's compiler there is one thread at a time, and plain Python will do; compiled as it stands, it is for loops
that one thread runs.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload


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


def _entry(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    return builder.gep(context.make_array(signature.args[0])(context, builder, arguments[0]).data, [arguments[1]])


def _read_modify_write(operation):  # type: ignore[no-untyped-def]
    """An intrinsic (array, int64 place, value of the array's type) -> what was there."""

    @intrinsic
    def change(typing_context, array, place, value):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            kind = operation if array.dtype.signed or operation != "min" else "umin"
            return builder.atomic_rmw(kind, _entry(context, builder, signature, arguments), arguments[2], "acq_rel")

        return array.dtype(array, types.int64, array.dtype), generate

    return change


_or, _and, _min = (_read_modify_write(operation) for operation in ("or", "and", "min"))


@intrinsic
def _replaced(typing_context, array, place, old, new):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        word = ir.IntType(array.dtype.bitwidth)
        entry = builder.bitcast(_entry(context, builder, signature, arguments), word.as_pointer())
        old, new = (builder.bitcast(value, word) for value in arguments[2:])
        return builder.extract_value(builder.cmpxchg(entry, old, new, "acq_rel", "acquire"), 1)

    return types.boolean(array, types.int64, array.dtype, array.dtype), generate


overload(atomic_or, inline="always")(lambda array, place, bits: lambda array, place, bits: _or(array, place, bits))
overload(atomic_and, inline="always")(lambda array, place, bits: lambda array, place, bits: _and(array, place, bits))
overload(atomic_min, inline="always")(lambda array, place, value: lambda array, place, value: _min(array, place, value))
overload(replaced, inline="always")(
    lambda array, place, old, new: lambda array, place, old, new: _replaced(array, place, old, new)
)
