"""Breadth-first search on the GPU: see interfaces.py; the kernels are in bfs.cuh."""

import functools
from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np

from apps.operators.frontier_gpu import Queue, blocks_for, make_queue, require_countable, threads_for
from apps.operators.traversal.peers.bfs_gpu import PeerSearch
from cusp.kernels.cuda import c_type, load, many_threads
from cusp.partition import Partition
from gluon.sync import Sync

BFS = "apps/operators/traversal/bfs.cuh"
DIRECTIONS = {"auto": 0, "push": 1, "pull": 2}


def bfs_push(
    frontier: Any, offsets: Any, targets: Any, gids: Any, gid_mask: int, level: Any, unreached: Any, values: Any,
    updated: Any, queue: Queue,
) -> None:  # fmt: skip
    kernels = _bfs(values.dtype)
    kernels.queue_bits(threads_for(values.size), frontier, values.size, offsets, queue.struct)
    level = values.dtype.type(level)
    kernels.bfs_push(many_threads(), queue.struct, targets, gids, int(gid_mask), level, values, updated)


def bfs_pull(
    frontier: Any, offsets: Any, sources: Any, gids: Any, gid_mask: int, level: Any, unreached: Any, values: Any,
    updated: Any, queue: Queue,
) -> None:  # fmt: skip
    size, number = values.size, values.dtype.type
    _bfs(values.dtype).bfs_pull(
        threads_for(size), frontier, size, offsets, sources, gids, int(gid_mask), number(level), number(unreached),
        values, updated,
    )  # fmt: skip


@dataclass(frozen=True)
class BfsPlan:
    """What breadth-first searches of one partition share.

    Attributes
    ----------
    rows : int
        Nodes from this one on have no in-edges.
    in_edges : (offsets, sources), or None if there is no way to pull
    first : (rows,) int32
        First in-neighbour of each node, -1 where there is none.
    bitmaps : uint32 words
    peers : PeerSearch or None
        What several ranks need.
    """

    queue: Queue
    rows: int
    in_edges: Any
    first: Any
    bitmaps: Any
    peers: PeerSearch | None


def plan_bfs(part: Partition, in_edges: Any, sync: Sync) -> BfsPlan:
    rows, first = part.num_proxies, cp.full(1, -1, np.int32)
    if in_edges:
        offsets, sources = in_edges
        filled = offsets[1:] > offsets[:-1]
        rows = int(cp.flatnonzero(filled)[-1]) + 1 if bool(filled.any()) else 0
        first = cp.where(filled[:rows], sources[cp.minimum(offsets[:rows], max(sources.size - 1, 0))], -1)
        first = first.astype(np.int32)
        require_countable(rows, part.num_local_edges)  # a pull counts nodes without out-edges, too
    peers = PeerSearch(part, sync, rows, in_edges or (part.offsets, part.targets), first) if sync.peers else None
    bitmaps = cp.empty(0 if peers else 2 * _words(part), np.uint32)
    return BfsPlan(make_queue(part), rows, in_edges, first, bitmaps, peers)


def bfs_drain(
    part: Partition, plan: BfsPlan, source: int, direction: str, alpha: int, beta: int, with_parents: bool
) -> tuple[Any, Any, Any]:
    queue, levels = plan.queue, cp.empty(1, np.int64)
    way = DIRECTIONS[direction if plan.in_edges else "push"]
    if plan.peers:
        return *plan.peers.run(int(source), way, alpha, beta, with_parents, queue, levels), levels[0]
    hops = cp.empty(part.num_masters, np.int32)
    parents = cp.empty(part.num_masters if with_parents else 0, np.int64)
    if not part.has_node(source):
        hops.fill(-1)
        parents.fill(-1)
        return hops, parents, 0
    _bfs(np.int32).resident("bfs_drain", blocks_for(part))(
        part.lid_map.index, part.lid_map.table, int(source), part.num_proxies, plan.rows, part.num_edges, part.offsets,
        part.targets, *(plan.in_edges or (part.offsets, part.targets)), plan.first, way, alpha, beta, hops, part.gids,
        int(with_parents), parents, plan.bitmaps, _words(part), queue.struct, levels,
    )  # fmt: skip
    return hops, parents, levels[0]


@functools.cache
def _bfs(dtype: Any) -> Any:
    return load(BFS, VALUE=c_type(dtype))


def _words(part: Partition) -> int:
    return -(-part.num_proxies // 64) * 2
