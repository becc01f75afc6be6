"""Frontiers on the GPU: bits of a label, counted, or compacted into a queue that shares out work by edges.

See frontier.cuh and cusp/kernels/warp.cuh.
"""

import functools
from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np

from cusp.errors import OptionError
from cusp.kernels.cuda import Sums, load, many_threads
from cusp.partition import Partition

FRONTIER = "apps/operators/frontier.cuh"
MAX_EDGES, MAX_NODES = 1 << 34, 1 << 30  # what a queue's counter has room for
PROGRESS_WORDS = 8


@dataclass(frozen=True)
class Queue:
    """Memory for compacted frontiers: two of ``room`` nodes each, and the counters."""

    room: int
    nodes: Any
    starts: Any
    rows: Any
    progress: Any


def make_queue(part: Partition) -> Queue:
    """Memory that an operator needs while it runs, made once a partition."""
    return queue_for(int(cp.count_nonzero(part.has_out)), part.num_local_edges, 2)


def queue_for(rows: int, edges: int, frontiers: int) -> Queue:
    """Memory for frontiers among so many rows of a CSR that have edges.

    Raises
    ------
    OptionError
        More than the counter of a queue has room for.
    """
    if rows >= MAX_NODES or edges >= MAX_EDGES:
        most = f"{MAX_NODES:,} and {MAX_EDGES:,} are too many"
        raise OptionError(f"{rows:,} nodes and {edges:,} edges on one GPU, where {most}: use more ranks")
    room = max(rows, 1)
    size = frontiers * room
    return Queue(
        room, cp.empty(size, np.int32), cp.empty(size, np.int64), cp.empty(size, np.int64),
        cp.zeros(PROGRESS_WORDS, np.uint64),
    )  # fmt: skip


def drains(ranks: int) -> bool:
    """Whether a whole traversal runs on the device: where no other rank has to be asked."""
    return ranks == 1


def frontier_size(updated: Any, degrees: Any) -> tuple[int, int]:
    """Updated masters, and the out-edges that they have in the whole graph."""
    sums, size = _sums(), degrees.size
    load(FRONTIER).frontier_size(threads_for(size), updated, size, degrees, sums.counters, sums.address)
    nodes, edges = sums.read()
    return nodes, edges


@functools.cache
def _sums() -> Sums:
    return Sums(2)


def threads_for(size: int) -> int:
    """One warp for 32 nodes, but no more than fill the GPU."""
    return min(max(-(-size // 32), 1) * 32, many_threads())
