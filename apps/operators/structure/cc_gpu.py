"""Connected components on the GPU: see interfaces.py; the kernels are in cc.cuh."""

import functools
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.frontier_gpu import queue_of, threads_for
from cusp.apps.operators.structure.interfaces import Unite
from cusp.kernels.arrays import total
from cusp.kernels.cuda import c_type, load, many_threads, pinned, struct, sums_of
from cusp.partition import Partition
from gluon.peers.link_gpu import Link
from gluon.sync import Sync

CC = "cusp/apps/operators/structure/cc.cuh"
PEERS = "cusp/apps/operators/structure/peers/cc.cuh"
SUMS = 3  # of enum Sum in peers/cc.cuh
SAMPLE = 512  # as in cc.cuh
LARGE = 4  # as in cc_cpu.py


def link_first(edges: int, offsets: Any, targets: Any) -> Any:
    size = offsets.size - 1
    kernels, threads, parents = _cc(np.int32), threads_for(size), cp.empty(size, np.int32)
    kernels.link_to_first(threads, size, offsets, targets, parents)
    kernels.shorten(threads, size, parents)
    kernels.link_next(threads, edges, most_frequent(LARGE, parents), size, offsets, targets, parents)
    return parents


def most_frequent(rare: int, parents: Any) -> Any:
    most = cp.empty(1, np.int32)
    _cc(np.int32).most_frequent(SAMPLE, parents.size, rare, parents, most, block=SAMPLE)
    return most


def link_others(part: Partition, left_out: Any, both_ways: bool, parents: Any) -> None:
    kernels, size, queues = _cc(np.int32), parents.size, queue_of(part, part.offsets).struct
    kernels.queue_others(threads_for(size), left_out, size, part.offsets, parents, queues)
    kernels.link_queue(many_threads(), left_out, int(both_ways), queues, part.targets, parents)


def flatten(parents: Any) -> None:
    _cc(np.int32).flatten(threads_for(parents.size), parents.size, parents)


def lower_roots(parents: Any, values: Any, updated: Any) -> None:
    _cc(values.dtype).lower_roots(threads_for(values.size), values.size, parents, values, updated)


def spread_roots(parents: Any, values: Any, updated: Any) -> None:
    _cc(values.dtype).spread_roots(threads_for(values.size), values.size, parents, values, updated)


def name_components(labels: Any, gids: Any) -> tuple[Any, int]:
    names = labels.astype(np.int64)
    return names, total(names == gids)


def count_members(parents: Any, size: int) -> Any:
    members = cp.empty(parents.size, np.int32)
    _cc(np.int32).count_roots(threads_for(parents.size), parents.size, size, parents, members)
    _cc(np.int32).count_members(threads_for(size), size, parents, members)
    return members


def take_members(parents: Any, members: Any, lids: Any) -> tuple[Any, Any]:
    if lids.size == 0:  # a scan of nothing takes time, too
        return lids, members[:0]
    marks = cp.zeros(parents.size, bool)
    marks[parents[lids]] = True
    roots = cp.flatnonzero(marks & (members > 0))
    counts = members[roots]
    members[roots] = 0
    return roots, counts


def _unite_alone(part: Partition, sync: Sync, parents: Any, left_out: Any) -> tuple[int, int, Any, dict[str, int]]:
    """Nothing is left to unite."""
    dtype = np.dtype(np.int32 if part.num_nodes < 2**31 else np.int64)
    kernels, nodes, size, sums = _cc(dtype), part.num_nodes, parents.size, sums_of(2)
    highest, members, component = cp.zeros(size, dtype), cp.zeros(size, np.int32), cp.empty(size, np.int64)
    kernels.gather_members(threads_for(size), size, nodes, part.gids, left_out, parents, highest, members)
    kernels.name_members(
        threads_for(size), size, nodes, part.gids, parents, highest, members, component, sums.counters, sums.address
    )
    components, largest = sums.read()
    sync.count_peers(0)
    return 0, 0, component, {"components": sync.total(components)[0], "largest": sync.highest(largest)}


class PeerForest:
    """The trees of all ranks of one partition, in memory that partners reach. Collective."""

    def __init__(self, part: Partition, sync: Sync) -> None:
        words, lids = 8 * part.num_proxies, 4 * part.num_proxies
        self._part, self._link = part, Link(part, sync, None, [words, words, words, lids])
        self._sums, self._found = cp.zeros(SUMS, np.uint64), pinned(3, np.uint64)
        self._kernel = self._link.load(PEERS, "unite_ranks", 2, VALUE=c_type(np.int32))

    def unite(self, sync: Sync, parents: Any, left_out: Any) -> tuple[int, int, Any, dict[str, int]]:
        """See :meth:`~cusp.apps.operators.structure.interfaces.Cc.plan_trees`.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        component = cp.empty(self._part.num_masters, np.int64)
        self._link.run(
            self._kernel, lambda: (struct(*(self._link.array(number)[1] for number in range(4))),), parents.size,
            parents, self._part.gids, left_out, self._sums, component, self._found.ctypes.data,
        )  # fmt: skip
        sync.count_peers(1)
        wrong, components, largest = self._found.tolist()
        return wrong, 1, component, {"components": components, "largest": largest}


def plan_trees(part: Partition, sync: Sync, way: str) -> Unite:
    queue_of(part, part.offsets)  # memory that runs share, too
    return functools.partial(_unite_alone, part) if way == "whole" else PeerForest(part, sync).unite


@functools.cache
def _cc(dtype: Any) -> Any:
    return load(CC, VALUE=c_type(dtype))
