"""k-core on the GPU: see interfaces.py; the kernels are in kcore.cuh."""

from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.frontier_gpu import Queue, queue_for, threads_for
from cusp.kernels.cuda import Struct, load, struct, sums_of
from cusp.partition import Partition, transpose
from gluon.peers.link_gpu import Link
from gluon.sync import Sync

KCORE = "cusp/apps/operators/structure/kcore.cuh"
FAR = 2**31  # as in kcore.cuh


def find_left(end: int, core: Any, degrees: Any) -> tuple[int, int]:
    sums = sums_of(2)
    load(KCORE).find_left(threads_for(end), int(end), core, degrees, sums.counters, sums.address)
    best, last = sums.read()
    return (FAR - best, last) if last else (0, 0)


def peel(
    level: int, end: int, masters: int, offsets: Any, targets: Any, core: Any, degrees: Any, updated: Any, queue: Queue
) -> None:
    queue.progress.fill(0)
    load(KCORE).resident("peel")(
        int(level), int(end), int(masters), offsets, targets, core, degrees, updated, queue.struct
    )


@dataclass(frozen=True)
class KcorePlan:
    """What the peelings of one graph share.

    Attributes
    ----------
    rows : (offsets, neighbours)
        Of each proxy, the masters of this rank that are its neighbours.
    queue : Queue
    degrees : (masters,) int32
    lists : (2 * masters,) int32
    counts : (3,) uint64
    link : Link
    kernel : function
    """

    rows: tuple[Any, Any]
    queue: Queue
    degrees: Any
    lists: Any
    counts: Any
    link: Link
    kernel: Any

    def peeling(self, part: Partition, core: Any) -> Struct:
        """Struct Peeling of kcore.cuh."""
        return struct(part.num_masters, *self.rows, part.degrees, self.degrees, core, self.lists, self.counts)


def plan_levels(part: Partition, sync: Sync) -> KcorePlan:
    """Without mirrors, the rows of masters are what a transposition would make of them."""
    rows = part.offsets, part.targets
    if part.num_proxies > part.num_masters:
        csc = transpose(part)
        rows = csc.offsets, csc.sources
    queue = queue_for(int(cp.count_nonzero(rows[0][1:] > rows[0][:-1])), part.num_local_edges, 2)
    degrees, lists = (cp.empty(size * part.num_masters, np.int32) for size in (1, 2))
    link = Link(part, sync, queue.progress, [], lambda size: [4 * size], to_mirrors=True)
    return KcorePlan(rows, queue, degrees, lists, cp.zeros(3, np.uint64), link, link.load(KCORE, "peel_graph", 1))


def peel_levels(part: Partition, sync: Sync, plan: KcorePlan, first: int, last: int) -> tuple[Any, Any]:
    core, rounds = cp.empty(part.num_masters, np.int32), cp.zeros(1, np.int64)
    own = plan.peeling(part, core)
    plan.link.run(plan.kernel, tuple, own, int(first), int(last), plan.queue.struct, rounds)
    return core, rounds[0]
