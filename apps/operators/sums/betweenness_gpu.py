"""Betweenness centrality on the GPU: see interfaces.py; the kernels are in betweenness.cuh."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import bincount, load
from cusp.partition import Partition
from cusp.runtime.devices import to_host

BETWEENNESS = "cusp/apps/operators/sums/betweenness.cuh"
SMALL = 1 << 21  # edges of a graph for each source of a rank: then a copy takes about as long as they do
MOST = 1 << 27  # edges of a copy


def sweeps(part: Partition, ranks: int, sources: int) -> bool:
    """A copy is as much work as some sources. One rank has the GPU to itself anyhow.

    Last bits depend on it, so a limit of the card does not matter: what is too much for it lies with the host.
    """
    own = -(-sources // ranks)
    return ranks > 1 and part.num_edges <= min(SMALL * own, MOST)


def by_level(levels: Any, deepest: int) -> tuple[Any, list[int]]:
    counts = to_host(bincount(levels + 1, deepest + 2))
    lids = cp.argsort(levels)[int(counts[0]) :].astype(np.int32)
    return lids, [0, *np.cumsum(counts[1:]).tolist()]


def mark(first: int, last: int, lids: Any, updated: Any) -> None:
    load(BETWEENNESS).mark(last - first, first, last, lids, updated)


def give_paths(first: int, last: int, masters: int, lids: Any, sums: Any, paths: Any, updated: Any) -> None:
    load(BETWEENNESS).give_paths(last - first, first, last, masters, lids, sums, paths, updated)


def give_shares(
    first: int, last: int, masters: int, lids: Any, paths: Any, sums: Any, centrality: Any, shares: Any, updated: Any
) -> None:
    load(BETWEENNESS).give_shares(last - first, first, last, masters, lids, paths, sums, centrality, shares, updated)
