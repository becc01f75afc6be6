"""Verifiers of centralities that are eigenvectors or sums over walks: see apps/verify/check.py."""

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from cusp import ADD, Answer, EdgeOperator, Label, Partition, Sync
from cusp.apps.verify.check import everywhere, require, tell_node
from cusp.runtime.devices import move

ALONG = EdgeOperator("value * weight", into="dst.arrived")
AGAINST = EdgeOperator("value * weight", into="src.arrived")
NOISE = 1e-13  # of the sum of all values: sums in another order differ by less
OFF = 1e-9  # how far a norm may be from 1


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


def verify_hits(
    part: Partition, sync: Sync, hubs: Any, authorities: Any, tolerance: float, weighted: bool
) -> None:  # fmt: skip
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


def _sums(part: Partition, sync: Sync, values: Any, step: EdgeOperator) -> Any:
    """(masters,) float64: sums over the edges where ``step`` writes. Collective."""
    arrived = Label(part, np.float64, 0, ADD)
    step(part, value=everywhere(part, sync, values, 0), arrived=arrived)
    sync.reduce(arrived, write=step.write)
    return arrived.masters()


def _check_change(sync: Sync, name: str, values: Any, new: Any, most: float, scale: Any = None) -> None:
    change, total = sync.total(float(abs(new - values).sum()), float((values if scale is None else scale).sum()))
    message = f"{name}: one more iteration changes the values by {change:.3g} in all, but {most:.3g} was asked for"
    require(sync, change <= most + NOISE * total, message)
