"""Verifiers of searches: hops, distances, widths, parents and forests. See apps/verify/check.py.

All check the same of the values of nodes. A value is *better* than another (a distance: smaller; a width: larger), and
an edge gives its target a *bound*, computed from its source's value and its weight:

1. Each source has the value that is right there.
2. No edge gives a bound better than its target's value; so no value is worse than that of any path.
3. Every other reached node has a *tight* in-edge, whose bound is the node's value, and following tight edges back leads
   to a source; so no value is better than that of some path. Where tight edges come from better values this needs
   no proof, since they cannot make a cycle. Nodes whose tight in-edges all come from equal values (edges of weight 0,
   equal widths) are *grounded* one after the other, from those that have an edge from a better one.

One pass over the edges checks 2, and another one most of 3.
"""

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from cusp import MAX, MIN, EdgeOperator, Label, Partition, Sync
from cusp.apps.verify.check import everywhere, raise_first, tell_edge, tell_node
from cusp.runtime.devices import move, xp_of

LEVEL, GROUNDED = 1, 2  # a node has a tight in-edge from an equal value, from a better one


class Paths(NamedTuple):
    """The kind of paths that a search finds.

    Attributes
    ----------
    name : str
        Of the values, in messages.
    bound : str
        What an edge gives its target, as an edge expression of ``src.value``.
    better : {'<', '>'}
    numbers : dict
        Other names in ``bound``.
    """

    name: str
    bound: str
    better: str = "<"
    numbers: dict[str, int] = {}


HOPS = Paths("hops", "src.value + 1")
DISTANCES = Paths("distance", "src.value + weight")
WIDTHS = Paths("width", "min(src.value, weight)", ">")


def _verify_lengths(paths: Paths, part: Partition, sync: Sync, source: int, lengths: Any, parents: Any = None) -> None:
    """Check hops or distances from ``source``, and parents if given; without weights every edge is 1 long. Collective.

    Parameters
    ----------
    lengths : (masters,) int32 or int64 with -1, or float64 with inf, where not reached
    parents : (masters,) int64, -1 where not reached, optional
        The source's is the source; the edge from that of another node is tight, and following them leads to the source.
    """
    lengths = move(lengths, part.device)
    reached = lengths != np.inf if lengths.dtype.kind == "f" else lengths >= 0
    values = _verify(part, sync, paths, {source: 0}, lengths, reached)
    if parents is None:
        return
    parents, is_source = move(parents, part.device), part.gids[: part.num_masters] == source
    tell_node(part, sync, "parents: the source must be its own parent: node", is_source & (parents != source))
    tell_node(part, sync, "parents: there is a parent for the unreached node", ~reached & (parents >= 0))
    tight = f"dst.parent == src.gid and {paths.bound} == dst.value"
    given = {"value": values, "parent": everywhere(part, sync, parents, -1)}
    message = "parents: no edge of the right length leads from its parent to node"
    _check_grounded(part, sync, tight, paths.better, reached, [source], message, **given)


verify_hops = functools.partial(_verify_lengths, HOPS)
verify_distances = functools.partial(_verify_lengths, DISTANCES)


def verify_forest(part: Partition, sync: Sync, roots: list[int], hops: Any, root: Any) -> None:
    """Check hops to the nearest of ``roots`` and which it is, the lowest of equals. Collective.

    As :func:`verify_hops` checks hops, with hops x nodes + root in place of hops.

    Parameters
    ----------
    hops : (masters,) int32, -1 where not reached
    root : (masters,) int64, -1 where not reached
    """
    hops, root = move(hops, part.device), move(root, part.device)
    pairs = Paths("hops x nodes + root", "src.value + one_hop", numbers={"one_hop": part.num_nodes})
    starts = {node: node for node in roots}
    _verify(part, sync, pairs, starts, hops.astype(np.int64) * part.num_nodes + root, hops >= 0)


def verify_widths(part: Partition, sync: Sync, source: int, width: Any) -> None:
    """Check the widths of widest paths from ``source``; without weights every edge has the width 1. Collective.

    Parameters
    ----------
    width : (masters,) int64 or float64
        The lowest number of the type (-inf) where there is no path, the largest (inf) at the source.
    """
    width = move(width, part.device)
    lowest, largest = _limits(width.dtype)
    _verify(part, sync, WIDTHS, {source: largest}, width, width != lowest)


def _limits(dtype: np.dtype) -> tuple[Any, Any]:
    """The lowest and the largest number of a type."""
    return MAX.identity(dtype).item(), MIN.identity(dtype).item()


def _verify(part: Partition, sync: Sync, paths: Paths, starts: dict[int, Any], answer: Any, reached: Any) -> Label:
    """Check the three invariants; returns the values of all proxies. Collective.

    Parameters
    ----------
    starts : dict
        The sources, and what is right there.
    answer, reached : (masters,) numbers, bool
    """
    lowest, largest = _limits(answer.dtype)
    far = largest if paths.better == "<" else lowest
    xp = xp_of(part.device)
    values = everywhere(part, sync, xp.where(reached, answer, answer.dtype.type(far)), far)
    message = None
    for source, expected in starts.items():
        lid = part.lid(source)
        if 0 <= lid < part.num_masters and not values.values[lid] == expected:
            message = f"{paths.name}: not {expected} at the source {source}"
    raise_first(sync, message)
    if paths.better == "<":
        tell_node(part, sync, f"{paths.name}: below 0 at node", values.masters() < 0)
    _check_bounds(part, sync, paths, values)
    message = f"{paths.name}: no in-edge justifies the value of node"
    tight = f"{paths.bound} == dst.value"
    _check_grounded(part, sync, tight, paths.better, reached, starts, message, value=values, **paths.numbers)
    return values


def _check_grounded(
    part: Partition, sync: Sync, tight: str, better: str, needed: Any, starts: Iterable[int], message: str, **given: Any
) -> None:
    """Raise if following tight edges back does not lead from all nodes that need it to a start. Collective."""
    support, grounded = Label(part, np.int32, 0, MAX), Label(part, np.int32, 0, MAX)
    find_support, grow = _grounding(tight, better)
    find_support(part, support=support, **given)
    sync.reduce(support, write="dst")
    for source in starts:
        grounded.write(source, 1)
    grounded.masters()[support.masters() == GROUNDED] = 1
    left = needed & (grounded.masters() == 0)
    tell_node(part, sync, message, left & (support.masters() == 0))
    if sync.total(int(left.sum())) == (0,):
        return
    grounded = everywhere(part, sync, grounded.masters(), 0, MAX)
    grounded.swap_updated()
    grow(part, grounded=grounded, **given)
    sync.reduce(grounded, write="dst")
    sync.broadcast(grounded, read="src")
    grow.until_quiet(part, sync, grounded=grounded, **given)
    tell_node(part, sync, message, needed & (grounded.masters() == 0))


@functools.cache
def _grounding(tight: str, better: str) -> tuple[EdgeOperator, EdgeOperator]:
    """What finds the best tight in-edge of each node, and what grounds nodes along those from equal values."""
    best = f"{GROUNDED} if src.value {better} dst.value else {LEVEL}"
    level = f"src.grounded > dst.grounded and src.value == dst.value and {tight}"
    conditions = [tight, f"dst.support < {GROUNDED}"]
    if "weight" not in tight and "parent" not in tight:  # then many edges are tight: what is rarely true comes first
        conditions.reverse()
    return (
        EdgeOperator(best, into="dst.support", where=" and ".join(conditions)),
        EdgeOperator("grounded", into="dst.grounded", where=level, priority="0"),  # all are equal, so each rank drains
    )


def _check_bounds(part: Partition, sync: Sync, paths: Paths, values: Label) -> None:
    """Raise if an edge gives too good a bound, or leads from a node with a path to one without. Collective."""
    dtype = values.values.dtype

    def describe(source: int, target: int, weights: np.ndarray) -> str:
        weight = weights.min() if paths.better == "<" else weights.max()
        over = f"an edge of weight {weight}" if "weight" in paths.bound else "an edge"
        return (
            f"{paths.name} of node {int(part.gids[source])} is {values.values[source]}, but that of its out-neighbour "
            f"{int(part.gids[target])} is {values.values[target]}, over {over}"
        )

    wrong, numbers = f"{paths.bound} {paths.better} dst.value", paths.numbers
    if paths.better == "<":  # a bound may be too large for its type, and as good as that of a node that is not reached
        wrong, numbers = f"{wrong} or src.value < far <= dst.value", numbers | {"far": MIN.identity(dtype).item()}
    tell_edge(part, sync, wrong, describe, value=values, **numbers)
