"""Shortest paths by buckets on the GPUs of several ranks, one kernel on each: relax.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from apps.operators.frontier_gpu import Queue
from cusp.kernels.cuda import Struct, c_type, load, struct
from cusp.partition import Partition
from cusp.runtime.exchange import all_to_all
from gluon.device_gpu import no_bits
from gluon.peers.lists_gpu import PeerArrays, mirrors_have_rows, proxies_of
from gluon.sync import Sync

PEERS = "apps/operators/traversal/peers/relax.cuh"
STATE_BYTES = 1024  # at least those of struct MailState in gluon/kernels/mail.cuh


class PeerRelaxing:
    """What searches of one partition share on all ranks: inboxes for distances that fell.

    Collective. For any partition.

    Parameters
    ----------
    stamps : (proxies,) int32
    """

    def __init__(self, part: Partition, sync: Sync, weights: Any, dtype: np.dtype, stamps: Any) -> None:
        assert sync.peers is not None
        self._peers, self._dtype, self._weights = sync.peers, dtype, weights
        self._proxies = proxies_of(part, sync.plan, sync.comm)
        ranks, mirrors = sync.comm.size, np.diff(part.mirror_starts)
        push = mirrors_have_rows(part, sync.comm)
        most_in = np.array(self._proxies.sizes) + push * mirrors  # entries at once, from each rank and to each
        most_out = mirrors + push * np.array(self._proxies.sizes)
        inboxes, outward = ([_power_of_two(2 * most) for most in each.tolist()] for each in (most_in, most_out))
        lines = 8 * ranks * (2 * ranks + 1)
        self._arrays = PeerArrays(
            sync.peers, [lines, *(4 * size for size in inboxes), *(dtype.itemsize * size for size in inboxes)]
        )
        self._capacity = cp.asarray(outward, np.int64), cp.asarray(inboxes, np.int64)
        self._most, self._state = cp.asarray(most_out), cp.zeros(STATE_BYTES, np.uint8)
        self._marks = cp.zeros(3, np.uint64)
        at_master = np.concatenate(all_to_all(sync.comm, [np.asarray(lids) for lids in sync.plan.any.masters]))
        self._size = part.num_proxies
        self._graph = self._size, int(push), part.offsets, part.targets, cp.asarray(at_master)
        self._state_of_nodes = no_bits(self._size), no_bits(3 * (self._size + 63)), stamps
        self._map = part.lid_map.index, part.lid_map.table
        kernels = load(PEERS, VALUE=c_type(dtype), WEIGHT=c_type(weights.dtype))
        self._kernel = kernels.resident("relax_peers")

    def run(self, source: int, far: Any, delta: Any, queue: Queue, rounds: Any) -> Any:
        """Distances of all proxies, stale on mirrors. Collective.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        mail, inboxes = self._arrays.addresses(self._find)
        values = cp.empty(self._size, self._dtype)
        local = struct(*self._graph, values, *self._state_of_nodes)
        self._peers.run(
            self._kernel, source, *self._map, local, self._weights, far, delta, queue.struct, self._peers.struct,
            self._proxies.struct, mail, inboxes, self._marks, rounds,
        )  # fmt: skip
        return values

    def _find(self) -> tuple[Struct, Struct]:
        """Addresses of the lines and of the inboxes."""
        arrays, nodes, values = self._arrays, 1, 1 + self._peers.comm.size
        mail = struct(arrays.of_all(0), self._state, *self._capacity, self._most)
        inboxes = struct(arrays.for_me(nodes), arrays.for_me(values), arrays.from_all(nodes), arrays.from_all(values))
        return mail, inboxes


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()
