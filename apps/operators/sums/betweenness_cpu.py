"""Betweenness centrality on the CPU: see interfaces.py."""

from typing import Any, NamedTuple

import numpy as np

from cusp.apps.operators.interfaces import SMALL
from cusp.apps.operators.lanes_cpu import in_lanes
from cusp.apps.operators.traversal.alone_cpu import (
    ONE,
    Heap,
    Levels,
    in_row_order,
    make_heap,
    make_levels,
    search_by_hops,
    search_by_length,
    sum_rows_of,
)
from cusp.kernels.bits import unsigned
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from gluon.device_cpu import set_bit

DENSE = 10  # edges per node: with more, levels are few
FEW = 16  # sources of a rank, which take as long as it takes to make a copy of a dense graph


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
    """Threads that each search by themselves wait for no others; but level by level a few sources need no copy."""
    long = part.weights is not None or part.num_edges < DENSE * part.num_nodes
    return part.num_edges <= SMALL and (long or sources >= FEW * ranks)


class Sums(NamedTuple):
    """What dependencies are made of, (nodes,) float64: 0 before and after a sweep, but for ``sums``."""

    paths: np.ndarray
    shares: np.ndarray
    sums: np.ndarray


def sweep(graph: Any, sources: Any, centrality: np.ndarray, on_edges: np.ndarray | None = None) -> tuple[int, int]:
    size, (offsets, targets, *into) = centrality.size, unsigned(graph.offsets, graph.targets, *graph.into)

    def make() -> tuple[Sums, Levels, Heap | None]:
        heap = None if graph.weights is None else make_heap(size, graph.weights.dtype)
        return Sums(*np.zeros((3, size))), make_levels(size), heap

    def add(given: tuple[Sums, Levels, Heap | None], numbers: np.ndarray, sums: list[np.ndarray]) -> tuple[int, int]:
        some, (own, levels, heap), (nodes, *edges) = sources[numbers].astype(np.uint64), given, sums
        arrays = own, nodes, edges[0] if edges else None
        if heap is None:
            done, deepest = _sweep_by_hops(some, offsets, targets, *into, levels, *arrays)
        else:
            done, deepest = _sweep_by_length(some, offsets, targets, graph.weights, heap, levels.hops, *arrays)
        return deepest, sources.size if done == some.size else int(numbers[done])

    totals = [centrality] if on_edges is None else [centrality, on_edges]
    found = in_lanes(sources.size, targets.size, totals, make, add)
    wrong = min((wrong for _, wrong in found), default=sources.size)
    return sum(levels for levels, _ in found), -1 if wrong == sources.size else wrong


@njit(cache=True, nogil=True)
def _sweep_by_hops(  # type: ignore[no-untyped-def]
    sources, offsets, targets, in_offsets, in_sources, state, own, centrality, on_edges
):
    """Back through the levels of a search; returns how many sources were added, and their levels. Places are unsigned.

    Nobody asks for the level of a neighbour: what is not known yet is 0.
    """
    levels, (hops, order, bounds), (paths, shares, sums) = 0, state, own
    for number in range(sources.size):
        deepest = search_by_hops(sources[number], offsets, targets, in_offsets, in_sources, state, paths, sums)
        in_row_order(state, deepest)
        most, levels = 1.0, levels + deepest
        for level in range(deepest, -1, -1):
            nodes = order[bounds[level] : bounds[level + 1]]
            sum_rows_of(nodes, offsets, targets, shares, sums)
            if on_edges is not None:
                for node in nodes:
                    for edge in range(offsets[node], offsets[node + ONE]):
                        on_edges[edge] += paths[node] * shares[targets[edge]]
            for place in range(bounds[level + 1], bounds[level + 2]):
                shares[order[place]] = 0
            for place in range(np.uint64(nodes.size)):
                node, total = nodes[place], sums[place]
                shares[node] = 1 / paths[node] + total
                centrality[node] += paths[node] * total if level > 0 else 0.0
                most = max(most, paths[node])
                hops[node], paths[node] = -1, 0
        shares[sources[number]] = 0
        if not most < np.inf:
            return number, levels
    return sources.size, levels


@njit(cache=True, nogil=True)
def _sweep_by_length(  # type: ignore[no-untyped-def]
    sources, offsets, targets, weights, heap, hops, own, centrality, on_edges
):
    """The same through the nodes by length; their levels are the most edges of a shortest path."""
    levels, lengths, order, (paths, shares, _) = 0, heap.lengths, heap.order, own
    for number in range(sources.size):
        tail = search_by_length(sources[number], offsets, targets, weights, heap, paths, hops)
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
                target, beyond = targets[edge], here + weights[edge]
                share = shares[target] if (lengths[target] == beyond) & (beyond > here) else 0.0
                total += share
                if on_edges is not None:
                    on_edges[edge] += paths[node] * share
            shares[node] = 1 / paths[node] + total
            if place > 0:
                centrality[node] += paths[node] * total
        for place in range(tail):
            node = order[place]
            lengths[node], paths[node], shares[node] = heap.far, 0, 0
        if not counted:
            return number, levels
    return sources.size, levels
