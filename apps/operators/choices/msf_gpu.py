"""Spanning forests on the GPU: see interfaces.py; the kernels are in msf.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.choices.interfaces import Candidates
from cusp.apps.operators.frontier_gpu import threads_for
from cusp.kernels.cuda import c_type, load, struct, sums_of, threads_for_edges
from cusp.partition import Partition

MSF = "cusp/apps/operators/choices/msf.cuh"


def list_edges(
    part: Partition, order: Any, parents: Any, end: tuple[Any, int], maximum: bool, light: bool
) -> tuple[Any, Any]:
    """Edges are counted first."""
    dtype = np.dtype(np.int8) if part.weights is None else part.weights.dtype
    own = struct(part.offsets, part.targets, part.weights, order, parents, maximum, light, part.symmetric)
    kernel, threads = load(MSF, WEIGHT=c_type(dtype)).list_edges, threads_for_edges(part.num_local_edges)
    head, count = (part.num_proxies, own, dtype.type(end[0]), np.uint64(end[1])), cp.zeros(1, np.uint64)
    kernel(threads, *head, count, np.uint64(0), np.uint64(0))
    sources, places = cp.empty(int(count[0]), np.int32), cp.empty(int(count[0]), np.int64)
    count.fill(0)
    kernel(threads, *head, count, sources, places)
    return sources, places


def choose(edges: Candidates, active: Any, trees: Any, best: Any) -> Any:
    kept, sums = cp.empty_like(active), sums_of(1)
    kernels, threads = load(MSF, WEIGHT="int"), threads_for(active.size)
    kernels.choose(threads, active.size, active, struct(*edges), trees, best, kept, sums.counters, sums.address)
    return kept[: sums.read()[0]]


def join(edges: Candidates, best: Any, parents: Any, in_forest: Any) -> None:
    kernels, threads = load(MSF, WEIGHT="int"), threads_for(best.size)
    kernels.join(threads, best.size, struct(*edges), best, parents, in_forest)
