"""A stand-in for CuPy that needs no GPU: arrays are in the host's memory, kernels are compiled by g++ and run there.

Put the folder above this package onto ``PYTHONPATH`` to run our GPU code on a machine without one. What it offers has
CuPy's names and refuses what CuPy refuses, and more: see ``tests/cudaemu/README.md``.
"""

import numpy

from cupy import _functions, _methods, cuda
from cupy._array import ndarray
from cupy._functions import (
    argsort,
    array,
    asarray,
    ascontiguousarray,
    asnumpy,
    copy,
    empty,
    empty_like,
    frombuffer,
    fromiter,
    lexsort,
    repeat,
    result_type,
    sort,
    ufunc,
)
from cupy._launch import RawKernel, RawModule
from cupy.cuda import memory as _memory
from cupy.cuda import pinned_memory as _pinned_memory

__version__ = "14.2.0"
__all__ = [
    "RawKernel", "RawModule", "argsort", "array", "asanyarray", "asarray", "ascontiguousarray", "asnumpy", "copy",
    "cuda", "empty", "empty_like", "frombuffer", "fromiter", "get_array_module", "get_default_memory_pool",
    "get_default_pinned_memory_pool", "is_available", "lexsort", "ndarray", "repeat", "result_type", "sort", "ufunc",
]  # fmt: skip

asanyarray = asarray
assert _methods  # imported to give arrays their methods
_pinned_pool = _pinned_memory.PinnedMemoryPool()


def __getattr__(name):
    if name in _functions.UFUNCS:
        made = ufunc(name)
    elif name in _functions.FUNCTIONS:
        made = _functions.function(name)
    elif name in _functions.SHARED:
        made = getattr(numpy, name)
    else:
        raise AttributeError(f"module 'cupy' (the stand-in) has no attribute {name!r}")
    globals()[name] = made
    return made


def is_available():
    """Whether there is a device."""
    return cuda.is_available()


def get_array_module(*args):
    """CuPy if any argument is one of its arrays, else NumPy."""
    import cupy

    return cupy if any(isinstance(value, ndarray) for value in args) else numpy


def get_default_memory_pool():
    """The pool of the device's memory."""
    return _memory.get_pool()


def get_default_pinned_memory_pool():
    """The pool of page-locked memory."""
    return _pinned_pool
