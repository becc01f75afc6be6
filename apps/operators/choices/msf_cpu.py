"""Spanning forests on CPUs: see interfaces.py. Threads offer edges to trees at the same time; the first one stays."""

from typing import Any

import numpy as np

from cusp.apps.operators.choices.interfaces import Candidates
from cusp.apps.operators.structure.cc_cpu import unite
from cusp.kernels.arrays import joined
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import load, replaced
from cusp.runtime.threads import in_parallel, num_threads, ranges, row_ranges


def list_edges(
    part: Partition, order: Any, parents: Any, end: tuple[Any, int], maximum: bool, light: bool
) -> tuple[Any, Any]:
    weights = np.zeros(0, np.int8) if part.weights is None else part.weights
    rest = part.targets, weights, order, parents, *end, maximum, light, part.symmetric

    def some(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        size = int(part.offsets[last] - part.offsets[first])
        sources, places = np.empty(size, np.int32), np.empty(size, np.int64)  # memory that is not written takes none
        size = _list_edges(first, part.offsets[first : last + 1], *rest, sources, places)
        return sources[:size], places[:size]

    sources, places = zip(*in_parallel(some, row_ranges(part.offsets)))
    return joined([*sources]), joined([*places])


@njit(cache=True, nogil=True)
def _list_edges(  # type: ignore[no-untyped-def]
    first, offsets, targets, weights, order, parents, weight, tie, maximum, light, both_ways, sources, places
):
    size = 0
    for row in range(offsets.size - 1):
        tree, source = parents[first + row], np.int64(order[first + row])
        for edge in range(offsets[row], offsets[row + 1]):
            equal, before = True, False
            if weights.size:
                equal, before = weights[edge] == weight, weights[edge] < weight
                before = before != maximum and not equal
            if equal:
                target = np.int64(order[targets[edge]])
                if weights.size == 0 and both_ways and target < source:
                    continue
                before = min(source, target) << 32 | max(source, target) << 1 <= tie
            if before == light and parents[targets[edge]] != tree:
                sources[size], places[size] = first + row, edge
                size += 1
    return size


def choose(edges: Candidates, active: Any, trees: Any, best: Any) -> Any:
    alone = num_threads() == 1

    def some(first: int, last: int) -> np.ndarray:
        kept = np.empty(last - first, np.int64)
        return kept[: _choose(alone, *edges[:3], active[first:last], trees, best, kept)]

    return joined(in_parallel(some, ranges(active.size)))


@njit(cache=True, nogil=True)
def _choose(alone, keys, sources, targets, active, trees, best, kept):  # type: ignore[no-untyped-def]
    size = 0
    for entry in active:
        one, other = trees[sources[entry]], trees[targets[entry]]
        if one != other:
            kept[size] = entry
            size += 1
            _offer(alone, keys, best, one, entry)
            _offer(alone, keys, best, other, entry)
    return size


@njit(cache=True, nogil=True, inline="always")
def _offer(alone, keys, best, tree, entry):  # type: ignore[no-untyped-def]
    held = load(best, tree)
    while held < 0 or (keys[entry, 0], keys[entry, 1], entry) < (keys[held, 0], keys[held, 1], held):
        if alone:
            best[tree] = entry
            return
        if replaced(best, tree, held, entry):
            return
        held = load(best, tree)


def join(edges: Candidates, best: Any, parents: Any, in_forest: Any) -> None:
    alone, ends = num_threads() == 1, (edges.sources, edges.targets, edges.places)
    in_parallel(lambda first, last: _join(alone, *ends, best[first:last], parents, in_forest), ranges(best.size))


@njit(cache=True, nogil=True)
def _join(alone, sources, targets, places, best, parents, in_forest):  # type: ignore[no-untyped-def]
    for tree in range(best.size):
        entry = best[tree]
        if entry >= 0:
            best[tree] = -1
            in_forest[places[entry]] = 1
            unite(alone, parents, sources[entry], targets[entry])
