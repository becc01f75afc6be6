"""Communities on the CPU: see interfaces.py."""

import numpy as np

from cusp.runtime.compiled_code import njit


def best_communities(
    rows: np.ndarray, offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray,
    strengths: np.ndarray, totals: np.ndarray, priorities: np.ndarray, scale: float,
) -> np.ndarray:  # fmt: skip
    return _best(rows, offsets, targets, weights, numbers, strengths, totals, priorities, float(scale))


def weight_inside(offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray) -> float:
    return float(_inside(offsets, targets, weights, numbers))


def join_targets(
    offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray, communities: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    entries, sums = np.empty(targets.size, np.int32), np.empty(targets.size, np.float64)
    begins, inside = _join(offsets, targets, weights, numbers, communities, entries, sums)
    return begins, entries[: begins[-1]], sums[: begins[-1]], inside


def sum_by_number(numbers: np.ndarray, values: np.ndarray, communities: int) -> np.ndarray:
    return np.bincount(numbers, values, communities)


@njit(cache=True, nogil=True)
def _best(rows, offsets, targets, weights, numbers, strengths, totals, priorities, scale):  # type: ignore[no-untyped-def]
    best = np.empty(rows.size, np.int64)
    to = np.zeros(totals.size, np.float64)  # weight to each community, from one row
    seen = np.zeros(totals.size, np.bool_)
    touched = np.empty(totals.size, np.int64)
    for i in range(rows.size):
        row = rows[i]
        own = numbers[row]
        touched[0] = own
        seen[own] = True
        count = 1
        for edge in range(offsets[row], offsets[row + 1]):
            community = numbers[targets[edge]]
            to[community] += weights[edge]
            if not seen[community]:
                seen[community] = True
                touched[count] = community
                count += 1
        choice = own
        highest = scale * to[own] - strengths[row] * (totals[own] - strengths[row])
        for k in range(1, count):
            community = touched[k]
            score = scale * to[community] - strengths[row] * totals[community]
            better = score == highest and choice != own and priorities[community] > priorities[choice]
            if score > highest or better:
                highest = score
                choice = community
        best[i] = choice
        for k in range(count):
            to[touched[k]] = 0.0
            seen[touched[k]] = False
    return best


@njit(cache=True, nogil=True)
def _inside(offsets, targets, weights, numbers):  # type: ignore[no-untyped-def]
    inside = 0.0
    for row in range(offsets.size - 1):
        for edge in range(offsets[row], offsets[row + 1]):
            if numbers[row] == numbers[targets[edge]]:
                inside += weights[edge]
    return inside


@njit(cache=True, nogil=True)
def _join(offsets, targets, weights, numbers, communities, entries, sums):  # type: ignore[no-untyped-def]
    begins = np.zeros(offsets.size, np.int64)
    inside = np.zeros(offsets.size - 1, np.float64)
    place = np.empty(communities, np.int64)  # of the entry for each community
    last = np.full(communities, -1, np.int64)  # row that made one
    count = 0
    for row in range(offsets.size - 1):
        for edge in range(offsets[row], offsets[row + 1]):
            community = numbers[targets[edge]]
            if community == numbers[row]:
                inside[row] += weights[edge]
            elif last[community] == row:
                sums[place[community]] += weights[edge]
            else:
                last[community], place[community] = row, count
                entries[count], sums[count] = community, weights[edge]
                count += 1
        begins[row + 1] = count
    return begins, inside
