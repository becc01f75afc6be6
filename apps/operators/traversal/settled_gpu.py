"""Shortest paths where rows are sorted by weight: distances are settled bucket by bucket, see sssp_sorted.cuh.

In one kernel on each GPU, or step by step with syncs in between.
"""

from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.frontier_gpu import queue_for
from cusp.kernels.arrays import total
from cusp.kernels.cuda import c_type, load, many_threads, struct, sums_of
from cusp.partition import Partition
from cusp.runtime import timeline
from cusp.runtime.devices import finisher
from gluon.device_gpu import no_bits
from gluon.label import Label
from gluon.peers.link_gpu import Link
from gluon.reduction import MIN
from gluon.sync import Sync

SORTED = "cusp/apps/operators/traversal/sssp_sorted.cuh"
ENOUGH = 0.85  # share of the edges that belong to settled nodes when the others begin to pull, once
ENOUGH_TO_REPEAT = 0.5  # and where they can pull again
MOST_BUCKETS = 64  # before that, at most


class SettledPaths:
    """What searches of one partition share: one kernel, alone or with peers. Collective.

    For partitions in which no mirror has out-edges: masters with out-edges come first.

    Parameters
    ----------
    by_weight : (targets, weights)
        The edges with each row sorted by weight.
    """

    BUCKET_SCALE = 1.0

    def __init__(self, part: Partition, sync: Sync, way: str, dtype: np.dtype, by_weight: tuple[Any, Any]) -> None:
        size, bytes_, queue = part.num_proxies, dtype.itemsize, queue_for(part, part.offsets)
        arrays = [] if way == "whole" else [bytes_ * size]
        self._link = Link(part, sync, queue.progress, arrays, lambda size: [2 * 4 * size, 2 * bytes_ * size])
        self._kernel = self._link.load(SORTED, "settle_and_pull", 2, **_types(dtype, by_weight))
        rows = struct(total(part.has_out), part.offsets, *by_weight)
        until = struct(int(part.num_edges * ENOUGH_TO_REPEAT), MOST_BUCKETS)
        self._graph = part.lid_map.index, part.lid_map.table, rows, size, until
        self._memory = no_bits(size), queue.struct, cp.zeros(1, np.int64)
        self._size, self._dtype = size, dtype

    def run(self, sync: Sync, source: int, lengths: Any, drain: Callable[..., Any]) -> tuple[Any, Any]:
        """See interfaces.py.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        link, number, rounds = self._link, self._dtype.type, self._memory[-1]
        values = cp.empty(self._size if link.alone else 0, self._dtype)
        own = (struct(values, None),) if link.alone else ()
        _timed(
            "settle and pull", link.run, self._kernel, lambda: () if link.alone else (struct(*link.array(0)),), *own,
            int(source), *self._graph, number(lengths.far), number(min(lengths.delta, lengths.far)), *self._memory,
        )  # fmt: skip
        sync.count_peers(rounds[0])
        return values if link.alone else link.own(0, self._size, self._dtype), rounds[0]


class SettledSteps:
    """The same step by step, for any partition and transport.

    A bucket relaxes, of every node that is settled, just the edges that lead into it, and of every node that falls
    into it, those that stay inside. So nothing travels but distances of its nodes.
    """

    BUCKET_SCALE = 2.0

    def __init__(self, part: Partition, dtype: np.dtype, by_weight: tuple[Any, Any]) -> None:
        self._part, self._queue, self._dtype = part, queue_for(part, part.offsets), dtype
        self._rows = struct(part.num_proxies, part.offsets, *by_weight)
        self._kernels = load(SORTED, **_types(dtype, by_weight))
        self._threads = min(max(part.num_proxies, 1), many_threads())

    def run(self, sync: Sync, source: int, lengths: Any, drain: Callable[..., Any]) -> tuple[Any, Any]:
        """Settle until most edges belong to settled nodes; the others pull."""
        part, far = self._part, self._dtype.type(lengths.far)
        distances = Label(part, self._dtype, far, MIN)
        distances.write(source, 0)
        pending = drain(part, distance=distances)
        distances.swap_updated()  # every proxy of the source knows its distance
        low, rounds, ended = 0, 0, False
        for _ in range(MOST_BUCKETS):
            high = low + lengths.delta if far - low > lengths.delta else far
            settled, lowest = self._open_bucket(sync, low, high, far, distances.values)
            ended = lowest == far
            if ended or settled >= ENOUGH * part.num_edges:
                break
            if lowest < high:
                rounds += self._settle(sync, high, far, distances, pending)
            low = max(high, lowest)
        if not ended:
            self._pull(sync, low, far, distances)
            if self._lowest(sync, distances, pending) != far:
                rounds += self._settle(sync, far, far, distances, pending)
        return distances.values, rounds

    def _open_bucket(self, sync: Sync, low: Any, high: Any, far: Any, values: Any) -> tuple[int, Any]:
        """Queue the edges from nodes below ``low`` into the bucket from there to ``high``. Collective.

        Returns how many edges those nodes have, and the lowest distance from ``low`` on that they lead to, or ``far``.
        """
        number, sums = self._dtype.type, sums_of(2)
        self._timed(
            "open_bucket", self._threads, number(low), number(high), far, self._rows, values, self._queue.struct,
            sums.counters, sums.address,
        )  # fmt: skip
        edges, below = sums.read()
        bits = np.array([far]).view(f"i{far.itemsize}")  # as open_bucket in sssp_sorted.cuh
        bits -= below
        return sync.total(edges)[0], sync.lowest(bits.view(self._dtype)[0].item(), self._dtype)

    def _settle(self, sync: Sync, high: Any, far: Any, distances: Label, pending: Any) -> int:
        """Relax below ``high`` until no rank has anything left to do there. Collective; returns the rounds."""
        rounds, settle = 0, self._kernels.resident("settle_bucket")
        while True:
            _timed(
                "settle_bucket", settle, self._dtype.type(high), far, self._rows, distances.values,
                pending.relaxed_at, pending.bits, distances.updated, self._queue.struct,
            )  # fmt: skip
            sync(distances)
            sync.end_round()
            rounds += 1
            if self._lowest(sync, distances, pending) == far:
                return rounds

    def _lowest(self, sync: Sync, distances: Label, pending: Any) -> Any:
        """Lowest distance of a pending node of any rank, ``far`` if there is none. Collective."""
        pending.add(distances.swap_updated())
        return sync.lowest(pending.lowest(), self._dtype)

    def _pull(self, sync: Sync, low: Any, far: Any, distances: Label) -> None:
        """Nodes not settled below ``low`` look for their distance at their in-neighbours. Collective."""
        masters, values = self._part.num_masters, distances.values
        self._timed("mark_reached", masters, masters, values, far, distances.updated)
        sync.broadcast(distances, read="dst")
        distances.swap_updated()  # what is marked there is settled
        self._timed("pull_unsettled", self._threads, self._dtype.type(low), far, self._rows, values, distances.updated)
        totals = self._queue.progress[1:4]  # of the bucket that was opened last
        totals.data.memset_async(0, totals.nbytes)
        sync.reduce(distances, write="src")
        sync.broadcast(distances, read="any")

    def _timed(self, name: str, *arguments: Any) -> None:
        _timed(name, getattr(self._kernels, name), *arguments)


def _types(dtype: np.dtype, by_weight: tuple[Any, Any]) -> dict[str, str]:
    """Macros of sssp_sorted.cuh."""
    return {"VALUE": c_type(dtype), "WEIGHT": c_type(by_weight[1].dtype)}


def _timed(name: str, function: Callable[..., Any], *arguments: Any) -> None:
    timeline.call(name, timeline.OPERATOR, finisher("gpu"), function, *arguments)
