"""Breadth-first search on the GPUs of several ranks, one kernel on each: bfs.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from apps.operators.frontier_gpu import Queue, require_countable
from cusp.kernels.cuda import c_type, load, struct
from cusp.partition import Partition
from cusp.runtime import watchdog
from gluon.peers.lists_gpu import PeerArrays, proxies_of
from gluon.sync import Sync

PEERS = "apps/operators/traversal/peers/bfs.cuh"
EDGE_BITS = 33  # of a sum of edges in a counter, one less than in frontier.cuh


class PeerSearch:
    """What searches of one partition share on all ranks: bitmaps that partners store into, and memory for sent nodes.

    Collective.
    """

    def __init__(self, part: Partition, sync: Sync) -> None:
        comm = sync.comm
        assert sync.peers is not None
        require_countable(part.num_masters, 0)
        self.peers, self.words = sync.peers, -(-part.num_proxies // 64) * 2
        self.proxies = proxies_of(part, sync.plan, comm)
        entries = [4 * size for size in self.proxies.sizes.tolist()]
        parents = [2 * size for size in entries]
        bits = [2 * 4 * -(-size // 32) for size in self.proxies.sizes.tolist()]
        self._arrays = PeerArrays(sync.peers, [4 * self.words, 4 * self.words, *entries, *parents, *bits])
        self._memory: Any = None  # that of the addresses
        self._sent = cp.zeros(comm.size, np.uint64)
        mirrors_push = bool(part.has_out[part.num_masters :].any())
        mirrors_push, nodes = sync.total(int(mirrors_push), int(cp.count_nonzero(part.degrees)))
        self.mirrors_push, self.nodes = int(mirrors_push > 0), max(nodes, 1)
        self.kernel = load(PEERS, VALUE=c_type(np.int32)).resident("bfs_peers")

    def run(
        self, part: Partition, source: int, rows: int, in_edges: Any, first: Any, direction: int, alpha: int,
        beta: int, hops: Any, parents: Any, queue: Queue, levels: Any,
    ) -> None:  # fmt: skip
        """Hops and, unless they are None on all ranks, parents of this rank's masters; and the number of levels.

        Collective.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        watchdog.step()
        if self._memory is not self.peers.memory:
            self._find()
        shift = max(0, part.num_edges.bit_length() - EDGE_BITS)
        graph = struct(
            part.num_proxies, part.offsets, part.targets, rows, *in_edges, first, part.gids, part.degrees, shift
        )
        if parents is not None and parents.size == 0:
            parents = self._sent  # not a null pointer: a rank without masters sends parents, too
        whole = struct(self.nodes, part.num_edges >> shift, self.mirrors_push)
        self.peers.run(
            self.kernel, part.lid_map.index, part.lid_map.table, source, graph, whole, direction, alpha, beta,
            struct(hops, parents), *self._bitmaps, self.words, queue.struct, self.peers.struct, self.proxies.struct,
            self._post, levels,
        )  # fmt: skip

    def _find(self) -> None:
        """Addresses, which change where the memory of the peers had to grow."""
        arrays, ranks, self._memory = self._arrays, self.peers.comm.size, self.peers.memory
        self._bitmaps = arrays.of_all(0), arrays.of_all(1)
        entries, parents, bits = (2 + ranks * kind for kind in range(3))
        self._post = struct(
            arrays.for_me(entries), arrays.from_all(entries), arrays.for_me(parents), arrays.from_all(parents),
            self._sent, arrays.for_me(bits), arrays.from_all(bits),
        )  # fmt: skip
