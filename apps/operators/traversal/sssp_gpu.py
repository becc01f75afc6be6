"""Shortest paths on the GPU: see interfaces.py.

On one rank a whole search runs in one kernel, that of any edge operator. Where edges weigh as much as their reverses,
rows are sorted by weight, and distances are settled bucket by bucket until most edges belong to settled nodes; then
the other nodes pull: see sssp_sorted.cuh.
"""

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.expressions.binding import Binding
from cusp.apps.operators.expressions.expression import Expression
from cusp.apps.operators.expressions.relaxer_gpu import Relaxer
from cusp.apps.operators.frontier_gpu import DENSE, Queue, make_queue, threads_for
from cusp.apps.operators.interfaces import without_rounds
from cusp.apps.operators.traversal.bfs_gpu import bfs_drain, plan_bfs
from cusp.apps.operators.traversal.interfaces import ALPHA, BETA
from cusp.apps.operators.traversal.peers.relax_gpu import PeerRelaxing
from cusp.apps.operators.traversal.peers.sssp_gpu import SettledPaths
from cusp.kernels.cuda import Struct, c_type, load, many_threads, struct, sums_of
from cusp.partition import Partition
from cusp.runtime.devices import to_host
from gluon.device_gpu import full, no_bits, read, write
from gluon.label import Label
from gluon.peers.lists_gpu import mirrors_have_rows
from gluon.reduction import MIN
from gluon.sync import Sync

RELAX = SimpleNamespace(  # an operator, as Binding sees it
    expression=Expression("distance + weight"), where=None, priority=None, into="distance", write="dst", read="src"
)
SSSP, SORTED = (f"cusp/apps/operators/traversal/{name}.cuh" for name in ("sssp", "sssp_sorted"))
ENOUGH = 0.85  # share of the edges that belong to settled nodes when the others begin to pull, once
ENOUGH_TO_REPEAT = 0.5  # and where they can pull again
MOST_BUCKETS = 64  # before that, at most
SORTED_AT_ONCE, SORTING_BYTES = 1 << 27, 64  # edges, at most, and the memory that sorting one takes


def bucket_scale(queue: "Relaxing", sync: Sync) -> float:
    """Wider, where an exchange costs what many edges do.

    Two H200, scale 24: 10.3 ms at twice the usual width, 12.8 at 4 times that, 15.9 at 8 times; without sorted rows
    71 ms at the usual width, 39 at 9 times that, 48 at 18 times.
    """
    return 1.0 if drains(queue, sync) else 2.0 if settles(queue) else 8.0


def most_hops(part: Partition, sync: Sync) -> int:
    """Twice the hops to the last node from a hub, or one less than nodes that it cannot reach: distances of 32 bits
    leave twice as many in the cache as those of 64.
    """
    if not part.symmetric or sync.plan.mixed or not (sync.peers or sync.comm.size == 1):
        return part.num_nodes
    hub = sync.highest(int(part.gids[0]) if part.num_masters else -1)
    plan = plan_bfs(part, (part.offsets, part.targets), sync)
    hops, _, levels = bfs_drain(part, plan, hub, "auto", ALPHA, BETA, False)
    filled, reached = part.degrees > 0, hops >= 0
    (others,) = sync.total(int((filled & ~reached).sum()))
    return max(2 * sync.highest(int(levels)), others)


def find_pending(lowered: Any, values: Any, relaxed_at: Any, pending: Any, far: Any) -> Any:
    sums, size, far = sums_of(2), values.size, values.dtype.type(far)
    _sssp(values.dtype).find_pending(
        threads_for(size), lowered, size, values, relaxed_at, pending, far, sums.counters, sums.address
    )
    return _lowest(far, sums.read()[0])


def _lowest(far: Any, below: int) -> Any:
    """The value that ``keep_lowest`` of distances.cuh kept."""
    bits = np.array([far]).view(f"i{far.itemsize}")
    bits -= below
    return bits.view(far.dtype)[0].item()


def relax_below(
    limit: Any, delta: Any, far: Any, offsets: Any, targets: Any, weights: Any, values: Any, relaxed_at: Any,
    pending: Any, updated: Any, queue: "Relaxing",
) -> None:  # fmt: skip
    relaxer = queue.relaxer
    nodes, last = relaxer.nodes(values, pending, updated, relaxed_at), relaxer.last_below(limit)
    while relaxer.run(nodes, last, far):
        pass


@dataclass(frozen=True)
class Relaxing:
    """What shortest paths of one partition share.

    Attributes
    ----------
    relaxer : Relaxer
        In buckets that are drained.
    queue : Queue
        For other searches.
    stamps : (proxies,) int32
        The step in which each was last appended.
    rounds : (1,) int64
    by_weight : (targets, weights), or None
        The edges with each row sorted by weight, where buckets can be settled.
    paths : SettledPaths, PeerRelaxing or None
        What a search in one kernel needs, where rows are sorted by weight, or over several ranks.
    """

    relaxer: Relaxer
    queue: Queue
    stamps: Any
    rounds: Any
    by_weight: Any
    paths: SettledPaths | PeerRelaxing | None = None


def plan_relaxing(part: Partition, sync: Sync, weights: Any, dtype: np.dtype) -> Relaxing:
    stamps, rounds = cp.zeros(part.num_proxies, np.int32), cp.zeros(1, np.int64)
    pays = part.symmetric and part.num_edges >= DENSE * part.num_nodes and (sync.plan.apart or not sync.plan.mixed)
    exact = dtype.kind == "i" and (weights.dtype.itemsize <= 4 or part.weights is None)
    by_weight = _sort_rows(part, weights) if pays and exact and _weighs_the_same(part, sync, weights) else None
    paths: SettledPaths | PeerRelaxing | None = None
    queue, alone = make_queue(part), without_rounds(part, sync)
    distance = Label(part, dtype, MIN.identity(dtype).item(), MIN)
    ordered = Binding(RELAX, part, {"distance": distance}).ordered()
    if sync.peers and by_weight is None and not alone:
        paths = PeerRelaxing(part, sync, ordered)
    elif by_weight and (not mirrors_have_rows(part, sync.comm) if sync.peers else sync.plan.apart):
        enough = int(part.num_edges * ENOUGH_TO_REPEAT)
        paths = SettledPaths(part, sync, queue, dtype, by_weight, enough, MOST_BUCKETS, stamps)
    return Relaxing(Relaxer(part, ordered), queue, stamps, rounds, by_weight, paths)


def drains(queue: Relaxing, sync: Sync) -> bool:
    return queue.paths is not None or sync.plan.apart


def _weighs_the_same(part: Partition, sync: Sync, weights: Any) -> bool:
    """Whether every edge and its reverse have the same weight. Collective, but not in a mixed job: only a rank that
    shares no node with others asks there.
    """
    total = cp.zeros(1, np.uint64)
    kernel = _sorted(np.int32, weights.dtype).weight_asymmetry
    kernel(many_threads(), part.num_proxies, part.gids, part.offsets, part.targets, weights, total)
    own = read(total).view(np.int64)[0]
    return (own if sync.plan.mixed else sync.total(own)[0]) == 0


def _sort_rows(part: Partition, weights: Any) -> tuple[Any, Any]:
    """Targets and weights with each row sorted by weight: a chunk of whole rows at a time, by one sort of both."""
    targets, sorted_weights = (part.storage.empty(array.size, array.dtype) for array in (part.targets, weights))
    at_once = part.storage.at_once(SORTED_AT_ONCE, SORTING_BYTES)
    offsets = to_host(part.offsets)
    row = 0
    while row < part.num_proxies:
        end = int(np.searchsorted(offsets, offsets[row] + at_once, side="right")) - 1
        end = min(max(end, row + 1), part.num_proxies)
        edges = slice(int(offsets[row]), int(offsets[end]))
        begins = part.offsets[row:end] - edges.start
        begins = begins[part.has_out[row:end]]
        keys = cp.zeros(edges.stop - edges.start, np.int64)
        keys[begins] = 1
        keys = cp.cumsum(keys) << 32 | weights[edges]
        order = cp.argsort(keys)
        for given, ordered in ((part.targets, targets), (weights, sorted_weights)):
            ordered[edges] = given[edges].copy()[order]  # a copy, as rows may lie in the memory of the host
        row = end
    part.storage.prefer([targets, sorted_weights])
    return targets, sorted_weights


def settles(queue: Relaxing) -> bool:
    return queue.by_weight is not None


def open_bucket(part: Partition, low: Any, high: Any, far: Any, values: Any, queue: Relaxing) -> tuple[int, Any]:
    number, sums = values.dtype.type, sums_of(2)
    _sorted(values.dtype, queue.by_weight[1].dtype).open_bucket(
        _threads(values.size), number(low), number(high), number(far), _rows(part, queue, values.size), values,
        queue.queue.struct, sums.counters, sums.address,
    )  # fmt: skip
    edges, below = sums.read()
    return edges, _lowest(number(far), below)


def settle_bucket(
    part: Partition, high: Any, far: Any, values: Any, relaxed_at: Any, pending: Any, updated: Any, queue: Relaxing
) -> None:
    number = values.dtype.type
    _sorted(values.dtype, queue.by_weight[1].dtype).resident("settle_bucket")(
        number(high), number(far), _rows(part, queue, values.size), values, relaxed_at, pending, updated,
        queue.queue.struct,
    )  # fmt: skip


def mark_reached(part: Partition, far: Any, values: Any, updated: Any) -> None:
    masters = part.num_masters
    _sorted(values.dtype).mark_reached(masters, masters, values, values.dtype.type(far), updated)


def pull(part: Partition, low: Any, far: Any, values: Any, updated: Any, queue: Relaxing) -> None:
    number = values.dtype.type
    _sorted(values.dtype, queue.by_weight[1].dtype).pull_unsettled(
        _threads(values.size), number(low), number(far), _rows(part, queue, values.size), values, updated
    )
    totals = queue.queue.progress[1:4]  # of the bucket that was opened last
    totals.data.memset_async(0, totals.nbytes)


def _rows(part: Partition, relaxing: Relaxing, size: int) -> Struct:
    """Struct Rows of sssp_sorted.cuh: the first ``size`` rows, sorted by weight."""
    return struct(size, part.offsets, *relaxing.by_weight)


def _threads(size: int) -> int:
    """One thread per node, but no more than fill the GPU."""
    return min(max(size, 1), many_threads())


def shortest_paths(part: Partition, sync: Sync, source: int, lengths: Any) -> tuple[Any, Any]:
    far, relaxing = lengths.dtype.type(lengths.far), lengths.queue
    queue = relaxing.queue
    delta = lengths.dtype.type(min(lengths.delta, lengths.far))
    if isinstance(relaxing.paths, SettledPaths):
        return relaxing.paths.run(int(source), far, delta, queue, relaxing.rounds), relaxing.rounds[0]
    if relaxing.paths is None and not part.has_node(source):
        return full(part.num_proxies, far, lengths.dtype), 0
    values, pending = full(part.num_proxies, far, lengths.dtype), no_bits(part.num_proxies)
    write(part, source, 0, values, pending)
    if relaxing.paths is not None:
        relaxing.paths.run(values, pending, delta, relaxing.rounds)
        return values, relaxing.rounds[0]
    relaxer = relaxing.relaxer
    nodes = relaxer.nodes(values, pending)
    relaxer.done.fill(0)
    while relaxer.run(nodes, far, delta):
        pass
    return values, relaxer.done[0]


@functools.cache
def _sssp(dtype: Any, weight: Any = np.int32) -> Any:
    return load(SSSP, VALUE=c_type(dtype), WEIGHT=c_type(weight))


@functools.cache
def _sorted(dtype: Any, weight: Any = np.int32) -> Any:
    return load(SORTED, VALUE=c_type(dtype), WEIGHT=c_type(weight))
