"""PageRank on the CPU: see interfaces.py."""

from typing import Any

import numpy as np

from cusp.kernels.bits import first_bit, unsigned
from cusp.runtime import threads
from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import in_parallel, ranges, spans_of_blocks
from gluon.device_cpu import set_bit
from gluon.label import Label


def begin(damping: float, precision: str, teleport: Any, strengths: Any) -> tuple[Any, Any, Any]:
    starts, factors, ranks = (np.empty(array.size, precision) for array in (teleport, strengths, teleport))

    def some(first: int, last: int) -> None:
        starts[first:last], ranks[first:last] = teleport[first:last], 0
        factors[first:last] = damping / strengths[first:last].astype(precision)

    in_parallel(some, ranges(teleport.size))
    return starts, factors, ranks


def new_ranks(kept: Any, teleport: Any, factors: Any, sums: Any, ranks: Any, contributions: Any) -> tuple[float, float]:
    """Sums of blocks are added up in their order, for any number of threads."""
    arrays, size = (teleport, factors, sums, ranks, contributions), threads.BLOCK
    changes, dangling = np.zeros((2, -(-ranks.size // size)))

    def some(first: int, last: int) -> None:
        _new_ranks(ranks.dtype.type(kept), size, first, last, *arrays, changes, dangling)

    in_parallel(some, spans_of_blocks(ranks.size))
    return sum(changes.tolist()), sum(dangling.tolist())


@njit(cache=True, nogil=True)
def _new_ranks(kept, size, first, last, teleport, factors, sums, ranks, contributions, changes, dangling):  # type: ignore[no-untyped-def]
    """Loops over slices, whose places need no test for those that count from the end: such loops take half as long."""
    for block in range(first, last):
        change = left = 0.0
        begin, end = block * size, min(block * size + size, ranks.size)
        starts, found, old = teleport[begin:end], sums[begin:end], ranks[begin:end]
        shares, given = factors[begin:end], contributions[begin:end]
        for node in range(shares.size):
            rank = found[node] + kept * starts[node]
            change += abs(np.float64(rank) - np.float64(old[node]))
            old[node] = rank
            given[node] = shares[node] * rank
            found[node] = 0
        for node in range(shares.size, old.size):
            rank = found[node] + kept * starts[node]
            change += abs(np.float64(rank) - np.float64(old[node]))
            old[node] = rank
            left += rank
            found[node] = 0
        changes[block], dangling[block] = change, left


def collect(pending: float, teleport: Any, residuals: Any) -> int:
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


def push_shares(frontier: Any, shares: Any, residuals: Label) -> None:
    part = residuals.part
    _push_shares(frontier, *unsigned(part.offsets, part.targets), shares, residuals.values)
    _mark_nonzero(part.num_masters, residuals.values, residuals.updated)


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
