"""Shortest paths on the GPUs of several ranks, one kernel on each: sssp.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from apps.operators.frontier_gpu import Queue
from cusp.kernels.cuda import Struct, c_type, load, struct
from cusp.partition import Partition
from gluon.device_gpu import no_bits
from gluon.peers.lists_gpu import PeerArrays, proxies_of
from gluon.sync import Sync

PEERS = "apps/operators/traversal/peers/sssp.cuh"


class PeerPaths:
    """What searches of one partition share on all ranks: distances that partners store into, and memory for offers.

    Collective. For partitions in which no mirror has out-edges: masters with out-edges come first.

    Parameters
    ----------
    by_weight : (targets, weights)
        The edges with each row sorted by weight.
    enough, most_buckets : int
        Edges of settled nodes, and buckets, after which the others pull.
    """

    def __init__(
        self, part: Partition, sync: Sync, dtype: np.dtype, by_weight: tuple[Any, Any], enough: int, most_buckets: int
    ) -> None:
        assert sync.peers is not None
        self._peers, self._dtype, self._proxies = sync.peers, dtype, proxies_of(part, sync.plan, sync.comm)
        places = [2 * 4 * size for size in self._proxies.sizes]
        values = [2 * dtype.itemsize * size for size in self._proxies.sizes]
        self._arrays = PeerArrays(sync.peers, [dtype.itemsize * part.num_proxies, *places, *values])
        self._sent = cp.zeros(2 * sync.comm.size, np.uint64)
        self._size, self._fallen = part.num_proxies, no_bits(part.num_proxies)
        self._rows = struct(int(cp.count_nonzero(part.has_out)), part.offsets, *by_weight)
        self._until = enough, most_buckets
        self._map = part.lid_map.index, part.lid_map.table
        kernels = load(PEERS, VALUE=c_type(dtype), WEIGHT=c_type(by_weight[1].dtype))
        self._kernel = kernels.resident("settle_and_pull_peers")

    def run(self, source: int, far: Any, delta: Any, queue: Queue, rounds: Any) -> Any:
        """Distances of all proxies, stale on mirrors. Collective.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        values_of, offers = self._arrays.addresses(self._find)
        self._peers.run(
            self._kernel, source, *self._map, self._rows, self._size, *self._until, far, delta, values_of,
            self._fallen, queue.struct, self._peers.struct, self._proxies.struct, offers, rounds,
        )  # fmt: skip
        return self._arrays.own(0, self._size, self._dtype).copy()

    def _find(self) -> tuple[Any, Struct]:
        """Addresses of the distances and of the offers."""
        arrays, places, values = self._arrays, 1, 1 + self._peers.comm.size
        offers = struct(
            arrays.for_me(places), arrays.for_me(values), arrays.from_all(places), arrays.from_all(values), self._sent
        )
        return arrays.of_all(0), offers
