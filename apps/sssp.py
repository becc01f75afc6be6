"""Shortest paths from a source: delta-stepping with buckets that all ranks agree on."""

from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

from apps import operators_cpu as ops
from gluon.label import Label
from gluon.reduction import MIN
from gluon.sync import Sync


def sssp(part, plan, comm, source: int, delta=None):
    dtype = np.int32
    far = np.iinfo(dtype).max
    dist = Label(part, dtype, far, MIN)
    dist.write(source, 0)
    sync = Sync(plan, comm)
    relaxed_at = np.full_like(dist.values, far)
    pending = np.zeros_like(dist.updated)
    queue = np.empty(part.num_proxies + 1, np.int32)
    rounds = 0; edges = 0
    while True:
        ops.mark_lowered(dist.take_updated(), dist.values, relaxed_at, pending)
        lowest = comm.allreduce(int(ops.lowest_pending(pending, dist.values, dist.values.dtype.type(far))), MPI.MIN)
        if lowest == far:
            break
        limit = (lowest // delta + 1) * delta
        edges += ops.relax_below(limit, part.offsets, part.targets, part.weights, dist.values, relaxed_at, pending, dist.updated, queue)
        sync(dist)
        rounds += 1
    return dist, rounds, sync, edges
