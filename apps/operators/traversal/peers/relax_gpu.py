"""Relaxing by priority on the GPUs of several ranks, one kernel on each: relax.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.expressions.edges_gpu import kernel_text
from cusp.apps.operators.expressions.interfaces import Ordered
from cusp.apps.operators.expressions.relaxer_gpu import key_of, ordered_text, relax_defines, width_in
from cusp.apps.operators.frontier_gpu import blocks_for, make_queue
from cusp.kernels.cuda import Struct, load, struct
from cusp.partition import Partition
from cusp.runtime.exchange import all_to_all
from gluon.device_gpu import no_bits
from gluon.peers.lists_gpu import PeerArrays, mirrors_have_rows, proxies_of
from gluon.sync import Sync

PEERS = "cusp/apps/operators/traversal/peers/relax.cuh"
MEMORY = (
    "Nodes nodes, Ties ties, Key delta, Queues queues, Peers peers, Proxies proxies, Mail mail, Inboxes inboxes, "
    "u64* marks, i64* rounds"
)
STATE_BYTES = 1024  # at least those of struct MailState in gluon/kernels/mail.cuh


class PeerRelaxing:
    """An operator on one partition, and what its runs share on all ranks: inboxes for values that changed.

    Collective. For any partition.
    """

    def __init__(self, part: Partition, sync: Sync, ordered: Ordered) -> None:
        assert sync.peers is not None
        self._peers, dtype = sync.peers, ordered.label.values.dtype
        self._given = [None if each is ordered.label.values else each for each in ordered.given]
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
        size = part.num_proxies if push else part.num_masters
        self._queue, self._stamps = make_queue(part), cp.zeros(part.num_proxies, np.int32)
        self._rows = size, ordered.offsets, ordered.columns
        self._ties = struct(
            int(push), cp.asarray(at_master), no_bits(3 * (part.num_proxies + 63)), -(-part.num_proxies // 32)
        )
        self._key = key_of(ordered.edges, ordered.priority)
        kernels = load(PEERS, peers_text(ordered), **relax_defines(ordered.edges, ordered.priority))
        self._kernel = kernels.resident("relax_peers_of", blocks_for(part))

    def run(self, values: Any, pending: Any, delta: float, rounds: Any) -> None:
        """Relax pending nodes until none is left on any rank; values of mirrors are stale then. Collective.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        mail, inboxes = self._arrays.addresses(self._find)
        nodes = struct(*self._rows, values, pending, self._stamps, None, None)
        given = [values if each is None else each for each in self._given]
        self._peers.run(
            self._kernel, nodes, self._ties, width_in(self._key, delta), self._queue.struct, self._peers.struct,
            self._proxies.struct, mail, inboxes, self._marks, rounds, *given,
        )  # fmt: skip

    def _find(self) -> tuple[Struct, Struct]:
        """Addresses of the lines and of the inboxes."""
        arrays, nodes, values = self._arrays, 1, 1 + self._peers.comm.size
        mail = struct(arrays.of_all(0), self._state, *self._capacity, self._most)
        inboxes = struct(arrays.for_me(nodes), arrays.for_me(values), arrays.from_all(nodes), arrays.from_all(values))
        return mail, inboxes


def peers_text(ordered: Ordered) -> str:
    """What follows relax.cuh in the source."""
    edges = ordered.edges
    return ordered_text(edges, ordered.priority) + kernel_text(
        edges, "relax_peers_of", "relax_peers", MEMORY, "512, RESIDENT"
    )


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()
