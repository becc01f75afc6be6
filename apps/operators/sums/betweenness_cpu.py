"""Betweenness centrality on the CPU: see interfaces.py."""

from typing import Any

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import set_bit


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
