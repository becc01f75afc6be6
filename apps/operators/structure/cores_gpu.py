"""Core numbers from estimates on GPUs: see interfaces.py; the kernel is in cores.cuh."""

from typing import Any

from cusp.kernels.cuda import load, many_threads
from cusp.partition import Partition

CORES = "cusp/apps/operators/structure/cores.cuh"


def plan_cores(part: Partition) -> None:
    """All masters are looked at each time."""


def lower_cores(part: Partition, plan: None, lowered: Any, cores: Any, updated: Any) -> None:
    threads = min(32 * max(part.num_masters, 1), many_threads())
    load(CORES).lower_cores(threads, part.num_masters, part.offsets, part.targets, cores, updated)
