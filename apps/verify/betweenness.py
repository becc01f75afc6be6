"""Verifier of betweenness centrality: see apps/verify/check.py."""

import numpy as np
from numba import njit

from apps.verify.check import raise_first, tell_node
from cusp.partition import Partition
from gluon.label import Label
from gluon.reduction import ADD, ASSIGN, MIN
from gluon.sync import Sync

FAR = np.iinfo(np.int32).max
ROUNDING = 1e-9  # relative


def verify_betweenness(part: Partition, sync: Sync, found: np.ndarray, sources: list[int], scale: float) -> None:
    """Check betweenness by computing it anew, along out-edges alone and edge by edge. Collective.

    1. The dependencies of a source add up to the nodes between it and all that it reaches: hops - 1 of each. 2. Their
    sums over all sources, scaled, are what was found.

    Parameters
    ----------
    found : (masters,) float64
    sources : list of int
    scale : float

    Raises
    ------
    VerificationError
        On every rank.
    """
    own = slice(0, part.num_masters)
    expected = np.zeros(part.num_masters)
    for source in sources:
        hops, paths, frontiers = _count_paths(part, sync, source)
        dependencies = _dependencies(part, sync, hops, paths, frontiers)
        reached = (hops[own] != FAR) & (hops[own] > 0)
        total, between = sync.total(dependencies[reached].sum(), float((hops[own][reached] - 1).sum()))
        wrong = abs(total - between) > ROUNDING * max(between, 1)
        raise_first(sync, f"source {source}: dependencies add up to {total}, not to {between}" if wrong else None)
        expected[reached] += dependencies[reached]
    wrong = ~(np.abs(found - scale * expected) <= ROUNDING * np.maximum(scale * expected, scale))
    tell_node(part, sync, "betweenness: not what paths, counted again, make of node", wrong)


def _count_paths(part: Partition, sync: Sync, source: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Hops and numbers of shortest paths of all proxies, and the proxies of each level. Collective."""
    own = slice(0, part.num_masters)
    hops, arriving = Label(part, np.int32, FAR, MIN), Label(part, np.float64, 0, ADD)
    paths = Label(part, np.float64, 0, ASSIGN)
    hops.write(source, 0)
    paths.write(source, 1)
    frontiers: list[np.ndarray] = []
    while True:
        frontier = hops.take_updated()
        if sync.total(frontier.size) == (0,):
            return hops.values, paths.values, frontiers
        frontiers.append(frontier)
        level = len(frontiers)
        arriving.values[:] = 0
        _expand(frontier, part.offsets, part.targets, level, paths.values, hops.values, hops.updated, arriving.values,
                arriving.updated)  # fmt: skip
        sync.reduce(hops, arriving, write="dst")
        reached = hops.values[own] == level
        paths.values[own][reached] = arriving.values[own][reached]
        paths.updated[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        sync.broadcast(hops, paths, read="any")


def _dependencies(
    part: Partition, sync: Sync, hops: np.ndarray, paths: np.ndarray, frontiers: list[np.ndarray]
) -> np.ndarray:
    """(masters,) what of the shortest paths to all nodes depends on each. Collective."""
    known, arriving = Label(part, np.float64, 0, ASSIGN), Label(part, np.float64, 0, ADD)
    own = slice(0, part.num_masters)
    for frontier in reversed(frontiers):
        arriving.values[:] = 0
        _depend(frontier, part.offsets, part.targets, hops, paths, known.values, arriving.values, arriving.updated)
        sync.reduce(arriving, write="src")
        level = frontier[frontier < part.num_masters]
        known.values[level] = arriving.values[level]
        known.updated[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        sync.broadcast(known, read="any")
    return known.values[own]


@njit(cache=True, nogil=True)
def _expand(frontier, offsets, targets, level, paths, hops, hops_updated, arriving, updated):  # type: ignore[no-untyped-def]
    """Along out-edges of the frontier: nodes that are not reached get ``level``; those of this level get its paths."""
    for source in frontier:
        for edge in range(offsets[source], offsets[source + 1]):
            target = targets[edge]
            if hops[target] > level:
                hops[target] = level
                hops_updated[target >> 6] |= np.uint64(1) << np.uint64(target & 63)
            if hops[target] == level:
                arriving[target] += paths[source]
                updated[target >> 6] |= np.uint64(1) << np.uint64(target & 63)


@njit(cache=True, nogil=True)
def _depend(frontier, offsets, targets, hops, paths, known, arriving, updated):  # type: ignore[no-untyped-def]
    """A node gets the part of each successor's paths that goes through it, of that node and of all behind it."""
    for source in frontier:
        for edge in range(offsets[source], offsets[source + 1]):
            target = targets[edge]
            if hops[target] == hops[source] + 1:
                arriving[source] += paths[source] / paths[target] * (1 + known[target])
        updated[source >> 6] |= np.uint64(1) << np.uint64(source & 63)
