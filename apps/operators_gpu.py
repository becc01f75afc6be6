"""Operators on the GPU, with the names and arguments of those on the CPU; the kernels are in bfs.cuh and sssp.cuh.

A frontier comes as bits and is compacted into a queue that shares out the work by edges, see
cusp/warp.cuh. On one rank whole traversals run in one kernel.
"""

from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np

from cusp.cuda import c_type, load, many_threads
from cusp.devices import to_host
from cusp.errors import OptionError
from cusp.partition import Partition
from gluon.device_gpu import full, no_bits, read, write

BFS, SSSP = "apps/bfs.cuh", "apps/sssp.cuh"
DIRECTIONS = {"auto": 0, "push": 1, "pull": 2}
MAX_EDGES, MAX_NODES = 1 << 34, 1 << 30  # what a queue's counter has room for
PROGRESS_WORDS = 8
DENSE = 8  # edges a node from which hubs have most of all edges, as a rule
ENOUGH = 0.85  # share of the edges that belong to settled nodes when the others begin to pull
MOST_BUCKETS = 64  # before that, at most
SORTED_AT_ONCE = 1 << 27  # edges


@dataclass(frozen=True)
class Queue:
    """Memory for compacted frontiers: two of ``room`` nodes each, and the counters."""

    room: int
    nodes: Any
    starts: Any
    rows: Any
    progress: Any


def make_queue(part: Partition) -> Queue:
    """Memory that an operator needs while it runs, made once a partition."""
    room = max(int(cp.count_nonzero(part.has_out)), 1)
    if room >= MAX_NODES or part.num_local_edges >= MAX_EDGES:
        raise OptionError(
            f"{room:,} nodes and {part.num_local_edges:,} edges on one GPU, where {MAX_NODES:,} and {MAX_EDGES:,} are "
            "too many: use more ranks"
        )
    twice = 2 * room
    return Queue(
        room, cp.empty(twice, np.int32), cp.empty(twice, np.int64), cp.empty(twice, np.int64),
        cp.zeros(PROGRESS_WORDS, np.uint64),
    )  # fmt: skip


def drains(ranks: int) -> bool:
    """Whether a whole traversal runs on the device: where no other rank has to be asked."""
    return ranks == 1


def bucket_scale(ranks: int) -> float:
    """How many times wider than usual the buckets of shortest paths should be: an exchange costs what many edges do.

    Two H200, scale 24: 71 ms at the usual width, 39 ms at 9 times that, 48 ms at 18 times.
    """
    return 1.0 if drains(ranks) else 8.0


def frontier_size(updated: Any, degrees: Any) -> tuple[int, int]:
    """Updated masters, and the out-edges that they have in the whole graph."""
    sums = cp.zeros(2, np.uint64)
    _bfs(np.int32).frontier_size(_threads(degrees.size), updated, degrees.size, degrees, sums)
    nodes, edges = read(sums).tolist()
    return nodes, edges


def bfs_push(
    frontier: Any, offsets: Any, targets: Any, gids: Any, gid_mask: int, level: Any, unreached: Any, values: Any,
    updated: Any, queue: Queue,
) -> None:  # fmt: skip
    """Every frontier node v gives ``level | (gids[v] & gid_mask)`` to its out-neighbours without a smaller value."""
    kernels = _bfs(values.dtype)
    cp.cuda.runtime.memsetAsync(queue.progress.data.ptr, 0, queue.progress.nbytes, cp.cuda.get_current_stream().ptr)
    memory = (queue.progress, queue.nodes, queue.starts, queue.rows)
    kernels.queue_bits(_threads(values.size), frontier, values.size, offsets, *memory)
    level = values.dtype.type(level)
    kernels.bfs_push(many_threads(), *memory, targets, gids, int(gid_mask), level, values, updated)


def bfs_pull(
    frontier: Any, offsets: Any, sources: Any, gids: Any, gid_mask: int, level: Any, unreached: Any, values: Any,
    updated: Any, queue: Queue,
) -> None:  # fmt: skip
    """Every node without a value looks for an in-neighbour in the frontier and stops at the first."""
    numbers = (values.dtype.type(level), values.dtype.type(unreached))
    _bfs(values.dtype).bfs_pull(
        _threads(values.size), frontier, values.size, offsets, sources, gids, int(gid_mask), *numbers, values, updated
    )


@dataclass(frozen=True)
class BfsPlan:
    """What breadth-first searches of one partition on one rank share.

    Attributes
    ----------
    rows : int
        Nodes from this one on have no in-edges.
    in_edges : (offsets, sources), or None if there is no way to pull
    first : (rows,) int32
        First in-neighbour of each node, -1 where there is none.
    bitmaps : uint32 words
    """

    queue: Queue
    rows: int
    in_edges: Any
    first: Any
    bitmaps: Any


def plan_bfs(part: Partition, in_edges: Any) -> BfsPlan:
    """Prepare for :func:`bfs_drain`."""
    rows, first = part.num_proxies, cp.full(1, -1, np.int32)
    if in_edges:
        offsets, sources = in_edges
        filled = offsets[1:] > offsets[:-1]
        rows = int(cp.flatnonzero(filled)[-1]) + 1 if bool(filled.any()) else 0
        first = cp.where(filled[:rows], sources[cp.minimum(offsets[:rows], max(sources.size - 1, 0))], -1)
        first = first.astype(np.int32)
    return BfsPlan(make_queue(part), rows, in_edges, first, cp.empty(2 * _words(part), np.uint32))


def bfs_drain(part: Partition, plan: BfsPlan, source: int, direction: str, alpha: int, beta: int) -> tuple[Any, Any]:
    """Hops of all nodes, int32, -1 where there is no path, and the number of levels, on the device."""
    queue, levels = plan.queue, cp.zeros(1, np.int64)
    hops = cp.empty(part.num_proxies, np.int32)
    in_edges = plan.in_edges or (part.offsets, part.targets)
    queue.progress.fill(0)
    _bfs(np.int32).resident("bfs_drain")(
        part.lid_map.index, part.lid_map.table, int(source), part.num_proxies, plan.rows, part.num_edges, part.offsets,
        part.targets, *in_edges, plan.first, DIRECTIONS[direction if plan.in_edges else "push"], alpha, beta, hops,
        plan.bitmaps, _words(part), queue.nodes, queue.starts, queue.rows, queue.room, queue.progress, levels,
    )  # fmt: skip
    return hops, levels[0]


def mark_lowered(lowered: Any, values: Any, relaxed_at: Any, pending: Any) -> None:
    """A node whose value fell since its edges were last relaxed is pending."""
    _sssp(values.dtype).mark_lowered(values.size, lowered, values.size, values, relaxed_at, pending)


def lowest_pending(pending: Any, values: Any, nothing: Any) -> Any:
    """Lowest value of a pending node, or ``nothing``."""
    lowest = cp.full(1, nothing, values.dtype)
    _sssp(values.dtype).lowest_pending(_threads(values.size), pending, values.size, values, lowest)
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


def _bfs(dtype: Any) -> Any:
    return load(BFS, VALUE=c_type(dtype))


def _sssp(dtype: Any, weight: Any = np.int32) -> Any:
    return load(SSSP, VALUE=c_type(dtype), WEIGHT=c_type(weight))


def _threads(size: int) -> int:
    """One warp for 32 nodes, but no more than fill the GPU."""
    return min(-(-size // 32) * 32, many_threads())


def _words(part: Partition) -> int:
    return -(-part.num_proxies // 64) * 2
