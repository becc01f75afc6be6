"""Sums of whole numbers, on both devices."""

import importlib
from typing import Any

import numpy as np

from cusp.runtime.devices import device_of


def total(values: Any) -> int:
    """The sum of whole numbers, or how many entries of a mask are true; exact below 2**63.

    CuPy would compile a sum of its own for each type, for four seconds.

    Parameters
    ----------
    values : array of bool or of any integer type
    """
    if device_of(values) == "cpu":
        return int(np.count_nonzero(values) if values.dtype == bool else values.sum(dtype=np.int64))
    cuda = importlib.import_module("cusp.kernels.cuda")
    sums, kernels = cuda.sums_of(1), cuda.load("cusp/kernels/total.cuh", VALUE=cuda.c_type(values.dtype))
    threads = min(max(values.size, 1), cuda.many_threads())
    kernels.total(threads, cuda.cp.ascontiguousarray(values), values.size, sums.counters, sums.address)
    return int(np.uint64(sums.read()[0]).astype(np.int64))
