"""Connected components on the GPU: see interfaces.py; the kernels are in cc.cuh."""

import functools
from typing import Any

import cupy as cp
import numpy as np

from apps.operators.frontier_gpu import Queue, threads_for
from cusp.kernels.cuda import c_type, load, many_threads

CC = "apps/operators/structure/cc.cuh"


def link_first(edges: int, offsets: Any, targets: Any, parents: Any) -> None:
    _cc(np.int32).link_first(threads_for(parents.size), edges, parents.size, offsets, targets, parents)


def link_others(values: Any, skipped: Any, offsets: Any, targets: Any, parents: Any, queue: Queue) -> None:
    kernels = _cc(values.dtype)
    kernels.queue_others(threads_for(values.size), values, skipped, values.size, offsets, queue.struct)
    kernels.link_queue(many_threads(), queue.struct, targets, parents)


def flatten(parents: Any) -> None:
    _cc(np.int32).flatten(threads_for(parents.size), parents.size, parents)


def lower_roots(parents: Any, values: Any, updated: Any) -> None:
    _cc(values.dtype).lower_roots(threads_for(values.size), values.size, parents, values, updated)


def spread_roots(parents: Any, values: Any, updated: Any) -> None:
    _cc(values.dtype).spread_roots(threads_for(values.size), values.size, parents, values, updated)


def count_members(parents: Any, size: int) -> Any:
    members = cp.zeros(parents.size, np.int32)
    _cc(np.int32).count_members(threads_for(size), size, parents, members)
    return members


@functools.cache
def _cc(dtype: Any) -> Any:
    return load(CC, VALUE=c_type(dtype))
