"""k-core on the GPU: see interfaces.py; the kernels are in kcore.cuh."""

from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.frontier_gpu import Queue, queue_for
from cusp.apps.operators.interfaces import own_neighbours
from cusp.kernels.cuda import Struct, load, struct
from cusp.partition import Partition
from cusp.runtime import progress
from cusp.runtime.devices import to_host
from gluon.label import Label
from gluon.peers.link_gpu import Link
from gluon.reduction import MAX
from gluon.sync import Sync

KCORE = "cusp/apps/operators/structure/kcore.cuh"
FAR = 2**31  # as in kcore.cuh
NOBODY = FAR - 1  # above all levels


@dataclass(frozen=True)
class KcorePlan:
    """What the peelings of one graph share.

    Attributes
    ----------
    rows : (offsets, neighbours)
        Of each proxy, the masters of this rank that are its neighbours.
    queue : Queue
    degrees : (masters,) int32
    lists : (2, masters) int32
    counts : (4,) uint64
    link : Link, or None where the host starts each step
    kernel : function
    mirrored : bits of proxies
        Masters that have mirrors; for steps.
    """

    rows: tuple[Any, Any]
    queue: Queue
    degrees: Any
    lists: Any
    counts: Any
    link: Link | None
    kernel: Any
    mirrored: Any

    def peeling(self, part: Partition, core: Any) -> Struct:
        """Struct Peeling of kcore.cuh."""
        return struct(part.num_masters, *self.rows, part.degrees, self.degrees, core, self.lists, self.counts)


def plan_levels(part: Partition, sync: Sync, way: str) -> KcorePlan:
    rows = own_neighbours(part)
    queue = queue_for(part, rows[0])
    degrees, lists = cp.empty(part.num_masters, np.int32), cp.empty((2, part.num_masters), np.int32)
    mirrored = Label(part, np.uint8, 0, MAX)
    link = None
    if way != "rounds":
        link = Link(part, sync, queue.progress, [], lambda size: [4 * size], sends="masters")
    else:
        for lids in sync.plan.any.masters:
            mirrored.mark(lids)
    kernel = link.load(KCORE, "peel_graph", 1) if link else load(KCORE).resident("peel")
    return KcorePlan(rows, queue, degrees, lists, cp.zeros(4, np.uint64), link, kernel, mirrored.updated)


def peel_levels(part: Partition, sync: Sync, plan: KcorePlan, first: int, last: int) -> tuple[Any, Any]:
    if plan.link is None:
        return _peel_in_steps(part, sync, plan, first, last)
    core, rounds = cp.empty(part.num_masters, np.int32), cp.zeros(1, np.int64)
    own = plan.peeling(part, core)
    plan.link.run(plan.kernel, tuple, own, int(first), int(last), plan.queue.struct, rounds)
    return core, rounds[0]


def _peel_in_steps(part: Partition, sync: Sync, plan: KcorePlan, level: int, last: int) -> tuple[Any, int]:
    """As on CPUs. A list of which half has left is made anew."""
    core, own_lists = Label(part, np.int32, -1, MAX), [*plan.lists]
    own, before, rounds, left = plan.peeling(part, core.values), -1, 0, part.num_masters
    plan.degrees[:], own_lists[0][:], listed = part.degrees, cp.arange(left), left
    while level <= last:
        scans = level > before
        shrinks = scans and 2 * left < listed
        plan.queue.progress.fill(0)
        plan.counts.fill(0)
        plan.kernel(
            int(level), int(before), part.num_proxies, own, own_lists[0], int(listed),
            own_lists[1] if shrinks else np.uint64(0), plan.mirrored, core.updated, plan.queue.struct,
        )  # fmt: skip
        found, lowest, filled, marked = to_host(plan.counts).tolist()
        if scans:
            left = found
        if shrinks:
            own_lists.reverse()
            listed = left
        next_level = NOBODY if scans and lowest == 0 else level + 1 if filled or not scans else FAR - lowest
        before, level = level, int(sync.lowest(level if marked else next_level))
        if level == before:
            sync.broadcast(core, read="any", implied=level)
        progress.update(core=before)
        rounds += 1
    return core.masters(), rounds
