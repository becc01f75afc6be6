"""Sums of all entries of an array, on both devices."""

import importlib
import itertools
from typing import Any

import numpy as np

from cusp.runtime.devices import device_of
from cusp.runtime.threads import BLOCK, in_parallel, ranges, spans_of_blocks


def total(values: Any) -> int:
    """The sum of whole numbers of any type, or how many entries of a mask are true; exact below 2**63.

    CuPy would compile a sum of its own for each type, for four seconds.
    """
    if device_of(values) == "cpu":
        count = np.count_nonzero if values.dtype == bool else lambda some: some.sum(dtype=np.int64)
        return sum(
            int(some) for some in in_parallel(lambda first, last: count(values[first:last]), ranges(values.size))
        )
    if values.size == 0:
        return 0
    cuda = importlib.import_module("cusp.kernels.cuda")
    sums, kernels = cuda.sums_of(1), cuda.load("cusp/kernels/total.cuh", VALUE=cuda.c_type(values.dtype))
    threads = min(values.size, cuda.many_threads())
    kernels.total(threads, cuda.cp.ascontiguousarray(values), values.size, sums.counters, sums.address)
    return int(np.uint64(sums.read()[0]).astype(np.int64))


def extremes(values: Any) -> tuple[Any, Any]:
    """The lowest and the highest of at least one number, as Python's."""
    if device_of(values) == "gpu":
        return values.min().item(), values.max().item()
    pairs = in_parallel(lambda first, last: (values[first:last].min(), values[first:last].max()), ranges(values.size))
    return np.min([low for low, _ in pairs]).item(), np.max([high for _, high in pairs]).item()


def total_of_floats(values: Any) -> float:
    """The sum of floats of 32 or 64 bits as float64, the same for any number of threads."""
    if device_of(values) == "gpu":
        return float(values.astype(np.float64).sum())

    def some(first: int, last: int) -> list[float]:
        return [
            float(values[block * BLOCK : (block + 1) * BLOCK].sum(dtype=np.float64)) for block in range(first, last)
        ]

    return sum(itertools.chain.from_iterable(in_parallel(some, spans_of_blocks(values.size))), 0.0)
