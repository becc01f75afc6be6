"""Connected components on the CPU: see interfaces.py."""

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import set_bit

SAMPLE = 1024


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
def most_frequent(rare, parents):  # type: ignore[no-untyped-def]
    size = parents.size
    taken = min(size, SAMPLE)
    roots = np.sort(np.array([parents[i * size // taken] for i in range(taken)], np.int32))
    most, begin, longest = np.full(1, -1, np.int32), 0, taken // rare
    for i in range(taken):
        if roots[i] != roots[begin]:
            begin = i
        if i - begin + 1 > longest:
            longest, most[0] = i - begin + 1, roots[i]
    return most


@njit(cache=True, nogil=True)
def link_others(left_out, offsets, targets, parents, queue):  # type: ignore[no-untyped-def]
    """The tree grows meanwhile: nodes that join it are left out, too."""
    for source in range(offsets.size - 1):
        if parents[source] == left_out[0] or offsets[source] == offsets[source + 1]:
            continue
        root = _root(parents, source)
        if left_out[0] >= 0 and root == _root(parents, left_out[0]):
            continue
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
