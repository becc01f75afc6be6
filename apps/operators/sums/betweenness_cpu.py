"""Betweenness centrality on the CPU: see interfaces.py."""

from typing import Any, NamedTuple

import numpy as np

from cusp.apps.operators.lanes_cpu import in_lanes
from cusp.apps.operators.traversal.alone_cpu import ONE, Search, make_search, search
from cusp.kernels.bits import unsigned
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from gluon.device_cpu import set_bit

DENSE = 10  # edges per node: with 6 a sweep is 6 times as fast as level by level, with 19 as fast, with 28 a third
SMALL = 1 << 23  # edges of a graph of which each rank may have a copy


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
    dense = part.weights is None and part.num_edges >= DENSE * part.num_nodes
    return part.num_edges <= SMALL and not dense


class Sweep(NamedTuple):
    """Arrays of a sweep, one entry for each node, and its search.

    Attributes
    ----------
    search : Search
    hops : int32
        The most edges of a shortest path; -1 before and after it.
    paths, shares : float64
        0 before and after it.
    """

    search: Search
    hops: np.ndarray
    paths: np.ndarray
    shares: np.ndarray


def _make_sweep(graph: Any) -> Sweep:
    state, size = make_search(graph), graph.offsets.size - 1
    hops = state.lengths if graph.weights is None else np.full(size, -1, np.int32)
    return Sweep(state, hops, np.zeros(size), np.zeros(size))


def sweep(graph: Any, sources: Any, centrality: np.ndarray, on_edges: np.ndarray | None = None) -> tuple[int, int]:
    offsets, targets = unsigned(graph.offsets, graph.targets)

    def add(given: Sweep, numbers: np.ndarray, sums: list[np.ndarray]) -> tuple[int, int]:
        nodes, of_edges = sums if len(sums) == 2 else (*sums, None)
        some = sources[numbers].astype(np.uint64)
        done, levels = _sweep(some, offsets, targets, graph.weights, given, nodes, of_edges)
        return levels, sources.size if done == some.size else int(numbers[done])

    totals = [centrality] if on_edges is None else [centrality, on_edges]
    found = in_lanes(sources.size, targets.size, totals, lambda: _make_sweep(graph), add)
    wrong = min((wrong for _, wrong in found), default=sources.size)
    return sum(levels for levels, _ in found), -1 if wrong == sources.size else wrong


@njit(cache=True, nogil=True)
def _sweep(sources, offsets, targets, weights, sweep, centrality, on_edges):  # type: ignore[no-untyped-def]
    """Forth through the nodes by length, and back; returns how many sources were added, and their levels.

    Places are unsigned.
    """
    levels, state, hops, paths, shares = 0, sweep.search, sweep.hops, sweep.paths, sweep.shares
    order, lengths = state.order, state.lengths
    for number in range(sources.size):
        tail = search(sources[number], offsets, targets, weights, state, paths, hops)
        least, most, deepest = 1.0, 1.0, 0
        for place in range(tail):
            node = order[place]
            least, most, deepest = min(least, paths[node]), max(most, paths[node]), max(deepest, hops[node])
        counted = least >= 1 and most < np.inf
        levels += deepest
        for place in range(tail - 1 if counted else -1, -1, -1):
            node = order[place]
            total, here = 0.0, lengths[node]
            for edge in range(offsets[node], offsets[node + ONE]):
                if weights is None:
                    beyond = here + 1
                else:
                    beyond = here + weights[edge]
                share = shares[targets[edge]] if (lengths[targets[edge]] == beyond) & (beyond > here) else 0.0
                total += share
                if on_edges is not None:
                    on_edges[edge] += paths[node] * share
            shares[node] = 1 / paths[node] + total
            if place > 0:
                centrality[node] += paths[node] * total
        for place in range(tail):
            node = order[place]
            hops[node], lengths[node], paths[node] = -1, state.far, 0
        if not counted:
            return number, levels
    return sources.size, levels
