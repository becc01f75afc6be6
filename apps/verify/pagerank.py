"""Verifier of PageRank: see apps/verify/check.py."""

import numpy as np
from numba import njit

from apps.verify.check import everywhere, raise_first
from cusp.partition import Partition
from gluon.label import Label
from gluon.reduction import ADD
from gluon.sync import Sync


def verify_pagerank(
    part: Partition, sync: Sync, ranks: np.ndarray, teleport: np.ndarray, damping: float, tolerance: float
) -> None:
    """Check that ranks are a fixed point. Collective.

    1. No rank is below 0. 2. Their sum is 1, to ``tolerance``. 3. One step more of the walk, edge by edge in the
    direction of the edges, changes them by no more than ``tolerance``, all changes added up.

    Parameters
    ----------
    ranks : (masters,) float
    teleport : (masters,) float64

    Raises
    ------
    VerificationError
        On every rank.
    """
    own = slice(0, part.num_masters)
    ranks = ranks.astype(np.float64)
    wrong = np.flatnonzero(~(ranks >= 0))
    raise_first(sync, f"the rank of node {part.gids[wrong[0]]} is {ranks[wrong[0]]}" if wrong.size else None)
    dangling = part.degrees == 0
    total, kept = sync.total(ranks.sum(), ranks[dangling].sum())
    raise_first(sync, None if abs(total - 1) <= tolerance else f"the sum of the ranks is {total!r}")
    shares = everywhere(part, sync, damping * ranks / np.maximum(part.degrees, 1), 0)
    arrived = Label(part, np.float64, 0, ADD)
    _walk(part.offsets, part.targets, shares.values, arrived.values)
    arrived.updated[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
    sync.reduce(arrived, write="dst")
    after = arrived.values[own] + (1 - damping + damping * kept) * teleport
    (change,) = sync.total(np.abs(after - ranks).sum())
    message = f"one more step changes the ranks by {change:.3g} in all, but {tolerance:.3g} was asked for"
    raise_first(sync, None if change <= tolerance else message)


@njit(cache=True, nogil=True)
def _walk(offsets, targets, shares, arrived):  # type: ignore[no-untyped-def]
    """Along every edge, the target gets the source's share."""
    for source in range(offsets.size - 1):
        for edge in range(offsets[source], offsets[source + 1]):
            arrived[targets[edge]] += shares[source]
