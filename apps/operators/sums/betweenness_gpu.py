"""Betweenness centrality on the GPU, with the names and arguments of the CPU's; the kernels are in betweenness.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import load
from cusp.runtime.devices import to_host

BETWEENNESS = "apps/operators/sums/betweenness.cuh"


def by_level(levels: Any, deepest: int) -> tuple[Any, list[int]]:
    """Proxies with a level of 0 or more, by level, then by local id; and where each level begins."""
    counts = to_host(cp.bincount(levels + 1, minlength=deepest + 2))
    lids = cp.argsort(levels)[int(counts[0]) :].astype(np.int32)
    return lids, [0, *np.cumsum(counts[1:]).tolist()]


def mark(first: int, last: int, lids: Any, updated: Any) -> None:
    """Set the bits of ``lids[first:last]``."""
    load(BETWEENNESS).mark(last - first, first, last, lids, updated)


def give_paths(first: int, last: int, masters: int, lids: Any, sums: Any, paths: Any, updated: Any) -> None:
    """Masters among ``lids[first:last]``: as many shortest paths lead to one as to all of its predecessors."""
    load(BETWEENNESS).give_paths(last - first, first, last, masters, lids, sums, paths, updated)


def give_shares(
    first: int, last: int, masters: int, lids: Any, paths: Any, sums: Any, centrality: Any, shares: Any, updated: Any
) -> None:
    """Masters among ``lids[first:last]`` learn how much depends on them, and the share of each path to them."""
    load(BETWEENNESS).give_shares(last - first, first, last, masters, lids, paths, sums, centrality, shares, updated)
