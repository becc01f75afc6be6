"""Betweenness centrality on the CPU: see interfaces.py."""

from typing import Any

import numpy as np

from cusp.kernels.bits import unsigned
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from gluon.device_cpu import set_bit

DENSE = 10  # edges per node: with 6 a sweep is 6 times as fast as level by level, with 19 as fast, with 28 a third
SMALL = 1 << 23  # edges of a graph of which each rank may have a copy
AT_ONCE = 1 << 24  # edges of the searches in one call that Ctrl-C must wait for


def by_level(levels: Any, deepest: int) -> tuple[Any, list[int]]:
    lids, bounds = _by_level(levels, deepest)
    return lids, bounds.tolist()


@njit(cache=True, nogil=True)
def _by_level(levels, deepest):  # type: ignore[no-untyped-def]
    bounds = np.zeros(deepest + 2, np.int64)
    for lid in range(levels.size):
        if levels[lid] >= 0:
            bounds[levels[lid] + 1] += 1
    for level in range(deepest + 1):
        bounds[level + 1] += bounds[level]
    place = bounds[:-1].copy()
    lids = np.empty(bounds[-1], np.int32)
    for lid in range(levels.size):
        level = levels[lid]
        if level >= 0:
            lids[place[level]] = lid
            place[level] += 1
    return lids, bounds


@njit(cache=True, nogil=True)
def mark(first, last, lids, updated):  # type: ignore[no-untyped-def]
    for place in range(first, last):
        set_bit(updated, lids[place])


@njit(cache=True, nogil=True)
def give_paths(first, last, masters, lids, sums, paths, updated):  # type: ignore[no-untyped-def]
    for place in range(first, last):
        lid = lids[place]
        if lid < masters:
            paths[lid] = sums[lid]
            sums[lid] = 0
            set_bit(updated, lid)


@njit(cache=True, nogil=True)
def give_shares(first, last, masters, lids, paths, sums, centrality, shares, updated):  # type: ignore[no-untyped-def]
    for place in range(first, last):
        lid = lids[place]
        if lid < masters:
            centrality[lid] += paths[lid] * sums[lid]
            shares[lid] = 1 / paths[lid] + sums[lid]
            sums[lid] = 0
            set_bit(updated, lid)


def sweeps(part: Partition, ranks: int, sources: int) -> bool:
    """With many edges per node, levels are few, and whole rows of one are summed faster than edge by edge."""
    return part.num_edges <= SMALL and part.num_edges < DENSE * part.num_nodes


def sweep(offsets: Any, targets: Any, sources: Any, centrality: np.ndarray) -> tuple[int, int]:
    levels, size, step = 0, offsets.size - 1, max(1, AT_ONCE // max(targets.size, 1))
    hops, queue = np.full(size, -1, np.int32), np.empty(size + 1, np.uint32)
    paths, shares = np.zeros(size), np.zeros(size)
    offsets, targets = unsigned(offsets, targets)
    for first in range(0, sources.size, step):
        some = sources[first : first + step]
        done, more = _sweep(some, offsets, targets, hops, queue, paths, shares, centrality)
        levels += more
        if done < some.size:
            return levels, first + done
    return levels, -1


@njit(cache=True, nogil=True)
def _sweep(sources, offsets, targets, hops, queue, paths, shares, centrality):  # type: ignore[no-untyped-def]
    """Forth and back through a queue of nodes by level; returns how many sources were added, and their levels.

    ``hops`` are -1 and ``paths`` 0 before and after it. Places are unsigned.
    """
    levels, one = 0, np.uint64(1)
    for number in range(sources.size):
        tail = _count_paths(sources[number], offsets, targets, hops, queue, paths)
        levels += hops[queue[tail - 1]]
        most = 0.0
        for place in range(tail - 1, -1, -1):
            node = queue[place]
            total, beyond = 0.0, hops[node] + 1
            for edge in range(offsets[node], offsets[node + one]):
                share = shares[targets[edge]]
                total += share if hops[targets[edge]] == beyond else 0.0
            shares[node] = 1 / paths[node] + total
            most = max(most, paths[node])
            if place > 0:
                centrality[node] += paths[node] * total
        for place in range(tail):
            hops[queue[place]], paths[queue[place]] = -1, 0
        if most == np.inf:
            return number, levels
    return sources.size, levels


@njit(cache=True, nogil=True)
def _count_paths(source, offsets, targets, hops, queue, paths):  # type: ignore[no-untyped-def]
    """Hops and numbers of shortest paths of all nodes that are reached, which come into the queue; returns how many.

    Without branches on what is read from memory, so that it can be read ahead.
    """
    hops[source], paths[source], queue[0] = 0, 1, source
    head, tail, one = np.uint64(0), np.uint64(1), np.uint64(1)
    while head < tail:
        node = queue[head]
        head += one
        beyond, here = hops[node] + 1, paths[node]
        for edge in range(offsets[node], offsets[node + one]):
            target = targets[edge]
            old = hops[target]
            new = beyond if old < 0 else old
            hops[target] = new
            paths[target] += here if new == beyond else 0.0
            queue[tail] = target
            tail += np.uint64(old < 0)
    return np.int64(tail)
