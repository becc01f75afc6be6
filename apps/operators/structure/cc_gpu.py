"""Connected components on the GPU: see interfaces.py; the kernels are in cc.cuh and trees.cuh."""

import functools
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.frontier_gpu import Queue, threads_for
from cusp.kernels.cuda import Struct, c_type, load, many_threads, pinned, struct
from cusp.partition import Partition
from gluon.peers.link_gpu import Link
from gluon.sync import Sync

CC, TREES = "cusp/apps/operators/structure/cc.cuh", "cusp/apps/operators/structure/trees.cuh"
SUMS = 3  # of enum Sum in trees.cuh
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


def link_others(left_out: Any, both_ways: bool, offsets: Any, targets: Any, parents: Any, queue: Queue) -> None:
    kernels, size = _cc(np.int32), parents.size
    kernels.queue_others(threads_for(size), left_out, size, offsets, parents, queue.struct)
    kernels.link_queue(many_threads(), left_out, int(both_ways), queue.struct, targets, parents)


def flatten(parents: Any) -> None:
    _cc(np.int32).flatten(threads_for(parents.size), parents.size, parents)


def lower_roots(parents: Any, values: Any, updated: Any) -> None:
    _cc(values.dtype).lower_roots(threads_for(values.size), values.size, parents, values, updated)


def spread_roots(parents: Any, values: Any, updated: Any) -> None:
    _cc(values.dtype).spread_roots(threads_for(values.size), values.size, parents, values, updated)


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


class Forest:
    """The trees of one rank or of several: the kernel is in trees.cuh. Collective."""

    def __init__(self, part: Partition, sync: Sync) -> None:
        self._part, words = part, 8 * part.num_proxies
        elsewhere = [] if sync.comm.size == 1 else [words, 4 * part.num_proxies]
        self._link = Link(part, sync, cp.zeros(1, np.uint64), [words, words, *elsewhere])
        self._arrays = 2 + len(elsewhere)
        self._sums, self._found = cp.zeros(SUMS, np.uint64), pinned(3, np.uint64)
        self._kernel = self._link.load(TREES, "unite_trees", 2, VALUE="int")

    def unite(self, parents: cp.ndarray, left_out: cp.ndarray) -> tuple[int, int, cp.ndarray, dict[str, int]]:
        part, component = self._part, cp.empty(self._part.num_masters, np.int64)
        nodes = struct(parents.size, part.rank, part.num_masters, parents, part.gids, left_out)
        self._link.run(self._kernel, self._find, nodes, self._sums, component, self._found.ctypes.data)
        cp.cuda.get_current_stream().synchronize()
        wrong, components, largest = self._found.tolist()
        return wrong, int(part.num_ranks > 1), component, {"components": components, "largest": largest}

    def _find(self) -> tuple[Struct]:
        """Struct Trees of trees.cuh."""
        arrays = [address for number in range(self._arrays) for address in self._link.array(number)]
        return (struct(*arrays, *[None] * (8 - len(arrays))),)


def plan_trees(part: Partition, sync: Sync) -> Forest | None:
    return Forest(part, sync) if sync.comm.size == 1 or (sync.peers and not sync.asynchronous) else None


@functools.cache
def _cc(dtype: Any) -> Any:
    return load(CC, VALUE=c_type(dtype))
