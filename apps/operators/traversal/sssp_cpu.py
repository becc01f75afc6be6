"""Shortest paths on the CPU: see interfaces.py.

Pending nodes of the current bucket are in a ring, those of later ones in a pile, from which each bucket takes its own:
the near and the far pile of Davidson, Baxter, Garland, Owens (IPDPS 2014).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import get_bit, set_bit
from apps.operators.interfaces import is_sparse
from apps.operators.traversal.buckets_cpu import bucket_end, drain_in_parallel, in_order
from apps.operators.traversal.peers.search_cpu import PeerRelaxing, plan_peers
from apps.operators.traversal.peers.search_cpu import shortest_paths as over_peers
from cusp.kernels.bits import first_bit, prefetch, unsigned
from cusp.partition import Partition
from cusp.runtime.threads import many
from gluon.device_cpu import no_bits
from gluon.sync import Sync

AT_ONCE = 1 << 15  # edges that a rank relaxes without a sync, at least, if it has them: about as long as a sync takes
SOME = 1 << 12  # edges that it relaxes between two looks for messages
SYNCS = 32  # in graphs with many edges per node, a rank that runs ahead relaxes at most this part of its edges
NARROW = 1 / 4  # of the usual bucket, there: what other ranks lower later is relaxed again
ALL = np.iinfo(np.int64).max
NOTHING = np.empty(0, np.uint64)


@dataclass(frozen=True)
class Relaxing:
    """Memory of shortest paths of one partition.

    Attributes
    ----------
    ring : (proxies + 1,) int32
        Valid local ids everywhere, also where it is empty.
    pile : (proxies,) int32
    ahead : int
        AT_ONCE of buckets that leave fewer nodes pending than there were.
    scale : float
        How many times wider than usual buckets are.
    rows : int
        Proxies up to the last one with out-edges: mirrors that have none are never relaxed.
    peers : PeerRelaxing or None
        What a search over several ranks in one call needs, where that can be and pays.
    """

    ring: np.ndarray
    pile: np.ndarray
    ahead: int
    scale: float
    rows: int
    peers: PeerRelaxing | None = None


def bucket_scale(queue: Relaxing, sync: Sync) -> float:
    return queue.scale


def plan_relaxing(part: Partition, sync: Sync, weights: np.ndarray, dtype: np.dtype) -> Relaxing:
    ring, pile = np.zeros(part.num_proxies + 1, np.int32), np.empty(part.num_proxies, np.int32)
    rows = int(np.searchsorted(part.offsets, part.num_local_edges))
    if sync.plan.apart:
        return Relaxing(ring, pile, AT_ONCE, 1.0, rows)
    if is_sparse(part):
        peers = None if sync.execution == "bulk" or sync.plan.mixed else plan_peers(part, sync, ring, pile, rows)
        return Relaxing(ring, pile, AT_ONCE, 1.0, rows, peers)
    return Relaxing(ring, pile, max(AT_ONCE, part.num_local_edges // SYNCS), NARROW, rows)


def drains(queue: Any, sync: Sync) -> bool:
    return sync.plan.apart or queue.peers is not None


def settles(queue: Relaxing) -> bool:
    """Rows are not sorted by weight."""
    return False


def shortest_paths(part: Partition, sync: Sync, source: int, lengths: Any) -> tuple[np.ndarray, int]:
    number, queue = lengths.dtype.type, lengths.queue
    if queue.peers is not None:
        return over_peers(part, sync, source, lengths, queue.peers)
    values, pending = np.full(part.num_proxies, lengths.far, lengths.dtype), no_bits(part.num_proxies)
    lid = part.lid(source)
    if lid < 0:
        return values, 0
    queue.pile[0], values[lid] = lid, 0
    far, delta = number(lengths.far), number(min(lengths.delta, lengths.far))
    if part.num_edges >= many() and lengths.dtype.kind != "f" and not is_sparse(part):
        return values, drain_in_parallel(part, delta, far, lengths.weights, values, pending, queue)
    set_bit(pending, lid)
    buckets = _drain(
        1, delta, delta, far, ALL, ALL, ALL, queue.rows, *unsigned(part.offsets, part.targets), lengths.weights, values,
        values[:0], pending, NOTHING, *unsigned(queue.ring, queue.pile),
    )  # fmt: skip
    return values, buckets


def most_hops(part: Partition, sync: Sync) -> int:
    return part.num_nodes


@njit(cache=True, nogil=True)
def find_pending(lowered, values, relaxed_at, pending, far):  # type: ignore[no-untyped-def]
    lowest_value = far
    for word in range(lowered.size):
        bits = lowered[word]
        while bits:
            lid = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            if values[lid] < relaxed_at[lid]:
                set_bit(pending, lid)
        bits = pending[word]
        while bits:
            lid = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            lowest_value = min(lowest_value, values[lid])
    return lowest_value


def relax_below(
    limit: Any, delta: Any, far: Any, offsets: Any, targets: Any, weights: Any, values: Any, relaxed_at: Any,
    pending: Any, updated: Any, queue: Relaxing,
) -> None:  # fmt: skip
    graph = (offsets, targets, weights, values, relaxed_at, pending, updated, queue)
    _relax(limit, delta, far, ALL, AT_ONCE, queue.ahead, *graph)


def relax_some(
    limit: Any, delta: Any, far: Any, offsets: Any, targets: Any, weights: Any, values: Any, relaxed_at: Any,
    pending: Any, updated: Any, queue: Relaxing,
) -> None:  # fmt: skip
    graph = (offsets, targets, weights, values, relaxed_at, pending, updated, queue)
    _relax(limit, delta, far, SOME, SOME, SOME, *graph)


def _relax(
    limit: Any, delta: Any, far: Any, most: int, at_once: int, ahead: int, offsets: Any, targets: Any, weights: Any,
    values: Any, relaxed_at: Any, pending: Any, updated: Any, queue: Relaxing,
) -> None:  # fmt: skip
    number, (ring, pile) = values.dtype.type, unsigned(queue.ring, queue.pile)
    _drain(
        in_order(pending, number(far), values, pile), number(limit), number(min(delta, far)), number(far), most,
        at_once, ahead, queue.rows, *unsigned(offsets, targets), weights, values, relaxed_at, pending, updated, ring,
        pile,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _drain(  # type: ignore[no-untyped-def]
    piled,
    limit,
    delta,
    far,
    most,
    at_once,
    ahead,
    rows,
    offsets,
    targets,
    weights,
    values,
    relaxed_at,
    pending,
    updated,
    ring,
    pile,
):
    """Relax what is in the pile below ``limit``, then bucket after bucket up to ``at_once`` edges; returns buckets.

    While there are fewer and fewer in the pile, up to ``ahead`` edges; and if that is more, a bucket with fewer edges
    than there are nodes in the pile, which is looked through for each, is followed by one twice as wide. After ``most``
    edges the rest stays pending.

    A node is pending while it is in the ring or in the pile. One that falls below the limit while it is in the pile
    goes into the ring as well; the pile forgets it when it is next looked through. Places are unsigned.
    """
    alone, last, one = updated.size == 0, ring.size - 1, np.uint64(1)
    done, head, tail, buckets, edges, width = 0, 0, 0, 0, 0, delta
    while True:
        lowest, kept = far, 0
        for place in range(piled):
            node = pile[place]
            value = values[node]
            if value >= limit:
                pile[kept] = node
                kept += 1
                lowest = min(lowest, value)
            elif value >= done:
                ring[tail] = node
                tail += 1
        piled, done, taken, opened_at = kept, limit, tail, edges
        if tail == 0:
            if piled == 0 or edges >= at_once:
                return buckets
            limit = bucket_end(lowest, delta, far)
            continue
        if tail > pending.size >> 3:
            tail = in_order(pending, limit, values, ring)
        buckets += 1
        while head != tail and edges < most:
            prefetch(offsets, ring[min(head + 8, last)])
            soon = offsets[ring[min(head + 4, last)]]
            prefetch(targets, soon)
            prefetch(weights, soon)
            source = ring[head]
            head = head + 1 if head < last else 0
            value = values[source]
            pending[source >> 6] &= ~(np.uint64(1) << np.uint64(source & 63))
            if not alone:
                relaxed_at[source] = value
            longest = far - value
            edges += np.int64(offsets[source + one] - offsets[source])
            for edge in range(offsets[source], offsets[source + one]):
                target = targets[edge]
                candidate = value + weights[edge]
                old = values[target]
                if candidate < old and weights[edge] < longest:
                    values[target] = candidate
                    if not alone:
                        set_bit(updated, target)
                        if target >= rows:
                            relaxed_at[target] = candidate
                            continue
                    waits = get_bit(pending, target)
                    if candidate < limit:
                        if not waits or old >= limit:
                            ring[tail] = target
                            tail = tail + 1 if tail < last else 0
                    elif not waits:
                        pile[piled] = target
                        piled += 1
                    set_bit(pending, target)
        if head != tail:
            return buckets
        head = tail = 0
        shrinks = piled - kept < taken
        if edges >= (ahead if shrinks else at_once):
            return buckets
        wider = shrinks and edges - opened_at < piled and at_once < ahead and width < (far - limit) / 4
        width = width + width if wider else delta
        limit = limit + width if far - limit > width else far


@njit(cache=True, nogil=True)
def mark_too_far(offsets, targets, weights, values, far, marks, updated):  # type: ignore[no-untyped-def]
    for source in range(offsets.size - 1):
        if values[source] != far:
            for edge in range(offsets[source], offsets[source + 1]):
                if weights[edge] >= far - values[source]:
                    marks[targets[edge]] = 1
                    set_bit(updated, targets[edge])
