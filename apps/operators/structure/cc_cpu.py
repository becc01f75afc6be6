"""Connected components on the CPU: see interfaces.py."""

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import set_bit


@njit(cache=True, nogil=True, inline="always")
def _root(parents, lid):  # type: ignore[no-untyped-def]
    while parents[lid] != lid:
        parents[lid] = parents[parents[lid]]
        lid = parents[lid]
    return lid


@njit(cache=True, nogil=True, inline="always")
def _unite(parents, one, other):  # type: ignore[no-untyped-def]
    one, other = _root(parents, one), _root(parents, other)
    low, high = min(one, other), max(one, other)
    parents[high] = low
    return low


@njit(cache=True, nogil=True)
def link_first(edges, offsets, targets, parents):  # type: ignore[no-untyped-def]
    for source in range(offsets.size - 1):
        for edge in range(offsets[source], min(offsets[source] + edges, offsets[source + 1])):
            if parents[source] != parents[targets[edge]]:
                _unite(parents, source, targets[edge])


@njit(cache=True, nogil=True)
def link_others(values, skipped, offsets, targets, parents, queue):  # type: ignore[no-untyped-def]
    for source in range(offsets.size - 1):
        if values[source] != skipped and offsets[source] < offsets[source + 1]:
            root = _root(parents, source)
            for edge in range(offsets[source], offsets[source + 1]):
                if parents[targets[edge]] != root:
                    root = _unite(parents, root, targets[edge])


@njit(cache=True, nogil=True)
def flatten(parents):  # type: ignore[no-untyped-def]
    """The parents of lower nodes are roots already."""
    for lid in range(parents.size):
        parents[lid] = parents[parents[lid]]


@njit(cache=True, nogil=True)
def lower_roots(parents, values, updated):  # type: ignore[no-untyped-def]
    for lid in range(parents.size):
        root = parents[lid]
        if values[lid] < values[root]:
            values[root] = values[lid]
            set_bit(updated, root)


@njit(cache=True, nogil=True)
def spread_roots(parents, values, updated):  # type: ignore[no-untyped-def]
    for lid in range(parents.size):
        value = values[parents[lid]]
        if value < values[lid]:
            values[lid] = value
            set_bit(updated, lid)


@njit(cache=True, nogil=True)
def count_members(parents, size):  # type: ignore[no-untyped-def]
    members = np.zeros(parents.size, np.int32)
    for lid in range(size):
        members[parents[lid]] += 1
    return members
