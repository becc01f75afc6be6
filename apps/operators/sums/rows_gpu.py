"""Sums over rows of a CSR or CSC on the GPU: see interfaces.py; the kernels are in rows.cuh."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import BLOCK, c_type, load
from cusp.runtime.devices import to_host
from cusp.runtime.storage import memory_of

KERNELS = "cusp/apps/operators/sums/rows.cuh"
BLOCK_EDGES, BLOCK_WARPS = 1024, BLOCK // 32  # edges that a block takes at a time, 128 per warp
MOST_WARPS = 1 << 17  # several for each that a GPU runs at once, so that all of it ends at about the same time


@dataclass(frozen=True)
class RowGroups:
    """Rows with edges, in groups that are summed one group at a time.

    Attributes
    ----------
    lids : (rows,) int32
    starts : (rows + 1,) int64
        The edges of all rows are numbered through; those of ``lids[i]`` begin here.
    shifts : (rows,) int64
        Edge e of ``lids[i]`` is edge ``e + shifts[i]`` of the CSR or CSC.
    bounds, edges : list of int
        Group g is ``lids[bounds[g] : bounds[g + 1]]``, with ``edges[g]`` edges.
    piece_lids, pieces : (warps,) int32 and float64
        Memory of the kernel.
    """

    lids: Any
    starts: Any
    shifts: Any
    bounds: list[int]
    edges: list[int]
    piece_lids: Any
    pieces: Any


def group_rows(lids: Any, bounds: Sequence[int], offsets: Any) -> RowGroups:
    sizes = offsets[lids + 1] - offsets[lids]
    filled = cp.flatnonzero(sizes)
    lids, sizes = lids[filled], sizes[filled]
    places = cp.searchsorted(filled, cp.asarray(list(bounds)))
    aside = memory_of("gpu").empty_aside  # they are read once, one after the other
    starts, shifts = aside(lids.size + 1, np.int64), aside(lids.size, np.int64)
    starts[0] = 0
    cp.cumsum(sizes, out=starts[1:])
    edges = np.diff(to_host(starts[places])).tolist()
    warps = _warps(max(edges, default=0))
    memory = cp.empty(warps, np.int32), cp.empty(warps, np.float64)
    cp.subtract(offsets[lids], starts[:-1], out=shifts)
    return RowGroups(lids, starts, shifts, to_host(places).tolist(), edges, *memory)


def sum_rows(rows: RowGroups, group: int, columns: Any, values: Any, sums: Any, weights: Any = None) -> None:
    given = () if weights is None else (weights,)
    kernels = _rows(values.dtype, *(array.dtype for array in given))
    warps, first = _warps(rows.edges[group]), rows.bounds[group]
    kernels.sum_rows(
        32 * warps, first, rows.bounds[group + 1] - first, rows.lids, rows.starts, rows.shifts, columns, *given, values,
        sums, rows.piece_lids, rows.pieces,
    )  # fmt: skip
    kernels.add_pieces(warps, warps, rows.piece_lids, rows.pieces, sums)


def _warps(edges: int) -> int:
    return min(-(-edges // BLOCK_EDGES) * BLOCK_WARPS, MOST_WARPS)


@functools.cache
def _rows(dtype: Any, weight: Any = None) -> Any:
    types = {} if weight is None else {"WEIGHT": c_type(weight)}
    return load(KERNELS, VALUE=c_type(dtype), **types)
