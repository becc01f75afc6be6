"""PageRank on the GPU: see interfaces.py; the kernels are in pagerank.cuh."""

import functools
from typing import Any

import numpy as np

from cusp.apps.operators.frontier_gpu import queue_of, threads_for
from cusp.kernels.cuda import c_type, load, sums_of
from cusp.runtime.devices import xp_of
from gluon.label import Label

PAGERANK = "cusp/apps/operators/sums/pagerank.cuh"
UNIT = 2.0**60


def begin(damping: float, precision: str, teleport: Any, strengths: Any, masters: int) -> tuple[Any, Any, Any]:
    return teleport.astype(precision), damping / strengths.astype(precision), xp_of("gpu").zeros(masters, precision)


def new_ranks(kept: Any, teleport: Any, factors: Any, sums: Any, ranks: Any, contributions: Any) -> tuple[float, float]:
    totals = sums_of(2)
    _pagerank(ranks.dtype).new_ranks(
        threads_for(ranks.size), ranks.size, factors.size, ranks.dtype.type(kept), int(teleport.size > 1), teleport,
        factors, sums, ranks, contributions, totals.counters, totals.address,
    )  # fmt: skip
    change, dangling = totals.read()
    return change / UNIT, dangling / UNIT


def collect(pending: float, teleport: Any, residuals: Any) -> int:
    total, size, each = sums_of(1), residuals.size, int(teleport.size > 1)
    _pagerank(np.float64).collect(
        threads_for(size), size, np.float64(pending), each, teleport, residuals, total.counters, total.address
    )
    return total.read()[0]


def settle(
    threshold: float, damping: float, degrees: Any, residuals: Any, settled: Any, shares: Any, updated: Any
) -> tuple[int, int]:
    totals = sums_of(2)
    _pagerank(np.float64).settle(
        threads_for(degrees.size), degrees.size, np.float64(threshold), np.float64(damping), degrees, residuals,
        settled, shares, updated, totals.counters, totals.address,
    )  # fmt: skip
    moved, dangling = np.array(totals.read(), np.uint64).astype(np.int64).tolist()  # they have signs
    return moved, dangling


def push_shares(frontier: Any, shares: Any, residuals: Label) -> None:
    part, kernels, size = residuals.part, _pagerank(np.float64), shares.size
    queues = queue_of(part, part.offsets).struct
    kernels.queue_bits(threads_for(size), frontier, size, part.offsets, queues)
    kernels.push_shares(threads_for(part.targets.size), queues, part.targets, shares, residuals.values)
    masters, mirrors = part.num_masters, size - part.num_masters
    kernels.mark_nonzero(threads_for(mirrors), masters, size, residuals.values, residuals.updated)


@functools.cache
def _pagerank(dtype: Any) -> Any:
    return load(PAGERANK, VALUE=c_type(dtype))
