"""Verifiers of PageRank, and of centralities that are eigenvectors or sums over walks: see apps/verify/check.py."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cusp import ADD, MAX, Answer, EdgeOperator, Label, Partition, Sync
from cusp.apps.verify.check import everywhere, raise_first, require, tell_node
from cusp.runtime.devices import move, to_host, xp_of

ALONG = EdgeOperator("value * weight", into="dst.arrived")
AGAINST = EdgeOperator("value * weight", into="src.arrived")
STEP = EdgeOperator("value", into="dst.arrived")
LARGEST = EdgeOperator("weight", into="src.largest")
WEIGHTED_STEP = EdgeOperator("value * (weight / src.largest)", into="dst.arrived", where="src.largest > 0")
WEIGH = EdgeOperator("weight / src.largest", into="src.strength", where="src.largest > 0")
NOISE = 1e-13  # of the sum of all values: sums in another order differ by less
OFF = 1e-9  # how far rounding may take a norm from 1, and ranks apart


def verify_eigenvector(part: Partition, sync: Sync, values: Any, tolerance: float, weighted: bool) -> None:
    """Check that no value is below 0, that their squares add up to 1, and that they are a fixed point. Collective.

    One more iteration, edge by edge in the direction of the edges, changes them by ``tolerance`` at most, all changes
    added up.
    """
    values = _check_values(part, sync, "eigenvector", values, 2)
    new = values + _sums(to_count(part, weighted), sync, values, ALONG)
    new /= np.sqrt(_norm(sync, new, 2))
    _check_change(sync, "eigenvector", values, new, tolerance)


def verify_katz(part: Partition, sync: Sync, answer: Answer, weighted: bool, options: argparse.Namespace) -> None:
    """Check that every node has as much of its own, beside ``alpha`` times what its in-neighbours have. Collective.

    If values are normalized, their squares add up to 1, and that is the mean of what is left at the nodes without what
    comes from in-neighbours; otherwise it is ``beta``. The tolerance bounds the mean difference, as a multiple of it.
    The figure is the ``alpha`` that was asked for.
    """
    alpha = answer.figures["alpha"]
    require(sync, options.alpha in (None, alpha), f"katz: alpha is {alpha:g}, and {options.alpha} was asked for")
    values = _check_values(part, sync, "katz", answer.labels["katz"], None if options.unnormalized else 2)
    own = values - alpha * _sums(to_count(part, weighted), sync, values, ALONG)
    beta = options.beta if options.unnormalized else sync.total(float(own.sum()))[0] / part.num_nodes
    require(sync, beta > 0, f"katz: nodes have {beta:.3g} of their own on average, not more than 0")
    twice = 1 if options.unnormalized else 2  # the mean may be off as the values are
    _check_change(sync, "katz", own, beta, twice * options.tolerance * beta * part.num_nodes, values)


def verify_hits(part: Partition, sync: Sync, hubs: Any, authorities: Any, tolerance: float, weighted: bool) -> None:
    """Check that hubs and authorities follow from each other. Collective.

    No value is below 0, both have the sum 1, authorities are in proportion to the sums of their hubs, and hubs to those
    of their authorities up to ``tolerance``, all differences added up.
    """
    part, given = to_count(part, weighted), {"hubs": hubs, "authorities": authorities}
    given = {name: _check_values(part, sync, name, values, 1) for name, values in given.items()}
    for name, other, step, most in (("authorities", "hubs", ALONG, 0), ("hubs", "authorities", AGAINST, tolerance)):
        sums = _sums(part, sync, given[other], step)
        total = _norm(sync, sums, 1)
        if total > 0:
            _check_change(sync, name, given[name], sums / total, most)


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


def verify_best(part: Partition, sync: Sync, answer: Answer, options: argparse.Namespace) -> None:
    """Check the highest ranks of walks that start at seeds, of some of these. Collective.

    A walk from the first, middle and last seed is repeated, edge by edge in the direction of the edges: 1. the nodes
    named have these ranks, which do not rise, to the tolerance; 2. no other node has a higher rank.

    Parameters
    ----------
    part : Partition
        Without weights, if they do not count.
    """
    seed, node, pagerank = answer.table.values()
    step, gids = _stepper(part, sync, part.weights is not None), part.gids[: part.num_masters]
    off = 2 * options.tolerance + OFF
    for place in sorted({0, len(seed) // 2, len(seed) - 1}):
        start, named, found = int(seed[place, 0]), node[place], pagerank[place]
        teleport = (gids == start).astype(np.float64)
        ranks, change, rounds = teleport, 1.0, 0
        while change >= options.tolerance and rounds != options.iterations:
            after = step(ranks, teleport, options.damping)
            (change,) = sync.total(float(abs(after - ranks).sum()))
            ranks, rounds = after, rounds + 1
        right, nodes = to_host(ranks).copy(), named[named >= 0]
        own, lids = part.masters_among(nodes)
        same = bool((abs(right[lids] - found[own]) <= off).all())
        right[lids] = 0
        fine = np.unique(nodes).size == nodes.size and bool((np.diff(found) <= 0).all())
        require(sync, fine and same, f"other nodes, or other ranks, are the highest from {start}")
        require(sync, not (right > found[-1] + off).any(), f"a node with a higher rank from {start} is not there")


def to_count(part: Partition, weighted: bool) -> Partition:
    """The partition with weights that edge operators take, or none."""
    if not weighted:
        return part.without_weights()
    if part.weights is not None and part.weights.dtype == np.uint64:  # edge operators count in int64
        return replace(part, weights=part.weights.astype(np.float64), csc=None)
    return part


def _check_values(part: Partition, sync: Sync, name: str, values: Any, power: int | None) -> Any:
    values = move(values, part.device).astype(np.float64)
    tell_node(part, sync, f"{name}: the value is not 0 or more at node", ~(values >= 0))
    if power:
        norm = _norm(sync, values, power)
        what = "squares" if power == 2 else "sum"
        require(sync, abs(norm - 1) <= OFF, f"{name}: the {what} of the values is {norm!r}, not 1")
    return values


def _norm(sync: Sync, values: Any, power: int) -> float:
    return float(sync.total(float((values**power).sum()))[0])


def _sums(part: Partition, sync: Sync, values: Any, step: EdgeOperator, **given: Any) -> Any:
    """(masters,) float64: sums over the edges where ``step`` writes. Collective."""
    arrived = Label(part, np.float64, 0, ADD)
    step(part, value=everywhere(part, sync, values, 0), arrived=arrived, **given)
    sync.reduce(arrived, write=step.write)
    return arrived.masters()


def _check_change(sync: Sync, name: str, values: Any, new: Any, most: float, scale: Any = None) -> None:
    change, total = sync.total(float(abs(new - values).sum()), float((values if scale is None else scale).sum()))
    message = f"{name}: one more iteration changes the values by {change:.3g} in all, but {most:.3g} was asked for"
    require(sync, change <= most + NOISE * total, message)


def _stepper(part: Partition, sync: Sync, weighted: bool) -> Callable[[Any, Any, float], Any]:
    """What makes ranks by one more step, from (masters,) ranks, where walks start, and damping. Collective."""
    part = to_count(part, weighted)
    xp, (strengths, given) = xp_of(part.device), _strengths(part, sync) if weighted else (part.degrees, {})

    def step(ranks: Any, teleport: Any, damping: float) -> Any:
        (kept,) = sync.total(float(ranks[strengths == 0].sum()))
        shares = damping * ranks / xp.where(strengths == 0, 1, strengths)
        arrived = _sums(part, sync, shares, WEIGHTED_STEP if weighted else STEP, **given)
        return arrived + (1 - damping + damping * kept) * teleport

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
