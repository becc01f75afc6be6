"""Communities on the CPU: see interfaces.py."""

from typing import Any

import numpy as np

from cusp.kernels import build_cpu as build
from cusp.kernels.arrays import add_up, joined, offsets_of, sizes_of
from cusp.kernels.bits import unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import in_parallel, row_ranges, row_spans


def best_communities(
    rows: np.ndarray, offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray,
    strengths: np.ndarray, totals: np.ndarray, priorities: np.ndarray, scale: float,
) -> np.ndarray:  # fmt: skip
    best = np.empty(rows.size, np.int64)
    spare: list[np.ndarray] = []  # of threads that have finished a piece
    pieces = row_ranges(offsets_of(sizes_of(offsets, rows)))
    rows, offsets, targets, numbers = unsigned(rows, offsets, targets, numbers)

    def choose(first: int, last: int) -> None:
        to = _take_spare(spare, totals.size, -1, np.float64)
        given = offsets, targets, weights, numbers, strengths, totals, priorities, float(scale)
        _best(rows[first:last], *given, to, best[first:last])
        spare.append(to)

    in_parallel(choose, pieces)
    return best


def _take_spare(spare: list[np.ndarray], size: int, fill: float, dtype: Any) -> np.ndarray:
    """An array of a thread that has finished, or another."""
    try:
        return spare.pop()
    except IndexError:
        return np.full(size, fill, dtype)


def weight_inside(
    offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray, kept: np.ndarray | None = None
) -> np.ndarray:
    inside = np.empty(offsets.size - 1, np.float64)
    pieces = row_spans(offsets, 0, inside.size)
    offsets, targets, numbers = unsigned(offsets, targets, numbers)
    given = offsets, targets, weights, numbers, inside, np.empty(0, np.float64) if kept is None else kept
    in_parallel(lambda *rows: _inside(*rows, *given), pieces)
    return inside


def edges_between(
    offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray, communities: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rows, none = offsets.size - 1, np.empty(0, np.uint8)
    begins, members = np.zeros(communities + 1, np.int64), np.empty(rows, np.int32)
    build.count_in_edges(numbers[:rows], begins)
    add_up(begins)
    each = np.arange(rows + 1)
    build.transpose(0, each, numbers[:rows], none, 0, communities, begins[:-1].copy(), members, none)
    before = offsets_of(sizes_of(offsets, members))[begins]  # entries in the rows of the communities before each
    given = [np.empty(targets.size, dtype) for dtype in (np.int32, np.int32, np.float64)]
    inside, spare = np.zeros(communities, np.float64), list[np.ndarray]()
    members, offsets, targets, numbers = unsigned(members, offsets, targets, numbers)

    def join(first: int, last: int) -> int:
        place = _take_spare(spare, communities, -1, np.int64)
        rest = (offsets, targets, weights, numbers, inside, place, int(before[first]), *given)
        end = int(_join(first, begins[first : last + 1], members, *rest))
        spare.append(place)
        return end

    pieces = row_ranges(before)
    ends = in_parallel(join, pieces)
    spans = [(int(before[first]), end) for (first, _), end in zip(pieces, ends)]
    sources, targets, sums = (joined([array[begin:end] for begin, end in spans]) for array in given)
    return sources, targets, sums, inside


def sum_by_number(numbers: np.ndarray, values: np.ndarray, communities: int) -> np.ndarray:
    return np.bincount(numbers, values, communities)


@njit(cache=True, nogil=True)
def _best(  # type: ignore[no-untyped-def]
    rows, offsets, targets, weights, numbers, strengths, totals, priorities, scale, to, best
):
    """``to`` has the weight from a row to each community, and -1 for those that it has no edge to.

    Places are unsigned, here and below.
    """
    touched = np.empty(totals.size, np.uint32)
    for i in range(rows.size):
        row = rows[i]
        own, strength, count = numbers[row], strengths[row], 0
        to[own] = 0.0
        for edge in range(offsets[row], offsets[row + np.uint64(1)]):
            community = numbers[targets[edge]]
            weight = to[community]
            if weight < 0:
                touched[count] = community
                count += 1
                weight = 0.0
            to[community] = weight + weights[edge]
        choice, highest = own, scale * to[own] - strength * (abs(totals[own]) - strength)
        to[own] = -1.0
        for k in range(count):
            community = touched[k]
            score = scale * to[community] - strength * totals[community]
            to[community] = -1.0
            if totals[community] < 0:
                continue
            better = score == highest and choice != own and priorities[community] > priorities[choice]
            if score > highest or better:
                highest, choice = score, community
        best[i] = choice


@njit(cache=True, nogil=True)
def _inside(begin, end, offsets, targets, weights, numbers, inside, kept):  # type: ignore[no-untyped-def]
    for row in range(begin, end):
        weight, own = 0.0, numbers[row]
        for edge in range(offsets[row], offsets[row + 1]):
            if own == numbers[targets[edge]]:
                weight += weights[edge]
        inside[row] = weight
        if kept.size:
            for edge in range(offsets[row], offsets[row + 1]):
                kept[edge] = weights[edge] if own == numbers[targets[edge]] else 0.0


@njit(cache=True, nogil=True)
def _join(  # type: ignore[no-untyped-def]
    source, begins, members, offsets, targets, weights, numbers, inside, place, count, sources, ends, sums
):
    """From community ``source`` on, the rows of all its members one after the other; entries from ``count`` on.

    ``place`` is where the last entry that leads to each community is, and -1 again in the end.
    """
    begin = count
    for i in range(begins.size - 1):
        first = count
        for member in members[begins[i] : begins[i + 1]]:
            for edge in range(offsets[member], offsets[member + 1]):
                end = numbers[targets[edge]]
                if end == source + i:
                    inside[source + i] += weights[edge]
                elif place[end] >= first:
                    sums[place[end]] += weights[edge]
                else:
                    place[end] = count
                    sources[count], ends[count], sums[count] = source + i, end, weights[edge]
                    count += 1
    for end in ends[begin:count]:
        place[end] = -1
    return count
