"""Shortest paths on the CPU: an edge operator; see interfaces.py for what is asked about its edges."""

import numpy as np

from cusp.apps.operators.interfaces import is_sparse
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from gluon.device_cpu import set_bit
from gluon.sync import Sync

NARROW = 1 / 4  # of the usual bucket, where ranks run ahead: what others lower later is relaxed again


def bucket_scale(part: Partition, way: str) -> float:
    return 1.0 if way != "rounds" or is_sparse(part) else NARROW


def most_hops(part: Partition, sync: Sync) -> int:
    return part.num_nodes


def settled_paths(part: Partition, sync: Sync, way: str, weights: np.ndarray, dtype: np.dtype) -> None:
    """Rows are not sorted by weight."""


@njit(cache=True, nogil=True)
def find_parents(offsets, sources, weights, gids, values, far, known, nobody, parents, updated):  # type: ignore[no-untyped-def]
    """Weights are taken as numbers of the values' type; one above all of them is below 0 then, and part of no path."""
    number = values.dtype.type
    for node in range(offsets.size - 1):
        value = values[node]
        if parents[node] == nobody and value != far:
            for edge in range(offsets[node], offsets[node + 1]):
                source, length = sources[edge], number(1)
                if weights is not None:
                    length = number(weights[edge])
                before = values[source]
                tight = 0 <= length <= value and before + length == value
                if tight and (before < value or known[source] != nobody):
                    parents[node] = gids[source]
                    set_bit(updated, node)
                    break
