"""Communities on the GPU: see interfaces.py. Sorts and sums of CuPy, no kernel of our own."""

from typing import Any

import cupy as cp
import numpy as np


def best_communities(
    rows: Any, offsets: Any, sources: Any, targets: Any, weights: Any, numbers: Any, strengths: Any, totals: Any,
    priorities: Any, scale: float,
) -> Any:  # fmt: skip
    chosen = cp.zeros(numbers.size, np.bool_)
    chosen[rows] = True
    edges = cp.flatnonzero(chosen[sources])
    own, starts = numbers[rows], sources[edges].astype(np.int64)
    pairs = cp.concatenate([rows * totals.size + own, starts * totals.size + numbers[targets[edges]]])
    values = cp.concatenate([cp.zeros(rows.size, np.float64), weights[edges]])
    pairs, group = cp.unique(pairs, return_inverse=True)  # a row and a community
    to = cp.bincount(group, weights=values, minlength=pairs.size)
    place = cp.searchsorted(rows, pairs // totals.size)
    community = pairs % totals.size
    row = rows[place]
    mine = community == own[place]
    others = totals[community] - cp.where(mine, strengths[row], 0.0)
    score = scale * to - strengths[row] * others
    highest = _highest(place, score, rows.size)
    # of those that are equally high: infinity for the own one, else the priority
    rank = cp.where(score == highest[place], cp.where(mine, np.inf, priorities[community]), -np.inf)
    best = cp.flatnonzero(rank == _highest(place, rank, rows.size)[place])
    answer = cp.empty(rows.size, np.int64)
    answer[place[best]] = community[best]
    return answer


def _highest(place: Any, values: Any, size: int) -> Any:
    highest = cp.full(size, -np.inf, np.float64)
    cp.maximum.at(highest, place, values)
    return highest
