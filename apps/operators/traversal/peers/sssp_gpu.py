"""Shortest paths on the GPUs of several ranks, one kernel on each: sssp.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from apps.operators.frontier_gpu import Queue
from cusp.kernels.cuda import Kernels, Struct, struct
from cusp.partition import Partition
from cusp.runtime import watchdog
from gluon.device_gpu import no_bits
from gluon.peers.lists_gpu import PeerArrays, proxies_of
from gluon.sync import Sync

PEERS = "apps/operators/traversal/peers/sssp.cuh"


def rows_are_masters(part: Partition, sync: Sync) -> bool:
    """Whether no mirror of any rank has out-edges. Collective."""
    mirrors = int(part.has_out[part.num_masters :].any())
    return sync.total(mirrors)[0] == 0


class PeerPaths:
    """What searches of one partition share on all ranks: distances that partners store into, and memory for offers.

    Collective. ``rows`` are the masters with out-edges, which come first.
    """

    def __init__(self, part: Partition, sync: Sync, dtype: np.dtype) -> None:
        assert sync.peers is not None
        self.peers, self.dtype, self.rows = sync.peers, dtype, int(cp.count_nonzero(part.has_out))
        self._proxies = proxies_of(part, sync.plan, sync.comm)
        places = [2 * 4 * size for size in self._proxies.sizes.tolist()]
        values = [2 * dtype.itemsize * size for size in self._proxies.sizes.tolist()]
        self._arrays = PeerArrays(sync.peers, [dtype.itemsize * part.num_proxies, *places, *values])
        self._sent, self._below = cp.zeros(2 * sync.comm.size, np.uint64), cp.zeros(3, np.uint64)
        self._fallen = no_bits(part.num_proxies)
        self._memory: Any = None  # that of the addresses

    def run(
        self, kernels: Kernels, part: Partition, source: int, rows: Struct, enough: int, most_buckets: int, far: Any,
        delta: Any, queue: Queue, rounds: Any,
    ) -> Any:  # fmt: skip
        """Distances of all proxies, stale on mirrors. Collective.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        watchdog.step()
        if self._memory is not self.peers.memory:
            self._find()
        self.peers.run(
            kernels.resident("settle_and_pull_peers"), source, part.lid_map.index, part.lid_map.table, rows,
            part.num_proxies, enough, most_buckets, far, delta, self._values_of, self._fallen, queue.struct,
            self.peers.struct, self._proxies.struct, self._offers, rounds,
        )  # fmt: skip
        return self._arrays.own(0, part.num_proxies, self.dtype).copy()

    def _find(self) -> None:
        """Addresses, which change where the memory of the peers had to grow."""
        arrays, ranks, self._memory = self._arrays, self.peers.comm.size, self.peers.memory
        self._values_of = arrays.of_all(0)
        places, values = 1, 1 + ranks
        self._offers = struct(
            arrays.for_me(places), arrays.for_me(values), arrays.from_all(places), arrays.from_all(values), self._sent,
            self._below,
        )  # fmt: skip
