"""Breadth-first search on the GPUs of several ranks, one kernel on each: bfs.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from apps.operators.frontier_gpu import Queue, require_countable
from cusp.kernels.cuda import Struct, c_type, load, struct
from cusp.partition import Partition
from gluon.peers.lists_gpu import PeerArrays, mirrors_have_rows, proxies_of
from gluon.sync import Sync

PEERS = "apps/operators/traversal/peers/bfs.cuh"
EDGE_BITS = 33  # of a sum of edges in a counter, one less than in frontier.cuh


class PeerSearch:
    """What searches of one partition share on all ranks: bitmaps that partners store into, and memory for sent nodes.

    Collective. ``rows``, ``in_edges`` and ``first`` are those of :class:`~apps.operators.traversal.bfs_gpu.BfsPlan`.
    """

    def __init__(self, part: Partition, sync: Sync, rows: int, in_edges: Any, first: Any) -> None:
        assert sync.peers is not None
        require_countable(part.num_masters, 0)
        self._peers, self._part, self._words = sync.peers, part, -(-part.num_proxies // 64) * 2
        self._proxies = proxies_of(part, sync.plan, sync.comm)
        entries = [4 * size for size in self._proxies.sizes]
        parents = [2 * size for size in entries]
        bits = [2 * 4 * -(-size // 32) for size in self._proxies.sizes]
        self._arrays = PeerArrays(sync.peers, [4 * self._words, 4 * self._words, *entries, *parents, *bits])
        self._sent = cp.zeros(sync.comm.size, np.uint64)
        shift = max(0, part.num_edges.bit_length() - EDGE_BITS)
        self._graph = struct(
            part.num_proxies, part.offsets, part.targets, rows, *in_edges, first, part.gids, part.degrees, shift
        )
        (nodes,) = sync.total(int(cp.count_nonzero(part.degrees)))
        self._whole = struct(max(nodes, 1), part.num_edges >> shift, int(mirrors_have_rows(part, sync.comm)))
        self._kernel = load(PEERS, VALUE=c_type(np.int32)).resident("bfs_peers")

    def run(
        self, source: int, direction: int, alpha: int, beta: int, with_parents: bool, queue: Queue, levels: Any
    ) -> tuple[Any, Any]:
        """Hops and parents of this rank's masters; parents are None if not wanted. Writes the number of levels.

        Collective.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        part = self._part
        bitmaps, post = self._arrays.addresses(self._find)
        known = max(part.num_proxies, 1) if with_parents else part.num_masters  # no null pointer without nodes
        hops, parents = cp.empty(known, np.int32), cp.empty(known, np.int64) if with_parents else None
        kept = cp.empty(known, np.int32) if with_parents else None
        self._peers.run(
            self._kernel, part.lid_map.index, part.lid_map.table, source, self._graph, self._whole, direction, alpha,
            beta, struct(hops, parents, kept), *bitmaps, self._words, queue.struct, self._peers.struct,
            self._proxies.struct, post, levels,
        )  # fmt: skip
        return hops[: part.num_masters], None if parents is None else parents[: part.num_masters]

    def _find(self) -> tuple[tuple[Any, Any], Struct]:
        """Addresses of the bitmaps and of what is sent."""
        arrays, ranks = self._arrays, self._peers.comm.size
        entries, parents, bits = (2 + ranks * kind for kind in range(3))
        post = struct(
            arrays.for_me(entries), arrays.from_all(entries), arrays.for_me(parents), arrays.from_all(parents),
            self._sent, arrays.for_me(bits), arrays.from_all(bits),
        )  # fmt: skip
        return (arrays.of_all(0), arrays.of_all(1)), post
