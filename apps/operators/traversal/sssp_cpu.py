"""Shortest paths on the CPU: an edge operator; see interfaces.py for what is asked about its edges."""

from typing import Any

import numpy as np

from cusp.apps.operators.interfaces import is_sparse
from cusp.partition import Partition
from gluon.sync import Sync

NARROW = 1 / 4  # of the usual bucket, where ranks run ahead: what others lower later is relaxed again


def plan_relaxing(part: Partition, sync: Sync, weights: np.ndarray, dtype: np.dtype) -> float:
    return 1.0 if sync.plan.apart or is_sparse(part) else NARROW


def bucket_scale(queue: float, sync: Sync) -> float:
    return queue


def most_hops(part: Partition, sync: Sync) -> int:
    return part.num_nodes


def drains(queue: Any, sync: Sync) -> bool:
    """An edge operator does it all."""
    return False


def settles(queue: Any) -> bool:
    """Rows are not sorted by weight."""
    return False
