"""Connected components on the GPUs of several ranks, one kernel on each: cc.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import Struct, c_type, load, pinned, struct
from cusp.partition import Partition
from gluon.peers.lists_gpu import PeerArrays, proxies_of
from gluon.sync import Sync

PEERS = "cusp/apps/operators/structure/peers/cc.cuh"
SUMS = 3  # of enum Sum there


class PeerForest:
    """The trees of all ranks of one partition, in memory that partners reach. Collective."""

    def __init__(self, part: Partition, sync: Sync) -> None:
        peers = sync.peers
        assert peers is not None
        self._part, self._peers, self._proxies = part, peers, proxies_of(part, sync.plan, sync.comm)
        words, lids = 8 * part.num_proxies, 4 * part.num_proxies
        self._arrays = PeerArrays(peers, [words, words, words, lids])
        self._sums, self._found = cp.zeros(SUMS, np.uint64), pinned(3, np.uint64)
        self._kernel = load(PEERS, VALUE=c_type(np.int32)).resident("unite_ranks")

    def unite(self, sync: Sync, parents: Any, left_out: Any) -> tuple[int, int, Any, dict[str, int]]:
        """Unite the trees of all ranks; see :class:`~cusp.apps.operators.structure.interfaces.Trees`. Collective.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        component = cp.empty(self._part.num_masters, np.int64)
        self._peers.run(
            self._kernel, parents.size, parents, self._part.gids, left_out, self._arrays.addresses(self._find),
            self._peers.struct, self._proxies.struct, self._sums, component, self._found.ctypes.data,
        )  # fmt: skip
        sync.count_peers(1)
        wrong, components, largest = self._found.tolist()
        return wrong, 1, component, {"components": components, "largest": largest}

    def _find(self) -> Struct:
        """Addresses of the trees."""
        return struct(*map(self._arrays.of_all, range(4)))
