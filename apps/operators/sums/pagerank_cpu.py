"""PageRank on the CPU: see interfaces.py."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cusp.apps.operators.sums.interfaces import Steps
from cusp.apps.operators.sums.rows_cpu import sum_plain_rows, sum_weighted_rows
from cusp.kernels.arrays import mapped
from cusp.kernels.bits import first_bit, unsigned
from cusp.runtime import threads
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.together import together
from cusp.runtime.threads import cut, in_parallel, num_threads, ranges, spans_of_blocks
from gluon.device_cpu import set_bit
from gluon.label import Label

MANY = 8  # a part of all nodes: if walks reach more, all are looked at, in their order


def begin(damping: float, precision: str, teleport: Any, strengths: Any, masters: int) -> tuple[Any, Any, Any]:
    factors, ranks = (np.empty(size, precision) for size in (strengths.size, masters))
    together(_begin, ranges(masters), factors.dtype.type(damping), strengths, factors, ranks)
    return mapped(lambda some: some, teleport, dtype=np.dtype(precision)), factors, ranks


@njit(cache=True, nogil=True, error_model="numpy")
def _begin(first, last, damping, strengths, factors, ranks):  # type: ignore[no-untyped-def]
    strengths, factors, ranks = strengths[first:last], factors[first:last], ranks[first:last]
    for node in range(ranks.size):
        ranks[node] = 0
    for node in range(factors.size):
        factors[node] = damping / factors.dtype.type(strengths[node])


def new_ranks(kept: Any, teleport: Any, factors: Any, sums: Any, ranks: Any, contributions: Any) -> tuple[float, float]:
    """Sums of blocks are added up in their order, for any number of threads."""
    arrays, size = (teleport, factors, sums, ranks, contributions), threads.BLOCK
    changes, dangling = np.zeros((2, -(-ranks.size // size)))
    pieces = spans_of_blocks(ranks.size)
    together(_new_ranks, pieces, ranks.dtype.type(kept), size, *arrays, changes, dangling)
    return sum(changes.tolist()), sum(dangling.tolist())


@njit(cache=True, nogil=True)
def _new_ranks(first, last, kept, size, teleport, factors, sums, ranks, contributions, changes, dangling):  # type: ignore[no-untyped-def]
    """Loops over slices, whose places need no test for those that count from the end: such loops take half as long."""
    alike, start = teleport.size == 1, kept * teleport[0] if teleport.size else kept
    for block in range(first, last):
        change = left = 0.0
        begin, end = block * size, min(block * size + size, ranks.size)
        starts, found, old = teleport[begin:end], sums[begin:end], ranks[begin:end]
        shares, given = factors[begin:end], contributions[begin:end]
        for node in range(shares.size):
            rank = found[node] + (start if alike else kept * starts[node])
            change += abs(np.float64(rank) - np.float64(old[node]))
            old[node] = rank
            given[node] = shares[node] * rank
            found[node] = 0
        for node in range(shares.size, old.size):
            rank = found[node] + (start if alike else kept * starts[node])
            change += abs(np.float64(rank) - np.float64(old[node]))
            old[node] = rank
            left += rank
            found[node] = 0
        changes[block], dangling[block] = change, left


def collect(pending: float, teleport: Any, residuals: Any) -> int:
    return int(_collect(pending, teleport, residuals))


@njit(cache=True, nogil=True)
def _collect(pending, teleport, residuals):  # type: ignore[no-untyped-def]
    total, alike = np.int64(0), teleport.size == 1
    for node in range(residuals.size):
        residuals[node] += np.int64(pending * teleport[0 if alike else node])
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


def ranks_from(
    steps: Steps, starts: Any, damping: float, tolerance: float, iterations: int | None,
    visit: Callable[[int, Any, Any, int, float], None],
) -> None:  # fmt: skip
    """Only nodes that are reached are looked at, while they are few."""
    size, weights = steps.factors.size, np.empty(0) if steps.weights is None else steps.weights
    limits = damping, tolerance, iterations or -1
    edges = unsigned(steps.offsets, steps.targets, steps.in_offsets, steps.sources)

    def some(first: int, last: int) -> None:
        seen, (ranks, given, got) = np.zeros(size, np.bool_), np.zeros((3, size))
        nodes = np.empty(size, np.uint32)
        for place in range(first, last):
            count, rounds, change = _ranks_from(
                np.uint32(starts[place]), *edges, weights, steps.factors, *limits, seen, nodes, ranks, given, got
            )  # fmt: skip
            visit(place, nodes[:count], ranks, int(rounds), float(change))
            for values in (seen, ranks, given):
                values[nodes[:count]] = 0

    in_parallel(some, cut(starts.size, min(starts.size, num_threads()) or 1))


@njit(cache=True, nogil=True)
def _ranks_from(  # type: ignore[no-untyped-def]
    start, offsets, targets, in_offsets, sources, weights, factors, damping, tolerance, iterations, seen, nodes, ranks,
    given, got,
):  # fmt: skip
    """Pulls, as those of all walks; ``seen``, ``ranks`` and ``given`` are 0. Returns nodes, rounds and change."""
    one, old, count, rounds, change, dangling = np.uint64(1), 0, 1, 0, 1.0, 0.0
    nodes[0], seen[start], ranks[start], given[start] = start, True, 1.0, factors[start]
    if factors[start] == 0:
        dangling = 1.0
    while change >= tolerance and rounds != iterations:
        last = count
        while old < last:
            node = nodes[old]
            old += 1
            for edge in range(offsets[node], offsets[node + one]):
                target = targets[edge]
                nodes[count if count < nodes.size else 0] = target if count < nodes.size else nodes[0]
                count += np.int64(not seen[target])
                seen[target] = True
        if count < nodes.size and count > nodes.size // MANY:
            count = old = nodes.size
            for node in range(count):
                nodes[node], seen[node] = node, True
        if weights.size:
            sum_weighted_rows(0, count, nodes, in_offsets, sources, given, got, weights)
        else:
            sum_plain_rows(0, count, nodes, in_offsets, sources, given, got)
        got[start] += 1 - damping + damping * dangling
        change = dangling = 0.0
        for node in nodes[:count]:
            rank = got[node]
            change += abs(rank - ranks[node])
            ranks[node], given[node] = rank, factors[node] * rank
            if factors[node] == 0:
                dangling += rank
        rounds += 1
    return count, rounds, change
