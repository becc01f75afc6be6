"""``cupyx`` of the stand-in: page-locked arrays."""

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
