"""Verifier of widest paths: see apps/verify/check.py."""

import numpy as np
from numba import njit

from apps.verify.check import everywhere, raise_first, tell_node
from cusp.partition import Partition
from gluon.label import Label
from gluon.reduction import MAX
from gluon.sync import Sync


def verify_widths(part: Partition, sync: Sync, source: int, widths: np.ndarray) -> None:
    """Check the widths of widest paths from ``source``. Collective.

    1. The source is as wide as the type allows. 2. No edge of weight w leads from a node u to one that is narrower
    than both u and w; so no path is wider than what is claimed. 3. Walks from the source over edges to nodes that are
    exactly as wide as the narrower of the two reach all nodes that have a width; so every width is that of a path.

    Parameters
    ----------
    widths : (masters,) int64 or float64
        The lowest number of the type (-inf) where there is no path.

    Raises
    ------
    VerificationError
        On every rank.
    """
    real = widths.dtype.kind == "f"
    lowest = -np.inf if real else np.iinfo(widths.dtype).min
    largest = np.inf if real else np.iinfo(widths.dtype).max
    weights = np.ones(part.num_local_edges, np.uint8) if part.weights is None else part.weights
    if weights.dtype == np.uint64:
        weights = weights.clip(None, np.uint64(largest)).astype(np.int64)
    own = part.gids[: part.num_masters]
    tell_node(part, sync, "width: not the largest number at the source", (own == source) & (widths != largest))
    values = everywhere(part, sync, widths, lowest).values
    _tell_edge(part, sync, values, weights, *_first_violation(part.offsets, part.targets, weights, values))
    reached = Label(part, np.uint8, 0, MAX)
    reached.write(source, 1)
    while sync.total(reached.num_updated_masters()) != (0,):
        sync.broadcast(reached, read="src")
        _walk(reached.take_updated(), part.offsets, part.targets, weights, values, values.dtype.type(lowest),
              reached.values, reached.updated)  # fmt: skip
        sync.reduce(reached, write="dst")
    unexplained = (reached.values[: part.num_masters] == 0) & (widths != lowest)
    tell_node(part, sync, "width: no path that is so wide leads to node", unexplained)


@njit(cache=True, nogil=True)
def _first_violation(offsets, targets, weights, values):  # type: ignore[no-untyped-def]
    """Source and edge of the first edge that would make its target wider, or -1, -1."""
    for source in range(offsets.size - 1):
        for edge in range(offsets[source], offsets[source + 1]):
            if values[targets[edge]] < values[source] and values[targets[edge]] < weights[edge]:
                return source, edge
    return -1, -1


@njit(cache=True, nogil=True)
def _walk(lids, offsets, targets, weights, values, lowest, reached, updated):  # type: ignore[no-untyped-def]
    """Mark what the nodes ``lids`` explain: the targets that are as wide as the narrower of node and edge."""
    for source in lids:
        for edge in range(offsets[source], offsets[source + 1]):
            target = targets[edge]
            if reached[target] == 0 and values[target] != lowest:
                if values[target] == min(values[source], weights[edge]):
                    reached[target] = 1
                    updated[target >> 6] |= np.uint64(1) << np.uint64(target & 63)


def _tell_edge(part: Partition, sync: Sync, values: np.ndarray, weights: np.ndarray, source: int, edge: int) -> None:
    message = None
    if edge >= 0:
        target = part.targets[edge]
        message = (
            f"width of {part.gids[target]} is {values[target]}, but its in-neighbour {part.gids[source]} has "
            f"{values[source]} and the edge between them {weights[edge]}"
        )
    raise_first(sync, message)
