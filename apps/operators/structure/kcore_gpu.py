"""k-core on the GPU: see interfaces.py; the kernels are in kcore.cuh."""

from typing import Any

from apps.operators.frontier_gpu import Queue, threads_for
from cusp.kernels.cuda import load, sums_of

KCORE = "apps/operators/structure/kcore.cuh"
FAR = 2**31


def find_left(end: int, core: Any, degrees: Any) -> tuple[int, int]:
    sums = sums_of(2)
    load(KCORE).find_left(threads_for(end), int(end), FAR, core, degrees, sums.counters, sums.address)
    best, last = sums.read()
    return (FAR - best, last) if last else (0, 0)


def peel(
    level: int, end: int, masters: int, offsets: Any, targets: Any, core: Any, degrees: Any, updated: Any, queue: Queue
) -> None:
    queue.progress.fill(0)
    load(KCORE).resident("peel")(
        int(level), int(end), int(masters), offsets, targets, core, degrees, updated, queue.struct
    )
