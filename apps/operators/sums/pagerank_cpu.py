"""PageRank on the CPU: what masters do between two passes over the edges, and a pass that pushes residuals."""

from typing import Any

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import set_bit
from cusp.kernels.bits import first_bit


def new_ranks(kept: Any, teleport: Any, factors: Any, sums: Any, ranks: Any, contributions: Any) -> tuple[float, float]:
    """Ranks of the masters from the sums over their in-edges, and what they contribute in turn.

    ``ranks`` = ``sums + kept * teleport``, and ``contributions`` = ``factors * ranks`` for the first nodes, which are
    those with out-edges. ``sums`` are 0 afterwards.

    Returns
    -------
    change : float
        Sum of the absolute differences of the ranks.
    dangling : float
        Sum of the ranks of nodes without out-edges.
    """
    change, dangling = _new_ranks(ranks.dtype.type(kept), teleport, factors, sums, ranks, contributions)
    return change, dangling


@njit(cache=True, nogil=True)
def _new_ranks(kept, teleport, factors, sums, ranks, contributions):  # type: ignore[no-untyped-def]
    change = dangling = 0.0
    for node in range(factors.size):
        rank = sums[node] + kept * teleport[node]
        change += abs(np.float64(rank) - np.float64(ranks[node]))
        ranks[node] = rank
        contributions[node] = factors[node] * rank
        sums[node] = 0
    for node in range(factors.size, ranks.size):
        rank = sums[node] + kept * teleport[node]
        change += abs(np.float64(rank) - np.float64(ranks[node]))
        ranks[node] = rank
        dangling += rank
        sums[node] = 0
    return change, dangling


def collect(pending: float, teleport: Any, residuals: Any) -> int:
    """Add ``pending * teleport``, rounded down, to the int64 residuals; returns the sum of their absolute values."""
    return int(_collect(pending, teleport, residuals))


@njit(cache=True, nogil=True)
def _collect(pending, teleport, residuals):  # type: ignore[no-untyped-def]
    total = np.int64(0)
    for node in range(residuals.size):
        residuals[node] += np.int64(pending * teleport[node])
        total += abs(residuals[node])
    return total


def settle(
    threshold: float, damping: float, degrees: Any, residuals: Any, settled: Any, shares: Any, updated: Any
) -> tuple[int, int]:
    """Masters settle their residuals that are, without sign, above ``threshold`` times their out-degree.

    Each out-neighbour will get a share: ``damping`` times an equal part, rounded to a whole number towards 0. The
    amount behind the shares moves from ``residuals`` to ``settled``; both are int64.

    Returns
    -------
    moved, dangling : int
        What all masters settled, and what the ones without out-edges settled.
    """
    moved, dangling = _settle(threshold, damping, degrees, residuals, settled, shares, updated)
    return moved, dangling


@njit(cache=True, nogil=True)
def _settle(threshold, damping, degrees, residuals, settled, shares, updated):  # type: ignore[no-untyped-def]
    total = dangling = np.int64(0)
    for node in range(degrees.size):
        residual, degree = residuals[node], degrees[node]
        moved = residual
        if degree == 0:
            dangling += residual
        elif abs(residual) > threshold * degree:
            share = np.int64(damping * residual / degree)
            moved = np.int64(np.float64(share * degree) / damping)
            shares[node] = share
            set_bit(updated, node)
        else:
            continue
        residuals[node] -= moved
        settled[node] += moved
        total += moved
    return total, dangling


def push_shares(
    frontier: Any, offsets: Any, targets: Any, shares: Any, residuals: Any, updated: Any, masters: int, queue: Any
) -> None:
    """Every frontier node adds its share to the residuals of its out-neighbours; mirrors that have some are updated."""
    _push_shares(frontier, offsets.view(np.uint64), targets.view(np.uint32), shares, residuals)
    _mark_nonzero(masters, residuals, updated)


@njit(cache=True, nogil=True)
def _push_shares(frontier, offsets, targets, shares, residuals):  # type: ignore[no-untyped-def]
    for word in range(frontier.size):
        bits = frontier[word]
        while bits:
            source = np.uint64(word * 64 + first_bit(bits))
            bits &= bits - np.uint64(1)
            share = shares[source]
            for edge in range(offsets[source], offsets[source + np.uint64(1)]):
                residuals[targets[edge]] += share


@njit(cache=True, nogil=True)
def _mark_nonzero(first, values, updated):  # type: ignore[no-untyped-def]
    for lid in range(first, values.size):
        if values[lid] != 0:
            set_bit(updated, lid)
