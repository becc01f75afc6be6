"""k-core on the GPUs of several ranks, one kernel on each: kcore.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from apps.operators.frontier_gpu import Queue
from cusp.kernels.cuda import Struct, load, struct
from cusp.partition import Partition
from gluon.peers.lists_gpu import PeerArrays, mirrors_elsewhere
from gluon.sync import Sync

PEERS = "apps/operators/structure/peers/kcore.cuh"


class PeerPeeling:
    """What peelings of one graph share on all ranks: memory for mirrors whose masters were peeled. Collective."""

    def __init__(self, part: Partition, sync: Sync) -> None:
        assert sync.peers is not None
        self._peers = sync.peers
        self._arrays = PeerArrays(sync.peers, (4 * np.diff(part.mirror_starts)).tolist())
        self._sent = cp.zeros(sync.comm.size, np.uint64)
        self._mirrors = mirrors_elsewhere(part, sync.plan, sync.comm)
        self._kernel = load(PEERS).resident("peel_together")

    def run(self, own: Struct, first: int, last: int, queue: Queue, rounds: Any) -> None:
        """Peel from level ``first`` on, up to level ``last``. Collective.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        boxes = self._arrays.addresses(self._find)
        self._peers.run(self._kernel, own, first, last, queue.struct, self._peers.struct, boxes, rounds)

    def _find(self) -> Struct:
        """Addresses of what is sent."""
        return struct(self._arrays.for_me(0), self._arrays.from_all(0), self._sent, self._mirrors)
