"""The values and bits of labels on the GPU, see interfaces.py; the kernels are in ``kernels``."""

import functools
from typing import Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import c_type, load, many_threads, pinned, sums_of
from cusp.partition import Partition

KERNELS = "gluon/kernels/device.cuh"
EACH = 4  # entries of a thread, as in device.cuh
READ_BYTES = 4096
xp = cp  # what makes and handles its arrays


@functools.cache
def kernels(dtype: Any) -> Any:
    """The kernels for a label of a type."""
    return load(KERNELS, VALUE=c_type(dtype))


def full(size: int, fill: float, dtype: np.dtype) -> Any:
    return cp.full(size, fill, dtype)


def no_bits(size: int) -> Any:
    return cp.zeros(-(-size // 64) * 2, cp.uint32)


def clear(words: Any) -> None:
    if words.size:
        words.data.memset_async(0, words.nbytes)


def write(part: Partition, gid: int, value: float, values: Any, updated: Any) -> None:
    index, table = part.lid_map.index, part.lid_map.table
    kernels(values.dtype).write_node(1, index, table, int(gid), values.dtype.type(value), values, updated)


def signed(values: Any, nothing: np.generic, dtype: np.dtype) -> Any:
    results = cp.empty(values.size, dtype)
    make = getattr(kernels(values.dtype), f"signed_{dtype.itemsize}")
    make(-(-values.size // EACH), values, values.size, values.dtype.type(nothing), results)
    return results


def wait() -> None:
    cp.cuda.get_current_stream().synchronize()


def set_bits(places: Any, words: Any) -> None:
    if places.size:
        kernels(np.int32).set_bits(places.size, places, places.size, words)


def count_bits(words: Any, size: int) -> int:
    sums = sums_of(1)
    threads = min(max(-(-size // 32), 1), many_threads())
    kernels(np.int32).count_bits(threads, words, size, sums.counters, sums.address)
    return sums.read()[0]


def take_bits(words: Any, size: int) -> Any:
    places = cp.flatnonzero(cp.unpackbits(words.view(cp.uint8), bitorder="little")[:size]).astype(cp.int32)
    clear(words)
    return places


def read(array: Any) -> np.ndarray:
    """A small device array on the host, through page-locked memory. Waits for all work before it."""
    if array.nbytes > READ_BYTES:
        return cp.asnumpy(array)
    landing = _landing()[: array.nbytes].view(array.dtype)
    stream = cp.cuda.get_current_stream()
    cp.cuda.runtime.memcpyAsync(
        landing.ctypes.data, array.data.ptr, array.nbytes, cp.cuda.runtime.memcpyDeviceToHost, stream.ptr
    )
    stream.synchronize()
    return landing.copy()


@functools.cache
def _landing() -> np.ndarray:
    return pinned(READ_BYTES, np.uint8)
