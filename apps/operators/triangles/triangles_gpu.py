"""Triangles on the GPU: see interfaces.py; the kernels are in triangles.cuh."""

from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.undirected_gpu import rows_of_edges
from cusp.kernels.arrays import offsets_of, runs_of_rows, sizes_of
from cusp.kernels.cuda import BLOCK, c_type, load, many_threads
from cusp.runtime import timeline
from cusp.runtime.device_gpu import beside

KERNELS = "cusp/apps/operators/triangles/triangles.cuh"
ROWS_AT_ONCE = 1 << 27  # 3 GB while they are numbered
ROW_BLOCK = 128  # threads that orient a row; a single warp keeps the order
USERS = 256  # rows that a block looks at for one that it has marked
DRAWS = 16  # rows that a block marks, until it makes place for what is urgent
AT_ONCE = 1 << 26  # entries that are searched for
WORDS = 4096  # of marks: 16 KiB of shared memory, so that 8 blocks fit onto a multiprocessor


def split_rows(offsets: Any, targets: Any) -> tuple[Any, int, int]:
    splits, sums = cp.empty(offsets.size - 1, np.int64), cp.zeros(2, np.uint64)
    threads = min(32 * splits.size, many_threads())
    _kernels(np.uint32).split_rows(threads, offsets, splits.size, targets, splits, sums)
    return splits, *(int(work) for work in sums.get())


def lower_rows(offsets: Any, splits: Any, targets: Any) -> tuple[Any, Any, Any]:
    begins = offsets_of(splits - offsets[:-1])
    lower, threads = cp.empty(int(begins[-1]), np.int32), min(32 * splits.size, many_threads())
    _kernels(np.uint32).copy_lower(threads, offsets, splits.size, targets, begins, lower)
    return begins[:-1], begins[1:], lower


def orient(rows: Any, begins: Any, ends: Any, targets: Any, places: Any, in_order: bool = False) -> tuple[Any, Any]:
    kernels, block = _kernels(places.dtype), 32 if in_order else ROW_BLOCK
    threads = min(block * rows.size, many_threads())
    rows, kept = rows.astype(np.int64), cp.zeros(rows.size + 1, np.int64)
    kernels.count_before(threads, rows, rows.size, begins, ends, targets, places, kept, block=block)
    cp.cumsum(kept, out=kept)
    entries = cp.empty(int(kept[-1]), places.dtype)
    kernels.write_before(threads, rows, rows.size, begins, ends, targets, places, kept, entries, block=block)
    return kept, entries


def count_triangles(
    row_begins: Any, row_ends: Any, rows: Any, in_begins: Any, in_ends: Any, sources: Any, begins: Any, ends: Any,
    targets: Any, counts: Any,
) -> Callable[[], int]:  # fmt: skip
    users = in_ends - in_begins
    marked = cp.flatnonzero((users > 0) & (row_ends > row_begins))
    items = cp.zeros(marked.size + 1, np.int64)  # of work: a row to mark with some of its users
    cp.cumsum((users[marked] + (USERS - 1)) // USERS, out=items[1:])
    most, sums = marked.size + sources.size // USERS, cp.zeros(2, np.uint64)  # of items
    wait = beside(
        _kernels(np.uint32).count_triangles, BLOCK * -(-most // DRAWS), marked, items, marked.size, row_begins,
        row_ends, rows, in_begins, in_ends, sources, begins, ends, targets, int(counts.size > 0), counts, sums,
    )  # fmt: skip

    def count() -> int:
        timeline.call("count_triangles", timeline.OPERATOR, None, wait)
        return int(sums[1])

    return count


def count_common(offsets: Any, targets: Any, highs: Any, lows: Any, begins: Any, entries: Any) -> Any:
    """Edges of the CSR ascend as numbers, row * rows + target: each entry is searched for by bisection."""
    size, counts = offsets.size - 1, [cp.empty(0, np.int64)]
    edges = rows_of_edges(offsets).astype(np.int64) * size + targets
    sizes = sizes_of(begins, lows)
    for some in runs_of_rows(sizes, AT_ONCE):
        ends = offsets_of(sizes[some])
        pair = rows_of_edges(ends)
        wanted = entries[cp.arange(pair.size) + (begins[lows[some]] - ends[:-1])[pair]] + highs[some][pair] * size
        places = cp.searchsorted(edges, wanted).clip(None, max(edges.size - 1, 0))
        counts.append(sizes_of(offsets_of(edges[places] == wanted)[ends]))
    return cp.concatenate(counts)


def _kernels(place: Any) -> Any:
    return load(KERNELS, PLACE=c_type(place), WORDS=str(WORDS), USERS=str(USERS), DRAWS=str(DRAWS))
