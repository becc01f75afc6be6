"""Shortest paths where rows are sorted by weight, in one kernel on each GPU: sssp_sorted.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.frontier_gpu import Queue
from cusp.kernels.cuda import c_type, struct
from cusp.partition import Partition
from gluon.peers.link_gpu import Link
from gluon.sync import Sync

SORTED = "cusp/apps/operators/traversal/sssp_sorted.cuh"


class SettledPaths:
    """What searches of one partition share, on one rank or on peers. Collective.

    For partitions in which no mirror has out-edges: masters with out-edges come first.

    Parameters
    ----------
    by_weight : (targets, weights)
        The edges with each row sorted by weight.
    enough, most_buckets : int
        Edges of settled nodes, and buckets, after which the others pull.
    fallen : (proxies,) of 4 bytes
        Memory.
    """

    def __init__(
        self, part: Partition, sync: Sync, queue: Queue, dtype: np.dtype, by_weight: tuple[Any, Any], enough: int,
        most_buckets: int, fallen: Any,
    ) -> None:  # fmt: skip
        size, bytes_ = part.num_proxies, dtype.itemsize
        alone = sync.peers is None
        self._link = Link(
            part, sync, queue.progress, [] if alone else [bytes_ * size], lambda size: [2 * 4 * size, 2 * bytes_ * size]
        )
        types = {"VALUE": c_type(dtype), "WEIGHT": c_type(by_weight[1].dtype)}
        self._kernel = self._link.load(SORTED, "settle_and_pull", 2, **types)
        rows = struct(int(cp.count_nonzero(part.has_out)), part.offsets, *by_weight)
        self._graph = part.lid_map.index, part.lid_map.table, rows, size, struct(enough, most_buckets)
        self._size, self._dtype, self._fallen = size, dtype, fallen.view(np.uint32)

    def run(self, source: int, far: Any, delta: Any, queue: Queue, rounds: Any) -> Any:
        """Distances of all proxies, stale on mirrors. Collective.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        link = self._link
        values = cp.empty(self._size if link.alone else 0, self._dtype)
        link.run(
            self._kernel, lambda: (struct(values, None) if link.alone else struct(*link.array(0)),), source,
            *self._graph, far, delta, self._fallen, queue.struct, rounds,
        )  # fmt: skip
        return values if link.alone else link.own(0, self._size, self._dtype).copy()
