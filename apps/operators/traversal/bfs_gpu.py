"""Breadth-first search on the GPU: see interfaces.py; the kernels are in bfs.cuh."""

import functools
from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.frontier_gpu import FRONTIER, blocks_for, queue_for, queue_of, require_countable, threads_for
from cusp.kernels.arrays import total
from cusp.kernels.cuda import Struct, c_type, load, many_threads, struct, sums_of
from cusp.partition import Partition
from gluon.label import Label
from gluon.peers.link_gpu import Link
from gluon.sync import Sync

BFS = "cusp/apps/operators/traversal/bfs.cuh"
DIRECTIONS = {"auto": 0, "push": 1, "pull": 2}
EDGE_BITS = 33  # of a sum of edges in a counter of several ranks, one less than in frontier.cuh


def frontier_size(updated: Any, degrees: Any) -> tuple[int, int]:
    sums, size = sums_of(2), degrees.size
    load(FRONTIER).frontier_size(threads_for(size), updated, size, degrees, sums.counters, sums.address)
    nodes, edges = sums.read()
    return nodes, edges


def bfs_push(label: Label, frontier: Any, offsets: Any, targets: Any, gid_mask: int, level: Any, plan: None) -> None:
    part, values, kernels = label.part, label.values, _bfs(label.values.dtype)
    queues, level = queue_of(part, offsets).struct, values.dtype.type(level)
    kernels.queue_bits(threads_for(values.size), frontier, values.size, offsets, queues)
    kernels.bfs_push(many_threads(), queues, targets, part.gids, int(gid_mask), level, values, label.updated)


def bfs_pull(label: Label, frontier: Any, offsets: Any, sources: Any, gid_mask: int, level: Any, plan: None) -> None:
    values, level = label.values, label.values.dtype.type(level)
    _bfs(values.dtype).bfs_pull(
        threads_for(values.size), frontier, values.size, offsets, sources, label.part.gids, int(gid_mask), level,
        label.identity, values, label.updated,
    )  # fmt: skip


@dataclass(frozen=True)
class BfsPlan:
    """What breadth-first searches of one partition share.

    Attributes
    ----------
    link : Link
        Its arrays are two bitmaps of proxies.
    kernel : function
    shared : tuple
        Members of struct Plan of bfs.cuh, without the bits.
    pulls : bool
        Whether there is a way to pull.
    ahead : bool
        Whether several ranks run ahead of each other, where levels are many and narrow.
    """

    link: Link
    kernel: Any
    shared: tuple[Any, ...]
    words: int
    pulls: bool
    ahead: bool

    def find(self) -> tuple[Struct]:
        """Struct Plan of bfs.cuh."""
        link = self.link
        return (struct(*link.array(0), *link.array(1), self.words, *link.box(2), *self.shared),)


def plan_bfs(part: Partition, in_edges: Any, sync: Sync, way: str) -> BfsPlan | None:
    return None if way == "rounds" else plan_call(part, in_edges, sync)


def plan_call(part: Partition, in_edges: Any, sync: Sync) -> BfsPlan:
    """What whole searches share. Collective."""
    rows, first = part.num_proxies, cp.full(1, -1, np.int32)
    if in_edges:
        offsets, sources = in_edges
        filled = offsets[1:] > offsets[:-1]
        rows = int(cp.flatnonzero(filled)[-1]) + 1 if total(filled) else 0
        first = cp.where(filled[:rows], sources[cp.minimum(offsets[:rows], max(sources.size - 1, 0))], -1)
        first = first.astype(np.int32)
        require_countable(rows, part.num_local_edges)  # a pull counts nodes without out-edges, too
    queue, among_peers = queue_for(part, part.offsets), sync.peers is not None
    push = among_peers and not sync.plan.src.empty
    blocks = 2 if push else blocks_for(part)
    ahead = among_peers and blocks == 1
    link = Link(
        part, sync, queue.progress, 2 * [4 * _words(part)],
        lambda size: [4 * size * (1 + ahead), 8 * size, 8 * -(-size // 32)],
    )  # fmt: skip
    nodes, shift = rows, 0
    if not link.alone:
        require_countable(part.num_masters, 0)
        (nodes,) = sync.total(total(part.degrees > 0))
        shift = max(0, part.num_edges.bit_length() - EDGE_BITS)
    ends = in_edges or (part.offsets, part.targets)
    graph = struct(part.num_proxies, part.offsets, part.targets, rows, *ends, first, part.gids, part.degrees, shift)
    kernel = link.load(BFS, "search", blocks, VALUE="int")
    whole = struct(max(nodes, 1), part.num_edges >> shift, int(push))
    shared = (part.lid_map.index, part.lid_map.table, graph, whole, queue.struct)
    return BfsPlan(link, kernel, shared, _words(part), in_edges is not None, ahead)


def bfs_drain(
    part: Partition, plan: BfsPlan, source: int, direction: str, alpha: int, beta: int, with_parents: bool
) -> tuple[Any, Any, Any]:
    levels, way = cp.empty(1, np.int64), DIRECTIONS[direction if plan.pulls else "push"]
    # no null pointer without nodes
    known = max(part.num_proxies, 1) if with_parents or plan.ahead else part.num_masters
    hops, nothing = cp.empty(known, np.int32), np.uint64(0)
    parents = cp.empty(known, np.int64) if with_parents else None
    kept = cp.empty(known, np.int32) if with_parents and not plan.link.alone else nothing
    stamps = cp.empty(known, np.int32) if plan.ahead and not with_parents else nothing
    plan.link.run(
        plan.kernel, plan.find, int(source), way, alpha, beta, hops, nothing if parents is None else parents, kept,
        stamps, levels,
    )  # fmt: skip
    return hops[: part.num_masters], None if parents is None else parents[: part.num_masters], levels[0]


@functools.cache
def _bfs(dtype: Any) -> Any:
    return load(BFS, VALUE=c_type(dtype))


def _words(part: Partition) -> int:
    return -(-part.num_proxies // 64) * 2
