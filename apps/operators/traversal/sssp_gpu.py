"""Shortest paths on the GPU: an edge operator, or by rows that are sorted by weight; see interfaces.py."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.expressions.drains_gpu import AMONG_OTHERS
from cusp.apps.operators.frontier_gpu import DENSE, threads_for
from cusp.apps.operators.traversal.bfs_gpu import bfs_drain, plan_call
from cusp.apps.operators.traversal.interfaces import ALPHA, BETA
from cusp.apps.operators.traversal.settled_gpu import SORTED, SettledPaths, SettledSteps
from cusp.kernels.arrays import total
from cusp.kernels.build_gpu import row_chunks
from cusp.kernels.cuda import c_type, load, many_threads
from cusp.partition import Partition
from gluon.device_gpu import read
from gluon.sync import Sync

TREE = "cusp/apps/operators/traversal/tree.cuh"
SORTED_AT_ONCE, SORTING_BYTES = 1 << 27, 64  # edges, at most, and the memory that sorting one takes


def bucket_scale(part: Partition, way: str) -> float:
    """Wider, where an exchange costs what many edges do.

    Two H200, scale 24, in rounds: 71 ms at the usual width, 39 at 9 times that, 48 at 18 times; with sorted rows, step
    by step, 10.3 ms at twice the usual width, 12.8 at 4 times that, 15.9 at 8 times.
    """
    return 1.0 if way in ("whole", "peers") else AMONG_OTHERS


def most_hops(part: Partition, sync: Sync) -> int:
    """Twice the hops to the last node from a hub, or one less than nodes that it cannot reach: distances of 32 bits
    leave twice as many in the cache as those of 64.
    """
    if not part.symmetric:
        return part.num_nodes
    hub = sync.highest(int(part.gids[0]) if part.num_masters else -1)
    plan = plan_call(part, (part.offsets, part.targets), sync)
    hops, _, levels = bfs_drain(part, plan, hub, "auto", ALPHA, BETA, False)
    filled, reached = part.degrees > 0, hops >= 0
    (others,) = sync.total(total(filled & ~reached))
    return max(2 * sync.highest(int(levels)), others)


def settled_paths(
    part: Partition, sync: Sync, way: str, weights: Any, dtype: np.dtype
) -> SettledPaths | SettledSteps | None:
    pays = part.symmetric and part.num_edges >= DENSE * part.num_nodes
    exact = dtype.kind == "i" and (weights.dtype.itemsize <= 4 or part.weights is None)
    if not (pays and exact):
        return None
    difference = cp.zeros(1, np.uint64)  # the sum over ranks is 0 where every edge and its reverse have the same weight
    kernel = load(SORTED, VALUE="int", WEIGHT=c_type(weights.dtype)).weight_asymmetry
    kernel(many_threads(), part.num_proxies, part.gids, part.offsets, part.targets, weights, difference)
    differences = read(difference).view(np.int64)[0]
    if (differences if way == "whole" else sync.total(differences)[0]) != 0:
        return None
    by_weight = _sort_rows(part, weights)
    if way == "whole" or (way == "peers" and sync.plan.src.empty):
        return SettledPaths(part, sync, way, dtype, by_weight)
    return SettledSteps(part, dtype, by_weight)


def _sort_rows(part: Partition, weights: Any) -> tuple[Any, Any]:
    """Targets and weights with each row sorted by weight: a chunk of whole rows at a time, by one sort of both."""
    targets, sorted_weights = (part.storage.empty(array.size, array.dtype) for array in (part.targets, weights))
    at_once = part.storage.at_once(SORTED_AT_ONCE, SORTING_BYTES)
    span = int(weights.max()) + 1 if weights.size else 1
    for row, end_row, begin, end in row_chunks(part.offsets, at_once):
        edges = slice(begin, end)
        begins = part.offsets[row:end_row] - begin
        begins = begins[part.has_out[row:end_row]]
        dtype = np.uint32 if begins.size * span < 2**32 else np.int64  # shorter keys take half the time
        keys = cp.zeros(end - begin, dtype)
        keys[begins[1:]] = 1
        keys = cp.cumsum(keys, dtype=dtype) * dtype(span) + weights[edges].astype(dtype)
        order = cp.argsort(keys)
        for given, ordered in ((part.targets, targets), (weights, sorted_weights)):
            ordered[edges] = given[edges].copy()[order]  # a copy, as rows may lie in the memory of the host
    part.storage.prefer([targets, sorted_weights])
    return targets, sorted_weights


def find_parents(
    offsets: Any, sources: Any, weights: Any, gids: Any, values: Any, far: Any, known: Any, nobody: int, parents: Any,
    updated: Any,
) -> None:  # fmt: skip
    rows, weighted = offsets.size - 1, weights is not None
    weight = weights.dtype if weighted else np.dtype(np.uint8)
    load(TREE, VALUE=c_type(values.dtype), WEIGHT=c_type(weight)).find_parents(
        threads_for(32 * rows), rows, offsets, sources, weights if weighted else sources.view(np.uint8), int(weighted),
        gids, values, values.dtype.type(far), known, int(nobody), parents, updated,
    )  # fmt: skip
