"""Checks of a tree of shortest paths against input edges, on the GPU: see interfaces.py."""

from typing import Any

import cupy as cp
import numpy as np

CHUNK = 1 << 26  # edges checked at a time; temporary arrays take about 4 GB


def check_edges(
    sources: Any, targets: Any, lengths: Any, parent: Any, depth: Any, far: Any, joined: Any
) -> tuple[int, int]:
    traversed = 0
    for begin in range(0, sources.size, CHUNK):
        part = slice(begin, begin + CHUNK)
        left, right = sources[part], targets[part]
        length = 1 if lengths is None else lengths[part].astype(np.float64)
        at_left, at_right = depth[left], depth[right]
        wrong = (at_left > at_right + length) | (at_right > at_left + length)
        if bool(wrong.any()):
            return begin + int(wrong.argmax()), traversed
        traversed += int(cp.count_nonzero(at_left != far))
        joined[right[(parent[right] == left) & (at_left + length == at_right)]] = True
        joined[left[(parent[left] == right) & (at_right + length == at_left)]] = True
    return -1, traversed
