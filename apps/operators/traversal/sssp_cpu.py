"""Shortest paths on the CPU: an edge operator; see interfaces.py for what is asked about its edges."""

import numpy as np

from cusp.apps.operators.interfaces import is_sparse
from cusp.partition import Partition
from gluon.sync import Sync

NARROW = 1 / 4  # of the usual bucket, where ranks run ahead: what others lower later is relaxed again


def bucket_scale(part: Partition, way: str) -> float:
    return 1.0 if way != "rounds" or is_sparse(part) else NARROW


def most_hops(part: Partition, sync: Sync) -> int:
    return part.num_nodes


def settled_paths(part: Partition, sync: Sync, way: str, weights: np.ndarray, dtype: np.dtype) -> None:
    """Rows are not sorted by weight."""
