"""Greedy coloring on the GPU: see interfaces.py; the kernel is in coloring.cuh."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from cusp.apps.operators.frontier_gpu import Queue, queue_for
from cusp.apps.operators.interfaces import own_neighbours
from cusp.kernels.arrays import offsets_of
from cusp.kernels.cuda import Struct, load, struct
from cusp.partition import Partition

COLORING = "cusp/apps/operators/choices/coloring.cuh"


class Rows(NamedTuple):
    """Of all proxies, the neighbours that are masters of this rank; and memory for frontiers."""

    offsets: Any
    neighbours: Any
    queue: Queue


def plan_colors(part: Partition) -> Rows:
    offsets, neighbours = own_neighbours(part)
    return Rows(offsets, neighbours, queue_for(part, offsets))


@contextmanager
def room_for_colors(part: Partition, plan: Rows, colors: Any, most: int) -> Iterator[tuple[Queue, Struct]]:
    """A row of bits for each master, and most of struct Coloring of coloring.cuh."""
    begins = offsets_of((-1 - colors[: part.num_masters]) // 64 + 1)
    taken = cp.zeros(int(begins[-1]), np.uint64)
    yield plan.queue, struct(part.num_masters, plan.offsets, plan.neighbours, begins, taken, colors)


def color_nodes(part: Partition, room: tuple[Queue, Struct], frontier: Any, updated: Any) -> None:
    queue, own = room
    kernel = load(COLORING).resident("color_nodes", 1)
    kernel(part.num_proxies, frontier, struct(own, updated), queue.struct)
