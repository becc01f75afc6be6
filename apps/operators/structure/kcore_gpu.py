"""k-core on the GPU, with the names and arguments of the CPU's; the kernels are in kcore.cuh."""

import functools
from typing import Any

from apps.operators.frontier_gpu import Queue, threads_for
from cusp.kernels.cuda import Sums, load

KCORE = "apps/operators/structure/kcore.cuh"
FAR = 2**31


def find_left(end: int, core: Any, degrees: Any) -> tuple[int, int]:
    """Lowest degree among the masters below ``end`` that are left, and the last of them + 1: 0, 0 if none is."""
    sums = _sums()
    load(KCORE).find_left(threads_for(end), int(end), FAR, core, degrees, sums.counters, sums.address)
    best, last = sums.read()
    return (FAR - best, last) if last else (0, 0)


def peel(
    level: int, end: int, masters: int, offsets: Any, targets: Any, core: Any, degrees: Any, updated: Any, queue: Queue
) -> None:
    """Peel masters that have at most ``level`` neighbours until all that are left have more; a drain."""
    queue.progress.fill(0)
    load(KCORE).resident("peel")(
        int(level), int(end), int(masters), offsets, targets, core, degrees, updated, queue.struct
    )


@functools.cache
def _sums() -> Sums:
    return Sums(2)
