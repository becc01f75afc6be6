"""Verifier of PageRank: see apps/verify/check.py."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cusp import ADD, MAX, EdgeOperator, Label, Partition, Sync
from cusp.apps.verify.centrality import to_count
from cusp.apps.verify.check import everywhere, raise_first, require
from cusp.runtime.devices import move, to_host, xp_of

OFF = 1e-9  # how far rounding may take ranks apart
STEP = EdgeOperator("share", into="dst.arrived")
LARGEST = EdgeOperator("weight", into="src.largest")
WEIGHTED_STEP = EdgeOperator("share * (weight / src.largest)", into="dst.arrived", where="src.largest > 0")
WEIGH = EdgeOperator("weight / src.largest", into="src.strength", where="src.largest > 0")


def verify_pagerank(
    part: Partition, sync: Sync, ranks: Any, teleport: Any, damping: float, tolerance: float, weighted: bool = False
) -> None:
    """Check that ranks are a fixed point. Collective.

    1. No rank is below 0. 2. One more step of the walk, edge by edge in the direction of the edges, changes them by no
    more than ``tolerance``, all changes added up. So they are within ``tolerance / (1 - damping)`` of the right ones:
    3. That close to 1 is their sum.

    Parameters
    ----------
    ranks : (masters,) float
    teleport : (masters,) or (1,) float64
    weighted : bool
        The walk follows edges by weight.
    """
    xp = xp_of(part.device)
    ranks, teleport = move(ranks, part.device).astype(np.float64), move(teleport, part.device)
    wrong = xp.flatnonzero(~(ranks >= 0))
    negative = f"the rank of node {int(part.gids[wrong[0]])} is {float(ranks[wrong[0]])}" if wrong.size else None
    raise_first(sync, negative)
    (total,) = sync.total(float(ranks.sum()))
    require(sync, abs(total - 1) <= tolerance / (1 - damping), f"the sum of the ranks is {total!r}")
    after = _stepper(part, sync, weighted)(ranks, teleport, damping)
    (change,) = sync.total(float(abs(after - ranks).sum()))
    message = f"one more step changes the ranks by {change:.3g} in all, but {tolerance:.3g} was asked for"
    require(sync, change <= tolerance, message)


def verify_best(
    part: Partition, sync: Sync, seed: np.ndarray, node: np.ndarray, pagerank: np.ndarray, damping: float,
    tolerance: float, iterations: int | None,
) -> None:  # fmt: skip
    """Check the highest ranks of walks that start at seeds, of some of these. Collective.

    A walk from the first, middle and last seed is repeated, edge by edge in the direction of the edges: 1. the nodes
    named have these ranks, which do not rise, to ``tolerance``; 2. no other node has a higher rank.

    Parameters
    ----------
    part : Partition
        Without weights, if they do not count.
    seed, node, pagerank : (seeds, 1), (seeds, top) and (seeds, top)
        -1 and 0 where no more nodes have a rank.
    """
    step, gids, off = _stepper(part, sync, part.weights is not None), part.gids[: part.num_masters], 2 * tolerance + OFF
    for place in sorted({0, len(seed) // 2, len(seed) - 1}):
        start, named, found = int(seed[place, 0]), node[place], pagerank[place]
        teleport = (gids == start).astype(np.float64)
        ranks, change, rounds = teleport, 1.0, 0
        while change >= tolerance and rounds != iterations:
            after = step(ranks, teleport, damping)
            (change,) = sync.total(float(abs(after - ranks).sum()))
            ranks, rounds = after, rounds + 1
        right, nodes = to_host(ranks).copy(), named[named >= 0]
        own, lids = part.masters_among(nodes)
        same = bool((abs(right[lids] - found[own]) <= off).all())
        right[lids] = 0
        fine = np.unique(nodes).size == nodes.size and bool((np.diff(found) <= 0).all())
        require(sync, fine and same, f"other nodes, or other ranks, are the highest from {start}")
        require(sync, not (right > found[-1] + off).any(), f"a node with a higher rank from {start} is not there")


def _stepper(part: Partition, sync: Sync, weighted: bool) -> Callable[[Any, Any, float], Any]:
    """What makes ranks by one more step, from (masters,) ranks, where walks start, and damping. Collective."""
    part = to_count(part, weighted)
    xp, (strengths, given) = xp_of(part.device), _strengths(part, sync) if weighted else (part.degrees, {})

    def step(ranks: Any, teleport: Any, damping: float) -> Any:
        (kept,) = sync.total(float(ranks[strengths == 0].sum()))
        share = everywhere(part, sync, damping * ranks / xp.where(strengths == 0, 1, strengths), 0)
        arrived = Label(part, np.float64, 0, ADD)
        (WEIGHTED_STEP if weighted else STEP)(part, share=share, arrived=arrived, **given)
        sync.reduce(arrived, write="dst")
        return arrived.masters() + (1 - damping + damping * kept) * teleport

    return step


def _strengths(part: Partition, sync: Sync) -> tuple[Any, dict[str, Label]]:
    """(masters,) float64: what the out-edges of each node weigh in all, as a multiple of the largest. Collective."""
    strength, largest = Label(part, np.float64, 0, ADD), Label(part, np.float64, 0, MAX)
    LARGEST(part, largest=largest)
    sync.reduce(largest, write="src")
    sync.broadcast(largest, read="any")
    WEIGH(part, strength=strength, largest=largest)
    sync.reduce(strength, write="src")
    return strength.masters(), {"largest": largest}
