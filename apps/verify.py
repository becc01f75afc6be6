"""Verifiers: what must hold of an answer, checked on every edge by the ranks that store them.

They are stated as invariants, in the manner of Graph500's validation, and share no code with the
algorithms that they check.
"""

import numpy as np
from numba import njit

from cusp.errors import InputError
from cusp.partition import Partition
from gluon.label import Label
from gluon.reduction import MAX, MIN
from gluon.sync import Sync


class VerificationError(InputError):
    """An answer that breaks an invariant: a defect of this program."""


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
    _verify(part, sync, source, "hops", hops.astype(np.int64), ones, hops < 0)
    if parents is not None:
        _verify_parents(part, sync, source, hops, parents)


def verify_distances(part: Partition, sync: Sync, source: int, distances: np.ndarray, weights: np.ndarray) -> None:
    """Check distances from ``source``. Collective.

    1. The source has distance 0. 2. Triangle inequality: for each edge u -> v of weight w, v is at most
    w further away than u. 3. Every other reached node has a tight in-edge (exactly w further away), and
    following tight edges back leads to the source: with weights above 0 that needs no proof; else they
    are followed.

    Parameters
    ----------
    distances : (masters,) int64 with -1, or float64 with inf, where not reached
    weights : (edges,)

    Raises
    ------
    VerificationError
    """
    unreached = np.isinf(distances) if distances.dtype.kind == "f" else distances < 0
    _verify(part, sync, source, "distance", distances, weights, unreached)


def _verify(
    part: Partition, sync: Sync, source: int, name: str, answer: np.ndarray, weights: np.ndarray, unreached: np.ndarray
) -> None:
    far = np.inf if answer.dtype.kind == "f" else np.iinfo(answer.dtype).max
    values = everywhere(part, sync, np.where(unreached, far, answer), far)
    _check_source(part, sync, source, name, values.values)
    wrong = _first_violation(part.offsets, part.targets, weights, values.values, values.values.dtype.type(far))
    _tell(part, sync, name, values.values, weights, wrong)
    grounded = Label(part, np.uint8, 0, MAX)
    grounded.write(source, 1)
    follow = sync.lowest(weights.min() if weights.size else 1) <= 0
    lids = np.arange(part.num_proxies, dtype=np.int32)
    while True:
        if follow:
            sync.broadcast(grounded, read="src")
            lids = grounded.take_updated()
        _mark_tight(lids, part.offsets, part.targets, weights, values.values, values.values.dtype.type(far),
                    grounded.values, grounded.updated)  # fmt: skip
        sync.reduce(grounded, write="dst")
        if not follow or sync.total(grounded.num_updated_masters())[0] == 0:
            break
    own = slice(0, part.num_masters)
    tell_node(part, sync, f"{name}: no in-edge that explains node", ~unreached & (grounded.values[own] == 0))


def everywhere(part: Partition, sync: Sync, masters: np.ndarray, fill: float) -> Label:
    """A label with the masters' values on all proxies. Collective."""
    label = Label(part, masters.dtype, fill, MIN)
    label.values[: part.num_masters] = masters
    label.updated[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
    sync.broadcast(label, read="any")
    return label


def _check_source(part: Partition, sync: Sync, source: int, name: str, values: np.ndarray) -> None:
    own = values[: part.num_masters]
    is_source = part.gids[: part.num_masters] == source
    tell_node(part, sync, f"{name}: not 0 at the source", is_source & (own != 0))
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
def _mark_parents(offsets, targets, gids, hops, parents, found, updated):  # type: ignore[no-untyped-def]
    """Mark targets whose parent is the source of an edge from one hop closer."""
    for source in range(offsets.size - 1):
        for edge in range(offsets[source], offsets[source + 1]):
            target = targets[edge]
            if parents[target] == gids[source] and hops[target] == hops[source] + 1:
                found[target] = 1
                updated[target >> 6] |= np.uint64(1) << np.uint64(target & 63)


def _verify_parents(part: Partition, sync: Sync, source: int, hops: np.ndarray, parents: np.ndarray) -> None:
    hops_label = everywhere(part, sync, hops, -1)
    parents_label = everywhere(part, sync, parents, -1)
    found = Label(part, np.uint8, 0, MAX)
    _mark_parents(part.offsets, part.targets, part.gids, hops_label.values, parents_label.values,
                  found.values, found.updated)  # fmt: skip
    sync.reduce(found, write="dst")
    own = slice(0, part.num_masters)
    is_source = part.gids[own] == source
    right = np.where(is_source, parents == source, (found.values[own] == 1) | ((hops < 0) & (parents < 0)))
    tell_node(part, sync, "parents: no edge from one hop closer leads from its parent to node", ~right)


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


def tell_node(part: Partition, sync: Sync, message: str, wrong: np.ndarray) -> None:
    """Raise on every rank, with the first node that is wrong on some rank. Collective."""
    raise_first(sync, f"{message} {part.gids[int(np.argmax(wrong))]}" if wrong.any() else None)


def raise_first(sync: Sync, message: str | None) -> None:
    """Raise on every rank the message of the first that has one. Collective."""
    told = [text for text in sync.comm.allgather(message) if text is not None]
    if told:
        raise VerificationError(f"the answer is wrong: {told[0]}")
