"""Breadth-first search: hops from a source to every node, or parents; push, pull or whichever is cheaper."""

from typing import TYPE_CHECKING

import numpy as np

from apps import operators_cpu as ops
from cusp.partition import Partition, transpose
from gluon.label import Label
from gluon.plan import SyncPlan
from gluon.reduction import MIN
from gluon.sync import Sync

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

ALPHA, BETA = 15, 18  # when to pull and when to push again (Beamer, Asanovic, Patterson, SC 2012)


def bfs(part: Partition, plan: SyncPlan, comm, source: int, direction: str = "auto", parents: bool = False):
    if parents:
        shift = (part.num_nodes - 1).bit_length() or 1
        levels = Label(part, np.int64, np.iinfo(np.int64).max, MIN)
        gid_mask = np.int64((1 << shift) - 1)
    else:
        shift = 0
        levels = Label(part, np.int32, np.iinfo(np.int32).max, MIN)
        gid_mask = np.int64(0)
    levels.write(source, source & int(gid_mask))
    unreached = levels.values.dtype.type(np.iinfo(levels.values.dtype).max)
    sync = Sync(plan, comm)
    if part.symmetric:
        in_offsets, in_sources, pull_write, pull_read = part.offsets, part.targets, "src", "dst"
    elif direction != "push":
        csc = transpose(part)
        in_offsets, in_sources, pull_write, pull_read = csc.offsets, csc.sources, "dst", "src"
    level = 0
    unexplored = part.num_edges
    pulling = direction == "pull"
    before = 0
    size = np.empty(2, np.int64)
    while True:
        comm.Allreduce(np.array(ops.frontier_size(levels.updated, part.degrees), np.int64), size)
        nodes, edges = int(size[0]), int(size[1])
        if nodes == 0:
            break
        if direction == "auto":
            if not pulling:
                pulling = edges > unexplored // ALPHA
            else:
                pulling = nodes >= before or nodes > part.num_nodes // BETA
        before = nodes
        unexplored -= edges
        sync.broadcast(levels, read=pull_read if pulling else "src", implied=level << shift)
        frontier = levels.updated
        levels.updated = np.zeros_like(frontier)
        level += 1
        args = (part.gids, gid_mask, np.int64(level << shift), unreached, levels.values, levels.updated)
        if pulling:
            ops.bfs_pull(frontier, in_offsets, in_sources, *args)
        else:
            ops.bfs_push(frontier, part.offsets, part.targets, *args)
        sync.reduce(levels, write=pull_write if pulling else "dst", implied=None if parents else level)
    return levels, level, sync
