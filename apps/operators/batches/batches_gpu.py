"""Levels of many searches on the GPU: see interfaces.py; the kernels are in batches.cuh."""

from typing import Any

import numpy as np

from cusp.apps.operators.batches.interfaces import HopSums
from cusp.apps.operators.frontier_gpu import threads_for
from cusp.kernels.cuda import load, sums_of
from gluon.label import Label

BATCHES = "cusp/apps/operators/batches/batches.cuh"


def end_level(frontier: Any, touched: Any, front: Label, arrived: Label, open_bits: Any) -> tuple[int, int, int]:
    part, size, sums = front.part, front.part.num_proxies, sums_of(3)
    load(BATCHES).end_level(
        threads_for(size), size, part.num_masters, frontier, touched, part.degrees, front.values, front.updated,
        arrived.values, open_bits, sums.counters, sums.address,
    )  # fmt: skip
    nodes, edges, alive = sums.read()
    return nodes, edges, alive


def add_hops(hops: int, front: Label, sums: HopSums) -> None:
    if hops == 0:
        return
    masters = front.part.num_masters
    load(BATCHES).add_hops(masters, masters, np.float64(hops), np.float64(1 / hops), front.updated, front.values, *sums)
