"""Spanning forests on CPUs: see interfaces.py. Threads offer edges to trees at the same time; the first one stays."""

from typing import Any

import numpy as np

from cusp.apps.operators.choices.interfaces import Candidates
from cusp.apps.operators.structure.cc_cpu import unite
from cusp.kernels.arrays import listed
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import load, replaced
from cusp.runtime.teams.together import together
from cusp.runtime.threads import num_threads, ranges, row_ranges


def list_edges(
    part: Partition, order: Any, parents: Any, end: tuple[Any, int], maximum: bool, light: bool
) -> tuple[Any, Any]:
    weights, size = np.zeros(0, np.int8) if part.weights is None else part.weights, part.targets.size
    given = part.offsets, part.targets, weights, order, parents, *end, maximum, light, part.symmetric
    lists = np.empty(size, np.int32), np.empty(size, np.int64)  # memory that is not written takes none
    sources, places = listed(_list_edges, row_ranges(part.offsets), part.offsets, given, *lists)
    return sources, places


@njit(cache=True, nogil=True)
def _list_edges(  # type: ignore[no-untyped-def]
    number, first, last, offsets, targets, weights, order, parents, weight, tie, maximum, light, both_ways,
    sources, places, ends,
):  # fmt: skip
    """Those of some rows stand from the place of their first edge on."""
    size = offsets[first]
    for row in range(first, last):
        tree, source = parents[row], np.int64(order[row])
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
                sources[size], places[size] = row, edge
                size += 1
    ends[number] = size


def choose(edges: Candidates, active: Any, trees: Any, best: Any) -> Any:
    given = num_threads() == 1, *edges[:3], active, trees, best
    return listed(_choose, ranges(active.size), None, given, np.empty(active.size, np.int64))[0]


@njit(cache=True, nogil=True)
def _choose(number, first, last, alone, keys, sources, targets, active, trees, best, kept, ends):  # type: ignore[no-untyped-def]
    size = first
    for entry in active[first:last]:
        one, other = trees[sources[entry]], trees[targets[entry]]
        if one != other:
            kept[size] = entry
            size += 1
            _offer(alone, keys, best, one, entry)
            _offer(alone, keys, best, other, entry)
    ends[number] = size


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
    together(_join, ranges(best.size), alone, *ends, best, parents, in_forest)


@njit(cache=True, nogil=True)
def _join(first, last, alone, sources, targets, places, best, parents, in_forest):  # type: ignore[no-untyped-def]
    for tree in range(first, last):
        entry = best[tree]
        if entry >= 0:
            best[tree] = -1
            in_forest[places[entry]] = 1
            unite(alone, parents, sources[entry], targets[entry])
