"""Draw edges, number nodes, and take steps of walks on the GPU: see interfaces.py; the kernels are in samples.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.samples.interfaces import ROUND, WALKER, Hop, Rows, Walks
from cusp.kernels.arrays import offsets_of
from cusp.kernels.cuda import Kernels, Struct, load, struct


def draw(rows: Rows, lids: Any, keys: Any, fan_out: int, replace: bool, until: Any) -> tuple[Any, Any, Any]:
    begins, ends, sizes = rows.offsets[lids], rows.offsets[1:][lids], cp.empty(lids.size, np.int64)
    kernels, count = _kernels(), lids.size
    if until is not None:
        kernels.cut_rows(count, count, ends, begins, rows.marks, until)
    kernels.count_draws(count, count, begins, ends, fan_out, int(replace), sizes)
    offsets = offsets_of(sizes)
    edges, graph = cp.empty(int(offsets[-1]), np.int64), _graph(rows, by_sums=until is None)
    kernels.draw_edges(count, count, graph, begins, ends, keys, int(replace and fan_out >= 0), offsets, edges)
    return sizes, edges, rows.ends[edges]


def number(hops: list[Hop], ends: Any, bounds: np.ndarray, bits: int) -> tuple[Hop, Any]:
    """Equal nodes of a batch follow each other when sorted; the first of them was the first, as the sort is stable."""
    parts, own = [*hops, (ends, bounds)], sum(np.diff(starts) for _, starts in hops)
    batches = [_batches(nodes.size, starts) for nodes, starts in parts]
    keys = cp.concatenate([batch << bits | nodes & ((1 << bits) - 1) for batch, (nodes, _) in zip(batches, parts)])
    order = cp.argsort(keys, kind="stable")
    ascending, differ = keys[order], cp.ones(keys.size, np.bool_)
    differ[1:] = ascending[1:] != ascending[:-1]
    first = order[differ]  # of each group of equal ones
    known = keys.size - ends.size
    new = cp.zeros(keys.size, np.bool_)
    new[first] = True
    rank = offsets_of(new[known:])
    starts_of_new = rank[cp.asarray(bounds)]
    places, behind = [], np.zeros_like(own)  # of nodes and, where they are new, of ends
    for batch, (nodes, starts) in zip(batches, hops):
        places.append(cp.arange(nodes.size) + cp.asarray(behind - starts[:-1])[batch])
        behind = behind + np.diff(starts)
    places.append(rank[:-1] + (cp.asarray(own) - starts_of_new[:-1])[batches[-1]])
    found = cp.empty(keys.size, np.int64)
    found[order] = cp.concatenate(places)[first][cp.cumsum(differ) - 1]
    return (ends[new[known:]], cp.asnumpy(starts_of_new)), found[known:]


def _batches(size: int, starts: np.ndarray) -> Any:
    """(size,) int64: the batch of each of the nodes."""
    return cp.searchsorted(cp.asarray(starts[1:]), cp.arange(size), side="right")


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
