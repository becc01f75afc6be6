"""Greedy coloring on the GPU: see interfaces.py; the kernel is in coloring.cuh."""

from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from cusp.apps.operators.frontier_gpu import Queue, queue_for
from cusp.apps.operators.interfaces import own_neighbours
from cusp.kernels.arrays import filled_rows, offsets_of, total
from cusp.kernels.cuda import load, struct
from cusp.partition import Partition

COLORING = "cusp/apps/operators/choices/coloring.cuh"


class Rows(NamedTuple):
    """Of all proxies, the neighbours that are masters of this rank; and memory for frontiers."""

    offsets: Any
    neighbours: Any
    queue: Queue


def plan_colors(part: Partition) -> Rows:
    offsets, neighbours = own_neighbours(part)
    return Rows(offsets, neighbours, queue_for(total(filled_rows(offsets)), part.num_local_edges, 2))


def room_for_colors(colors: Any, most: int) -> tuple[Any, Any]:
    """(masters + 1,) int64 and uint64: where the words of each begin, and the words."""
    begins = offsets_of((-1 - colors) // 64 + 1)
    return begins, cp.zeros(int(begins[-1]), np.uint64)


def color_nodes(part: Partition, plan: Rows, room: tuple[Any, Any], frontier: Any, colors: Any, updated: Any) -> None:
    own = struct(part.num_masters, plan.offsets, plan.neighbours, *room, colors, updated)
    load(COLORING).resident("color_nodes", 1)(part.num_proxies, frontier, own, plan.queue.struct)
