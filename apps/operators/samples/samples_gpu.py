"""Draw edges, number nodes, and take steps of walks on the GPU: see interfaces.py; the kernels are in samples.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.samples.interfaces import ROUND, WALKER, Rows, Walks
from cusp.kernels.arrays import offsets_of
from cusp.kernels.cuda import Kernels, Struct, load, struct


def draw(rows: Rows, lids: Any, keys: Any, fan_out: int, replace: bool, until: Any) -> tuple[Any, Any]:
    begins, ends, sizes = rows.offsets[lids], rows.offsets[1:][lids], cp.empty(lids.size, np.int64)
    kernels, count = _kernels(), lids.size
    if until is not None:
        kernels.cut_rows(count, count, ends, begins, rows.marks, until)
    kernels.count_draws(count, count, begins, ends, fan_out, int(replace), sizes)
    offsets = offsets_of(sizes)
    edges, graph = cp.empty(int(offsets[-1]), np.int64), _graph(rows, by_sums=until is None)
    kernels.draw_edges(count, count, graph, begins, ends, keys, int(replace and fan_out >= 0), offsets, edges)
    return sizes, edges


def number(known: list[Any], ends: list[Any]) -> list[tuple[Any, Any]]:
    return [_number(*one) for one in zip(known, ends)]


def _number(known: Any, ends: Any) -> tuple[Any, Any]:
    """Equal nodes follow each other when sorted; the first of them was the first, as the sort is stable."""
    every = cp.concatenate([known, ends])
    order = cp.argsort(every, kind="stable")
    ascending = every[order]
    new = cp.ones(every.size, np.bool_)
    new[1:] = ascending[1:] != ascending[:-1]
    first = cp.zeros(every.size, np.bool_)
    first[order[new]] = True
    places = cp.empty(every.size, np.int64)
    places[order] = (cp.cumsum(first) - 1)[order[new]][cp.cumsum(new) - 1]
    return every[first], places[known.size :]


def walk(rows: Rows, lid_map: Any, walkers: Any, walks: Walks, own: Any, first: int, log: Any) -> None:
    count, graph = len(walkers), _graph(rows, lid_map.index, lid_map.table)
    _kernels().walk(
        count, count, graph, walkers, walks.length, np.uint64(walks.key), np.float64(walks.back),
        np.float64(walks.far), walks.bits, walks.rank, own, first, log, len(log),
    )  # fmt: skip


def _graph(rows: Rows, index: Any = None, table: Any = None, by_sums: bool = True) -> Struct:
    return struct(rows.offsets, rows.ends, rows.marks if by_sums and rows.marks.size else None, index, table)


def _kernels() -> Kernels:
    return load("cusp/apps/operators/samples/samples.cuh", WALKER=str(WALKER), ROUND=str(ROUND))
