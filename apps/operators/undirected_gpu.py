"""Rows of neighbours, merged and sorted on the GPU: see interfaces.py and apps/shared/graphs/undirected.py."""

from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from cusp.kernels.arrays import total
from cusp.kernels.cuda import bincount, load, threads_for_edges

if TYPE_CHECKING:
    from cusp.apps.shared.graphs.undirected import RowPieces


def merge_rows(arrived: "list[RowPieces]", num_proxies: int, weighted: bool) -> tuple[Any, Any, Any]:
    """An entry is sorted as one number, its row above its neighbour."""
    keys, values = [], []
    while arrived:
        rows = arrived.pop(0)
        row, neighbor = (
            rows.lids[rows_of_edges(rows.offsets)],
            rows.places if rows.nodes is None else rows.nodes[rows.places],
        )
        kept = row != neighbor
        keys.append((row.astype(np.int64) << 32 | neighbor)[kept])
        if weighted:
            values.append(rows.weights[kept])
        del rows, row, neighbor, kept
    merged, sums = cp.concatenate(keys), None
    del keys
    if weighted:
        order = cp.argsort(merged)
        merged, unsummed = merged[order], cp.concatenate(values)[order]
        del order, values
    else:
        merged.sort()
    first = cp.ones(merged.size, np.bool_)
    first[1:] = merged[1:] != merged[:-1]
    if weighted:
        group = cp.cumsum(first) - 1
        sums = bincount(group, total(first), unsummed)
        del group, unsummed
    merged = merged[first]
    offsets = cp.searchsorted(merged, cp.arange(num_proxies + 1, dtype=np.int64) << 32)
    return offsets, merged.astype(np.int32), sums


def rows_are_simple(offsets: Any, targets: Any) -> bool:
    rows = rows_of_edges(offsets)
    if total(rows == targets) > 0:
        return False
    return total((rows[1:] == rows[:-1]) & (targets[1:] <= targets[:-1])) == 0


def rows_of_edges(offsets: Any) -> Any:
    edges = int(offsets[-1])
    rows = cp.empty(edges, np.uint32)
    kernels = load("cusp/kernels/build.cuh", GID="unsigned")
    kernels.list_sources(threads_for_edges(edges), offsets, 0, offsets.size - 1, rows)
    return rows
