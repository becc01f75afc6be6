"""Communities on the CPU: see interfaces.py."""

import numpy as np

from cusp.kernels.arrays import offsets_of, sizes_of
from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import in_parallel, row_ranges, row_spans


def best_communities(
    rows: np.ndarray, offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray,
    strengths: np.ndarray, totals: np.ndarray, priorities: np.ndarray, scale: float,
) -> np.ndarray:  # fmt: skip
    best = np.empty(rows.size, np.int64)
    spare: list[np.ndarray] = []  # of threads that have finished a piece

    def choose(first: int, last: int) -> None:
        try:
            to = spare.pop()
        except IndexError:
            to = np.full(totals.size, -1.0)
        given = offsets, targets, weights, numbers, strengths, totals, priorities, float(scale)
        _best(rows[first:last], *given, to, best[first:last])
        spare.append(to)

    in_parallel(choose, row_ranges(offsets_of(sizes_of(offsets, rows))))
    return best


def weight_inside(offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray) -> float:
    pieces = row_spans(offsets, 0, offsets.size - 1)
    return sum(in_parallel(lambda *rows: float(_inside(*rows, offsets, targets, weights, numbers)), pieces))


def edges_between(
    offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray, communities: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    joined = [np.empty(targets.size, dtype) for dtype in (np.int32, np.int32, np.float64)]
    size, inside = _join(offsets, targets, weights, numbers, communities, *joined)
    sources, ends, sums = (array[:size] for array in joined)
    return sources, ends, sums, inside


def sum_by_number(numbers: np.ndarray, values: np.ndarray, communities: int) -> np.ndarray:
    return np.bincount(numbers, values, communities)


@njit(cache=True, nogil=True)
def _best(  # type: ignore[no-untyped-def]
    rows, offsets, targets, weights, numbers, strengths, totals, priorities, scale, to, best
):
    """``to`` has the weight from a row to each community, and -1 for those that it has no edge to."""
    touched = np.empty(totals.size, np.int32)
    for i in range(rows.size):
        row = rows[i]
        own, strength, count = numbers[row], strengths[row], 0
        to[own] = 0.0
        for edge in range(offsets[row], offsets[row + 1]):
            community = numbers[targets[edge]]
            weight = to[community]
            if weight < 0:
                touched[count] = community
                count += 1
                weight = 0.0
            to[community] = weight + weights[edge]
        choice, highest = own, scale * to[own] - strength * (totals[own] - strength)
        to[own] = -1.0
        for k in range(count):
            community = touched[k]
            score = scale * to[community] - strength * totals[community]
            better = score == highest and choice != own and priorities[community] > priorities[choice]
            if score > highest or better:
                highest, choice = score, community
            to[community] = -1.0
        best[i] = choice


@njit(cache=True, nogil=True)
def _inside(begin, end, offsets, targets, weights, numbers):  # type: ignore[no-untyped-def]
    inside = 0.0
    for row in range(begin, end):
        for edge in range(offsets[row], offsets[row + 1]):
            if numbers[row] == numbers[targets[edge]]:
                inside += weights[edge]
    return inside


@njit(cache=True, nogil=True)
def _join(offsets, targets, weights, numbers, communities, sources, ends, sums):  # type: ignore[no-untyped-def]
    """Community by community, as rows of all its members one after the other."""
    rows = offsets.size - 1
    begins = np.zeros(communities + 2, np.int64)
    for row in range(rows):
        begins[numbers[row] + 2] += 1
    for community in range(communities):
        begins[community + 2] += begins[community + 1]
    members = np.empty(rows, np.int32)
    for row in range(rows):
        members[begins[numbers[row] + 1]] = row
        begins[numbers[row] + 1] += 1
    inside = np.zeros(communities, np.float64)
    place = np.full(communities, -1, np.int64)  # of the last entry that leads to each community
    count = 0
    for source in range(communities):
        first = count
        for member in range(begins[source], begins[source + 1]):
            for edge in range(offsets[members[member]], offsets[members[member] + 1]):
                end = numbers[targets[edge]]
                if end == source:
                    inside[source] += weights[edge]
                elif place[end] >= first:
                    sums[place[end]] += weights[edge]
                else:
                    place[end] = count
                    sources[count], ends[count], sums[count] = source, end, weights[edge]
                    count += 1
    return count, inside
