"""``cupyx`` of the stand-in: page-locked arrays, and sums at places."""

import cupy
import numpy as np


def empty_pinned(shape, dtype=float, order="C"):
    """A NumPy array in page-locked memory that nobody wrote yet."""
    count = int(np.prod(shape))
    memory = cupy.cuda.alloc_pinned_memory(count * np.dtype(dtype).itemsize)
    return np.frombuffer(memory, dtype, count).reshape(shape, order=order)


def zeros_pinned(shape, dtype=float, order="C"):
    """A NumPy array of zeros in page-locked memory."""
    made = empty_pinned(shape, dtype, order)
    made[...] = 0
    return made


def scatter_add(a, slices, value):
    """Add at places, also at the same ones several times; for the types that the real one adds atomically."""
    if a.dtype.str[1:] not in ("i4", "u4", "u8", "f2", "f4", "f8"):
        raise TypeError(f"scatter_add of {a.dtype}")
    np.add.at(a._host, getattr(slices, "_host", slices), getattr(value, "_host", value))
