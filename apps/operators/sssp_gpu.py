"""Shortest paths on the GPU, with the names and arguments of the CPU's; the kernels are in sssp.cuh.

On one rank a whole search runs in one kernel.
"""

import functools
from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np

from apps.operators.frontier_gpu import Queue, drains, make_queue, threads_for
from cusp.cuda import c_type, load, many_threads
from cusp.devices import to_host
from cusp.partition import Partition
from gluon.device_gpu import full, no_bits, read, write

SSSP = "apps/operators/sssp.cuh"
DENSE = 8  # edges a node from which hubs have most of all edges, as a rule
ENOUGH = 0.85  # share of the edges that belong to settled nodes when the others begin to pull
MOST_BUCKETS = 64  # before that, at most
SORTED_AT_ONCE = 1 << 27  # edges


def bucket_scale(ranks: int) -> float:
    """How many times wider than usual the buckets of shortest paths should be: an exchange costs what many edges do.

    Two H200, scale 24: 71 ms at the usual width, 39 ms at 9 times that, 48 ms at 18 times.
    """
    return 1.0 if drains(ranks) else 8.0


def mark_lowered(lowered: Any, values: Any, relaxed_at: Any, pending: Any) -> None:
    """A node whose value fell since its edges were last relaxed is pending."""
    _sssp(values.dtype).mark_lowered(values.size, lowered, values.size, values, relaxed_at, pending)


def lowest_pending(pending: Any, values: Any, nothing: Any) -> Any:
    """Lowest value of a pending node, or ``nothing``."""
    lowest = cp.full(1, nothing, values.dtype)
    _sssp(values.dtype).lowest_pending(threads_for(values.size), pending, values.size, values, lowest)
    return read(lowest)[0]


def relax_below(
    limit: Any, far: Any, offsets: Any, targets: Any, weights: Any, values: Any, relaxed_at: Any, pending: Any,
    updated: Any, queue: "Relaxing",
) -> None:  # fmt: skip
    """Relax the out-edges of pending nodes below ``limit`` until none is left; a drain of one bucket."""
    _relax(0, limit, far, far, offsets, targets, weights, values, relaxed_at, pending, updated, queue)


@dataclass(frozen=True)
class Relaxing:
    """What shortest paths of one partition share.

    Attributes
    ----------
    queue : Queue
    stamps : (proxies,) int32
        The step in which each was last appended.
    rounds : (1,) int64
    by_weight : (targets, weights), or None
        The edges with each row sorted by weight, where :func:`shortest_paths` can make use of that.
    """

    queue: Queue
    stamps: Any
    rounds: Any
    by_weight: Any


def plan_relaxing(part: Partition, weights: Any, dtype: np.dtype, ranks: int) -> Relaxing:
    """Prepare for :func:`relax_below` or, on one rank, :func:`shortest_paths`."""
    stamps, rounds = cp.zeros(part.num_proxies, np.int32), cp.zeros(1, np.int64)
    pays = drains(ranks) and part.symmetric and part.num_edges >= DENSE * part.num_nodes
    exact = dtype.kind == "i" and (weights.dtype.itemsize <= 4 or part.weights is None)
    by_weight = _sort_rows(part, weights) if pays and exact and _weighs_the_same(part, weights) else None
    return Relaxing(make_queue(part), stamps, rounds, by_weight)


def _weighs_the_same(part: Partition, weights: Any) -> bool:
    """Whether every edge and its reverse have the same weight: one rank has the whole graph."""
    total = cp.zeros(1, np.uint64)
    kernel = _sssp(np.int32, weights.dtype).weight_asymmetry
    kernel(many_threads(), part.num_proxies, part.offsets, part.targets, weights, total)
    return int(read(total)[0]) == 0


def _sort_rows(part: Partition, weights: Any) -> tuple[Any, Any]:
    """Targets and weights with each row sorted by weight: a chunk of whole rows at a time, by one sort of both."""
    targets, sorted_weights = cp.empty_like(part.targets), cp.empty_like(weights)
    offsets = to_host(part.offsets)
    row = 0
    while row < part.num_proxies:
        end = int(np.searchsorted(offsets, offsets[row] + SORTED_AT_ONCE, side="right")) - 1
        end = min(max(end, row + 1), part.num_proxies)
        edges = slice(int(offsets[row]), int(offsets[end]))
        begins = part.offsets[row:end] - edges.start
        begins = begins[part.has_out[row:end]]
        keys = cp.zeros(edges.stop - edges.start, np.int64)
        keys[begins] = 1
        keys = cp.cumsum(keys) << 32 | weights[edges]
        order = cp.argsort(keys)
        targets[edges], sorted_weights[edges] = part.targets[edges][order], weights[edges][order]
        row = end
    return targets, sorted_weights


def shortest_paths(part: Partition, source: int, lengths: Any) -> tuple[Any, Any]:
    """Distances of all proxies, ``lengths.far`` where there is no path, and the number of buckets, on the device."""
    far, relaxing = lengths.dtype.type(lengths.far), lengths.queue
    queue = relaxing.queue
    queue.progress.fill(0)
    delta = lengths.dtype.type(min(lengths.delta, lengths.far))
    if relaxing.by_weight is not None:
        values = cp.empty(part.num_proxies, lengths.dtype)
        rows, enough = queue.room, int(part.num_edges * ENOUGH)
        _sssp(lengths.dtype, lengths.weights.dtype).resident("settle_and_pull")(
            int(source), part.lid_map.index, part.lid_map.table, rows, part.num_proxies, enough, MOST_BUCKETS, far,
            delta, part.offsets, *relaxing.by_weight, values, relaxing.stamps.view(np.uint32), queue.nodes,
            queue.starts, queue.rows, queue.room, queue.progress, relaxing.rounds,
        )  # fmt: skip
        return values, relaxing.rounds[0]
    values, pending = full(part.num_proxies, far, lengths.dtype), no_bits(part.num_proxies)
    write(part, source, 0, values, pending)
    relaxing.stamps.fill(0)
    queue.progress[4:5].view(values.dtype)[0] = far
    rest = (part.offsets, part.targets, lengths.weights, values, values, pending, pending)
    _relax(1, far, far, delta, *rest, relaxing)
    return values, relaxing.rounds[0]


def _relax(whole: int, limit: Any, far: Any, delta: Any, offsets: Any, targets: Any, weights: Any, values: Any,
           relaxed_at: Any, pending: Any, updated: Any, relaxing: Relaxing) -> None:  # fmt: skip
    number, queue = values.dtype.type, relaxing.queue
    _sssp(values.dtype, weights.dtype).resident("relax_drain")(
        whole, number(limit), number(far), number(delta), values.size, offsets, targets, weights, values, relaxed_at,
        pending, updated, relaxing.stamps, queue.nodes, queue.starts, queue.rows, queue.room, queue.progress,
        relaxing.rounds,
    )  # fmt: skip


def mark_too_far(offsets: Any, targets: Any, weights: Any, values: Any, far: Any, marks: Any, updated: Any) -> None:
    """Mark the targets of edges from reached nodes whose sum does not fit below ``far``."""
    _sssp(values.dtype, weights.dtype).mark_too_far(
        many_threads(), values.size, offsets, targets, weights, values, values.dtype.type(far), marks, updated
    )


@functools.cache
def _sssp(dtype: Any, weight: Any = np.int32) -> Any:
    return load(SSSP, VALUE=c_type(dtype), WEIGHT=c_type(weight))
