"""Triangles on the GPU: see interfaces.py; the kernels are in triangles.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import c_type, load, many_threads

KERNELS = "cusp/apps/operators/structure/triangles.cuh"
ROWS_AT_ONCE = 1 << 27  # 3 GB while they are numbered
ROW_BLOCK = 128  # threads that orient a row; a single warp keeps the order
USERS = 256  # rows that a block looks at for one that it has marked
WORDS = 4096  # of marks: 16 KiB of shared memory, so that 8 blocks fit onto a multiprocessor


def orient(rows: Any, offsets: Any, targets: Any, places: Any, in_order: bool = False) -> tuple[Any, Any]:
    kernels, block = _kernels(places.dtype), 32 if in_order else ROW_BLOCK
    threads = min(block * rows.size, many_threads())
    rows, begins = rows.astype(np.int64), cp.zeros(rows.size + 1, np.int64)
    kernels.count_before(threads, rows, rows.size, offsets, targets, places, begins, block=block)
    cp.cumsum(begins, out=begins)
    entries = cp.empty(int(begins[-1]), places.dtype)
    kernels.write_before(threads, rows, rows.size, offsets, targets, places, begins, entries, block=block)
    return begins, entries


def count_triangles(
    middles: Any, row_offsets: Any, rows: Any, in_offsets: Any, sources: Any, offsets: Any, targets: Any, counts: Any
) -> int:
    users = in_offsets[1:][middles] - in_offsets[middles]
    marked = cp.flatnonzero((users > 0) & (row_offsets[1:] > row_offsets[:-1]))
    items = cp.zeros(marked.size + 1, np.int64)  # of work: a row to mark with some of its users
    cp.cumsum((users[marked] + (USERS - 1)) // USERS, out=items[1:])
    sums = cp.zeros(2, np.uint64)
    _kernels(np.uint32).count_triangles(
        many_threads(), marked, items, marked.size, middles, row_offsets, rows, in_offsets, sources, offsets, targets,
        int(counts.size > 0), counts, sums,
    )  # fmt: skip
    return int(sums[1])


def _kernels(place: Any) -> Any:
    return load(KERNELS, PLACE=c_type(place), WORDS=str(WORDS))
