"""Frontiers on the GPU, see interfaces.py; compacted into a queue that shares out work by edges, see frontier.cuh."""

from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.interfaces import kept_with
from cusp.errors import OptionError
from cusp.kernels.arrays import filled_rows, total
from cusp.kernels.cuda import Struct, many_threads, struct
from cusp.partition import Partition
from cusp.runtime.storage import memory_of

FRONTIER = "cusp/apps/operators/frontier.cuh"
MAX_EDGES, MAX_NODES = 1 << 34, 1 << 30  # what a queue's counter can hold
PROGRESS_WORDS = 8  # of struct Progress
DENSE = 8  # edges per node from which on hubs have most of all edges, as a rule


@dataclass(frozen=True)
class Queue:
    """Memory for compacted frontiers, and the counters.

    Attributes
    ----------
    progress : (PROGRESS_WORDS,) uint64
        Struct Progress of frontier.cuh.
    struct : Struct
        Struct Queues of frontier.cuh, which kernels take.
    """

    progress: Any
    struct: Struct


def queue_of(part: Partition, offsets: Any) -> Queue:
    """Memory for a frontier of the rows that have edges; all operators share it, as each leaves it empty."""
    return kept_with(  # type: ignore[no-any-return]
        part, ("queue", offsets.data.ptr), lambda: queue_for(part, offsets, 1)
    )


def queue_for(part: Partition, offsets: Any, frontiers: int = 2) -> Queue:
    """Memory for one or two frontiers among those of these rows that have edges.

    Raises
    ------
    OptionError
        More than the counter of a queue can hold.
    """
    rows = total(filled_rows(offsets))
    require_countable(rows, part.num_local_edges)
    capacity, progress = max(rows, 1), cp.zeros(PROGRESS_WORDS, np.uint64)
    aside = memory_of("gpu").empty_aside  # large frontiers are rare
    nodes, starts, shifts = (aside(frontiers * capacity, dtype) for dtype in (np.int32, np.int64, np.int64))
    return Queue(progress, struct(nodes, starts, shifts, capacity, progress))


def require_countable(nodes: int, edges: int) -> None:
    """Raise OptionError for more than the counter of a queue can hold."""
    if nodes >= MAX_NODES or edges >= MAX_EDGES:
        most = f"{MAX_NODES:,} and {MAX_EDGES:,} are too many"
        raise OptionError(f"{nodes:,} nodes and {edges:,} edges on one GPU, where {most}: use more ranks")


def blocks_for(part: Partition) -> int:
    """Blocks per multiprocessor of a search: one, which goes in bursts, where there are many levels of few nodes, as a
    rule: in road maps and meshes.
    """
    return 1 if part.num_edges < DENSE * part.num_nodes else 2


def threads_for(size: int) -> int:
    """One warp for 32 nodes, but no more than fill the GPU."""
    return min(max(-(-size // 32), 1) * 32, many_threads())
