"""Communities on the GPU: see interfaces.py; the kernels are in communities.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import load, many_threads, struct, threads_for_edges

KERNELS = "apps/operators/structure/communities.cuh"
SHORT = 128  # edges up to which a warp takes a row
MIDDLE = 8 * SHORT  # edges up to which any row's table fits into the shared memory of a block
BLOCK, LARGE_BLOCK = 256, 1024  # threads for a row of up to MIDDLE edges, and of more


def best_communities(
    rows: Any, offsets: Any, targets: Any, weights: Any, numbers: Any, strengths: Any, totals: Any, priorities: Any,
    scale: float,
) -> Any:  # fmt: skip
    best, drawn = cp.empty(rows.size, np.int64), cp.zeros(2, np.uint64)
    sweep = struct(rows, offsets, targets, weights, numbers, strengths, totals, priorities, best, totals.size)
    edges = offsets[rows + 1] - offsets[rows]
    short = cp.flatnonzero(edges <= SHORT)
    middle = cp.flatnonzero((edges > SHORT) & (edges <= MIDDLE))
    long = cp.flatnonzero(edges > MIDDLE)
    long = long[cp.argsort(-edges[long])]
    blocks = min(long.size, many_threads() // LARGE_BLOCK)
    begins = cp.zeros(blocks + 1, np.int64)
    cp.cumsum(2 * cp.minimum(edges[long[:blocks]], totals.size), out=begins[1:])
    slots = int(begins[-1])
    keys, sums = cp.empty(slots, np.int32), cp.empty(slots, np.float64)
    by_blocks, scale = _kernels().choose_by_blocks, np.float64(scale)
    tables = begins, keys, sums
    by_blocks(LARGE_BLOCK * blocks, sweep, scale, long, long.size, *tables, drawn[:1], block=LARGE_BLOCK)
    by_blocks(min(BLOCK * middle.size, many_threads()), sweep, scale, middle, middle.size, *tables, drawn[1:])
    _kernels().choose_by_warps(min(32 * short.size, many_threads()), sweep, scale, short, short.size)
    return best


def weight_inside(offsets: Any, targets: Any, weights: Any, numbers: Any) -> float:
    threads = threads_for_edges(targets.size)
    inside = cp.zeros(threads // 32, np.float64)
    _kernels().add_inside(threads, offsets, offsets.size - 1, targets, weights, numbers, inside)
    return float(inside.sum())


def _kernels() -> Any:
    return load(KERNELS, SHORT=str(SHORT))
