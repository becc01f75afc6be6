"""Breadth-first search on the GPUs of several ranks, one kernel on each: bfs_peers.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from apps.operators.frontier_gpu import Queue
from cusp.kernels.cuda import c_type, load, struct
from cusp.partition import Partition
from cusp.runtime import watchdog
from gluon.peers.lists_gpu import PeerArrays, proxies_of
from gluon.sync import Sync

PEERS = "apps/operators/traversal/bfs_peers.cuh"


class PeerSearch:
    """What searches of one partition share on all ranks: bitmaps that partners store into, and memory for sent nodes.

    Collective.
    """

    def __init__(self, part: Partition, sync: Sync) -> None:
        comm = sync.comm
        assert sync.peers is not None
        self.peers, self.words = sync.peers, -(-part.num_proxies // 64) * 2
        self.proxies = proxies_of(part, sync.plan, comm)
        posts = [4 * size for size in self.proxies.sizes.tolist()]
        marks = [2 * size for size in posts]
        bits = [2 * 4 * -(-size // 32) for size in self.proxies.sizes.tolist()]
        arrays = PeerArrays(comm, [4 * self.words, 4 * self.words, *posts, *marks, *bits])
        self.bitmaps = arrays.of_all(0), arrays.of_all(1)
        ranks = comm.size
        self.sent = cp.zeros(ranks, np.uint64)
        self.post = struct(
            arrays.for_me(2), arrays.from_all(2), arrays.for_me(2 + ranks), arrays.from_all(2 + ranks), self.sent,
            arrays.for_me(2 + 2 * ranks), arrays.from_all(2 + 2 * ranks),
        )  # fmt: skip
        self.arrays = arrays
        mirrors_push = bool(part.has_out[part.num_masters :].any())
        mirrors_push, nodes = sync.total(int(mirrors_push), int(cp.count_nonzero(part.degrees)))
        self.mirrors_push, self.nodes = int(mirrors_push > 0), max(nodes, 1)
        self.kernel = load(PEERS, VALUE=c_type(np.int32)).resident("bfs_peers")

    def run(
        self, part: Partition, source: int, rows: int, in_edges: Any, first: Any, direction: int, alpha: int,
        beta: int, hops: Any, parents: Any, queue: Queue, levels: Any,
    ) -> None:  # fmt: skip
        """Hops and, if there is memory for them, parents of this rank's masters; and the number of levels. Collective.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        watchdog.step()
        graph = struct(
            part.num_proxies, part.offsets, part.targets, rows, *in_edges, first, part.gids, part.degrees
        )
        whole = struct(self.nodes, part.num_edges, self.mirrors_push)
        self.kernel(
            part.lid_map.index, part.lid_map.table, source, graph, whole, direction, alpha, beta,
            struct(hops, parents if parents.size else None), *self.bitmaps, self.words, queue.struct, self.peers.struct,
            self.proxies.struct, self.post, levels,
        )  # fmt: skip
        self.peers.finish()
