"""Verifier of PageRank: see apps/verify/check.py."""

from dataclasses import replace
from typing import Any

import numpy as np

from cusp import ADD, MAX, EdgeOperator, Label, Partition, Sync
from cusp.apps.verify.check import everywhere, raise_first, require
from cusp.runtime.devices import move, xp_of

STEP = EdgeOperator("share", into="dst.arrived")
LARGEST = EdgeOperator("weight", into="src.largest")
WEIGHTED_STEP = EdgeOperator("share * (weight / src.largest)", into="dst.arrived", where="src.largest > 0")
WEIGH = EdgeOperator("weight / src.largest", into="src.strength", where="src.largest > 0")


def verify_pagerank(
    part: Partition, sync: Sync, ranks: Any, teleport: Any, damping: float, tolerance: float, weighted: bool = False
) -> None:
    """Check that ranks are a fixed point. Collective.

    1. No rank is below 0. 2. Their sum is 1, to ``tolerance``. 3. One more step of the walk, edge by edge in the
    direction of the edges, changes them by no more than ``tolerance``, all changes added up.

    Parameters
    ----------
    ranks : (masters,) float
    teleport : (masters,) float64
    weighted : bool
        The walk follows edges by weight.
    """
    xp = xp_of(part.device)
    if weighted and part.weights is not None and part.weights.dtype == np.uint64:  # edge operators count in int64
        part = replace(part, weights=part.weights.astype(np.float64), csc=None)
    ranks, teleport = move(ranks, part.device).astype(np.float64), move(teleport, part.device)
    wrong = xp.flatnonzero(~(ranks >= 0))
    negative = f"the rank of node {int(part.gids[wrong[0]])} is {float(ranks[wrong[0]])}" if wrong.size else None
    raise_first(sync, negative)
    strengths, given = _strengths(part, sync) if weighted else (part.degrees, {})
    total, kept = sync.total(float(ranks.sum()), float(ranks[strengths == 0].sum()))
    require(sync, abs(total - 1) <= tolerance, f"the sum of the ranks is {total!r}")
    share = everywhere(part, sync, damping * ranks / xp.where(strengths == 0, 1, strengths), 0)
    arrived = Label(part, np.float64, 0, ADD)
    (WEIGHTED_STEP if weighted else STEP)(part, share=share, arrived=arrived, **given)
    sync.reduce(arrived, write="dst")
    after = arrived.masters() + (1 - damping + damping * kept) * teleport
    (change,) = sync.total(float(abs(after - ranks).sum()))
    message = f"one more step changes the ranks by {change:.3g} in all, but {tolerance:.3g} was asked for"
    require(sync, change <= tolerance, message)


def _strengths(part: Partition, sync: Sync) -> tuple[Any, dict[str, Label]]:
    """(masters,) float64: what the out-edges of each node weigh in all, as a multiple of the largest. Collective."""
    strength, largest = Label(part, np.float64, 0, ADD), Label(part, np.float64, 0, MAX)
    LARGEST(part, largest=largest)
    sync.reduce(largest, write="src")
    sync.broadcast(largest, read="any")
    WEIGH(part, strength=strength, largest=largest)
    sync.reduce(strength, write="src")
    return strength.masters(), {"largest": largest}
