"""Verifiers of searches: hops, distances, parents and forests; see apps/verify/check.py."""

from collections.abc import Callable, Iterable

import numpy as np
from numba import njit

from apps.verify.check import everywhere, raise_first, tell_node
from cusp.partition import Partition
from gluon.label import Label
from gluon.reduction import MAX
from gluon.sync import Sync


def verify_hops(part: Partition, sync: Sync, source: int, hops: np.ndarray, parents: np.ndarray | None = None) -> None:
    """Check hops, and parents if given, from ``source``. Collective.

    1. The source, and only it, has 0 hops. 2. No edge leads from a reached node to one that is not
    reached or more than one hop further away; so all that can be reached is. 3. Every other reached
    node has an in-neighbour exactly one hop closer; so hops are neither too small. 4. A node's parent
    is one of those, and the source's parent is the source.

    Parameters
    ----------
    hops : (masters,) int32, -1 where not reached
    parents : (masters,) int64, -1 where not reached, optional

    Raises
    ------
    VerificationError
        On every rank, with the first node or edge that is wrong.
    """
    ones = np.ones(part.num_local_edges, np.uint8)
    _verify(part, sync, {source: 0}, "hops", hops.astype(np.int64), ones, hops < 0)
    if parents is not None:
        _verify_parents(part, sync, source, hops, hops < 0, parents, ones)


def verify_distances(
    part: Partition, sync: Sync, source: int, distances: np.ndarray, weights: np.ndarray,
    parents: np.ndarray | None = None,
) -> None:  # fmt: skip
    """Check distances from ``source``. Collective.

    1. The source has distance 0. 2. Triangle inequality: for each edge u -> v of weight w, v is at most
    w further away than u. 3. Every other reached node has a tight in-edge (exactly w further away), and
    following tight edges back leads to the source: with weights above 0 that needs no proof; else they
    are followed. 4. The same of the edges from parents alone, if those are given.

    Parameters
    ----------
    distances : (masters,) int64 with -1, or float64 with inf, where not reached
    weights : (edges,)
    parents : (masters,) int64, -1 where not reached, optional

    Raises
    ------
    VerificationError
    """
    unreached = np.isinf(distances) if distances.dtype.kind == "f" else distances < 0
    _verify(part, sync, {source: 0}, "distance", distances, weights, unreached)
    if parents is not None:
        _verify_parents(part, sync, source, distances, unreached, parents, weights)


def verify_forest(part: Partition, sync: Sync, roots: list[int], hops: np.ndarray, root: np.ndarray) -> None:
    """Check hops to the nearest of ``roots`` and which it is, the lowest of equals. Collective.

    As :func:`verify_hops` checks hops, with pairs (hops, root) in place of numbers.

    Parameters
    ----------
    hops : (masters,) int32, -1 where not reached
    root : (masters,) int64, -1 where not reached

    Raises
    ------
    VerificationError
        On every rank.
    """
    one_hop = part.num_nodes
    pairs = hops.astype(np.int64) * one_hop + root
    edges = np.full(part.num_local_edges, one_hop)
    _verify(part, sync, {node: node for node in roots}, "hops x nodes + root", pairs, edges, hops < 0)


def _verify(
    part: Partition, sync: Sync, starts: dict[int, int], name: str, answer: np.ndarray, weights: np.ndarray,
    unreached: np.ndarray,
) -> None:  # fmt: skip
    """``starts`` are the sources and what is right there."""
    far = np.inf if answer.dtype.kind == "f" else np.iinfo(answer.dtype).max
    values = everywhere(part, sync, np.where(unreached, far, answer), far)
    _check_starts(part, sync, starts, name, values.values)
    wrong = _first_violation(part.offsets, part.targets, weights, values.values, values.values.dtype.type(far))
    _tell(part, sync, name, values.values, weights, wrong)
    far = values.values.dtype.type(far)
    grounded = _grow(part, sync, starts, weights, lambda lids, marks: _mark_tight(
        lids, part.offsets, part.targets, weights, values.values, far, marks.values, marks.updated
    ))  # fmt: skip
    tell_node(part, sync, f"{name}: no in-edge that explains node", ~unreached & ~grounded)


def _grow(
    part: Partition, sync: Sync, starts: Iterable[int], weights: np.ndarray, mark: Callable[[np.ndarray, Label], None]
) -> np.ndarray:
    """Which masters (bool) ``mark`` reaches: from all nodes at once, or where edges have length 0 from the starts on.

    Collective. ``mark`` sets a label at targets of edges from nodes, given by local id.
    """
    marks = Label(part, np.uint8, 0, MAX)
    for source in starts:
        marks.write(source, 1)
    follow = sync.lowest(weights.min() if weights.size else 1) <= 0
    lids = np.arange(part.num_proxies, dtype=np.int32)
    while True:
        if follow:
            sync.broadcast(marks, read="src")
            lids = marks.take_updated()
        mark(lids, marks)
        sync.reduce(marks, write="dst")
        if not follow or sync.total(marks.num_updated_masters())[0] == 0:
            return marks.values[: part.num_masters] == 1


def _check_starts(part: Partition, sync: Sync, starts: dict[int, int], name: str, values: np.ndarray) -> None:
    own, gids = values[: part.num_masters], part.gids[: part.num_masters]
    for source, expected in starts.items():
        tell_node(part, sync, f"{name}: not {expected} at the source", (gids == source) & (own != expected))
    tell_node(part, sync, f"{name}: below 0", own < 0)


@njit(cache=True, nogil=True)
def _first_violation(offsets, targets, weights, values, far):  # type: ignore[no-untyped-def]
    """Source and edge of the first edge that breaks the triangle inequality, or -1, -1."""
    for source in range(offsets.size - 1):
        if values[source] != far:
            for edge in range(offsets[source], offsets[source + 1]):
                bound = values[source] + weights[edge]
                if bound >= 0 and values[targets[edge]] > bound:  # a sum that wraps bounds nothing
                    return source, edge
    return -1, -1


@njit(cache=True, nogil=True)
def _mark_tight(lids, offsets, targets, weights, values, far, grounded, updated):  # type: ignore[no-untyped-def]
    """Mark the targets of the tight out-edges of the nodes ``lids``."""
    for source in lids:
        if values[source] != far:
            for edge in range(offsets[source], offsets[source + 1]):
                target = targets[edge]
                if grounded[target] == 0 and values[target] == values[source] + weights[edge]:
                    grounded[target] = 1
                    updated[target >> 6] |= np.uint64(1) << np.uint64(target & 63)


@njit(cache=True, nogil=True)
def _mark_children(lids, offsets, targets, weights, gids, values, far, parents, marks, updated):  # type: ignore[no-untyped-def]
    """Mark the targets that the nodes ``lids`` are parents of, over an edge as long as their distances say."""
    for source in lids:
        if 0 <= values[source] and values[source] != far:
            for edge in range(offsets[source], offsets[source + 1]):
                target = targets[edge]
                if parents[target] == gids[source] and values[target] == values[source] + weights[edge]:
                    marks[target] = 1
                    updated[target >> 6] |= np.uint64(1) << np.uint64(target & 63)


def _verify_parents(
    part: Partition, sync: Sync, source: int, distances: np.ndarray, unreached: np.ndarray, parents: np.ndarray,
    weights: np.ndarray,
) -> None:  # fmt: skip
    values, chosen = everywhere(part, sync, distances, -1).values, everywhere(part, sync, parents, -1).values
    far = values.dtype.type(np.inf if values.dtype.kind == "f" else -1)
    found = _grow(part, sync, [source], weights, lambda lids, marks: _mark_children(
        lids, part.offsets, part.targets, weights, part.gids, values, far, chosen, marks.values, marks.updated
    ))  # fmt: skip
    is_source = part.gids[: part.num_masters] == source
    right = np.where(is_source, parents == source, np.where(unreached, parents < 0, found))
    tell_node(part, sync, "parents: no edge as long as their distances say leads from its parent to node", ~right)


def _tell(
    part: Partition, sync: Sync, name: str, values: np.ndarray, weights: np.ndarray, wrong: tuple[int, int]
) -> None:
    source, edge = wrong
    message = None
    if edge >= 0:
        target = part.targets[edge]
        message = (
            f"{name} of {part.gids[source]} is {values[source]}, but {values[target]} of its out-neighbour "
            f"{part.gids[target]} over an edge of length {weights[edge]}"
        )
    raise_first(sync, message)
