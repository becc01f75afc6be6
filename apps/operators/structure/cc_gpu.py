"""Connected components on the GPU: see interfaces.py; the kernels are in cc.cuh."""

import functools
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.frontier_gpu import queue_of, threads_for
from cusp.apps.operators.interfaces import kept_with
from cusp.apps.operators.structure.interfaces import Unite
from cusp.kernels.arrays import total
from cusp.kernels.cuda import Struct, c_type, load, many_threads, pinned, struct, sums_of
from cusp.partition import Partition
from gluon.peers.link_gpu import Link
from gluon.sync import Sync

CC = "cusp/apps/operators/structure/cc.cuh"
PEERS = "cusp/apps/operators/structure/peers/cc.cuh"
SUMS = 4 + 32  # of enum Sum in peers/cc.cuh, and MOST_PEERS
SAMPLE = 512  # as in cc.cuh
LARGE = 4  # as in cc_cpu.py


def link_first(part: Partition, edges: int, rare: int, offsets: Any, targets: Any) -> tuple[Any, Any]:
    kernels, nodes, parents = _cc(np.int32), _nodes(part), cp.empty(part.num_proxies, np.int32)
    threads = threads_for(parents.size)
    kernels.link_to_first(threads, nodes, offsets, targets, parents)
    kernels.shorten(threads, nodes, parents)
    large = most_frequent(LARGE, parents, part.num_linked)
    kernels.link_next(threads, edges, large, nodes, offsets, targets, parents)
    return parents, most_frequent(rare, parents, part.num_linked, large)


def most_frequent(rare: int, parents: Any, size: int | None = None, known: Any = None) -> Any:
    """Of the first nodes; ``known`` is what was the root of most before some trees were united, or -1 if none was."""
    most = cp.empty(1, np.int32)
    known = np.uint64(0) if known is None else known
    size = parents.size if size is None else size
    _cc(np.int32).most_frequent(SAMPLE, size, rare, parents, known, most, block=SAMPLE)
    return most


def link_others(part: Partition, left_out: Any, both_ways: bool, parents: Any) -> None:
    kernels, queues = _cc(np.int32), queue_of(part, part.offsets).struct
    kernels.queue_others(threads_for(parents.size), left_out, _nodes(part), part.offsets, parents, queues)
    kernels.link_queue(many_threads(), left_out, int(both_ways), queues, part.targets, parents)


def flatten(parents: Any) -> None:
    _cc(np.int32).flatten(threads_for(parents.size), parents.size, parents)


def large_tree(parents: Any, values: Any) -> tuple[Any, int]:
    lowest, size = sums_of(1), parents.size
    inside = cp.zeros(-(-size // 64) * 64, bool)
    if size == 0:
        return inside, -1
    large = most_frequent(LARGE, parents)
    given = size, large, parents, values, inside, lowest.counters, lowest.address
    _cc(values.dtype).find_inside(threads_for(size), *given)
    return inside, int((~np.uint64(lowest.read()[0])).astype(np.int64))


def lower_roots(parents: Any, values: Any, lowered: Any, updated: Any) -> None:
    some = np.uint64(0) if lowered is None else lowered
    _cc(values.dtype).lower_roots(threads_for(values.size), values.size, parents, values, some, updated)


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
    kernels, size, linked, sums = _cc(dtype), parents.size, part.num_linked, sums_of(2)
    highest, members, component = cp.zeros(linked, dtype), cp.zeros(linked, np.int32), cp.empty(size, np.int64)
    given = _nodes(part), part.num_nodes, part.gids
    kernels.gather_members(threads_for(linked), *given, left_out, parents, highest, members)
    kernels.name_members(threads_for(size), *given, parents, highest, members, component, sums.counters, sums.address)
    components, largest = sums.read()
    sync.count_peers(0)
    return 0, 0, component, {"components": sync.total(components)[0], "largest": sync.highest(largest)}


class PeerForest:
    """The trees of all ranks of one partition, in memory that partners reach. Collective."""

    def __init__(self, part: Partition, sync: Sync) -> None:
        words, lids = 8 * part.num_proxies, 4 * part.num_proxies
        bits = 4 * (part.num_proxies // 32 + 1)
        self._part, self._link = part, Link(part, sync, None, [words, words, words, lids, bits])
        self._own = cp.empty(part.num_masters // 32 + 1, np.uint32)
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
            self._kernel, self._trees, _nodes(self._part), parents, self._part.gids, left_out, self._sums, component,
            self._found.ctypes.data,
        )  # fmt: skip
        sync.count_peers(1)
        wrong, components, largest = self._found.tolist()
        return wrong, 1, component, {"components": components, "largest": largest}

    def _trees(self) -> tuple[Struct]:
        """Struct Trees of peers/cc.cuh."""
        return (struct(*(self._link.array(number)[1] for number in range(5)), self._own),)


def plan_trees(part: Partition, sync: Sync, way: str) -> Unite:
    queue_of(part, part.offsets)  # memory that runs share, too
    return functools.partial(_unite_alone, part) if way == "whole" else PeerForest(part, sync).unite


def _nodes(part: Partition) -> Any:
    """Struct Nodes of cc.cuh."""
    return kept_with(
        part, "nodes", lambda: cp.asarray(np.array([part.num_linked, part.num_masters, part.num_proxies], np.int64))
    )


@functools.cache
def _cc(dtype: Any) -> Any:
    return load(CC, VALUE=c_type(dtype))
