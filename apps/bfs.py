"""Breadth-first search: hops from a source to every node, or parents; push, pull or whichever is cheaper.

``mpirun -n 4 python -m apps.bfs graph.h5 --policy cvc --source 17 --verify --output hops.h5``
"""

import argparse
from typing import Any

import numpy as np

from apps.harness import Answer, App, main
from apps.operators.interfaces import Frontier
from apps.operators.traversal.interfaces import Bfs, GpuBfs
from apps.verify.paths import verify_hops
from cusp.launch import run_main
from cusp.partition import Partition
from cusp.runtime.devices import backend
from gluon.label import Label
from gluon.reduction import MIN
from gluon.sync import Sync

ALPHA, BETA = 15, 18  # when to pull and when to push again (Beamer, Asanovic, Patterson, SC 2012)


def bfs(
    part: Partition, sync: Sync, source: int, direction: str = "auto", parents: bool = False, prepared: Any = None
) -> Answer:
    """Hops from ``source`` to every node along out-edges. Collective.

    A frontier node gives its level + 1 to its out-neighbours (push), or a node without a level looks
    for an in-neighbour in the frontier (pull). A symmetric graph is pulled along its reversed edges,
    which are the same set: the in-neighbours of a node are its out-neighbours, so an operator that
    pulls writes at the source and reads at the destination of the edges as they are stored.

    Parameters
    ----------
    part : Partition
        With ``csc`` if pulls are wanted and the graph is not symmetric.
    sync : Sync
    source : int
        Global id.
    direction : {'auto', 'push', 'pull'}
    parents : bool
        Find a parent of each node too. Between ranks, levels and parents then travel in one number, level first,
        so that MIN keeps the lowest level and among its parents the lowest one that was found.
        On one GPU a node to which several of a level push takes the first that comes, so parents, but no hops,
        depend on timing there.
    prepared : optional
        What :func:`prepare` returned for this partition, to make it once for many searches.

    Returns
    -------
    Answer
        ``hops`` (int32) of this rank's masters, -1 where there is no path; with ``parents`` also
        ``parents`` (int64), the source being its own.
    """
    ops, frontiers = backend(Bfs, part.device), backend(Frontier, part.device)
    in_edges = in_edges_of(part)
    prepared = prepare(part, sync) if prepared is None else prepared
    if frontiers.drains(sync.comm.size):
        drain = backend(GpuBfs, part.device).bfs_drain
        hops, found, levels = drain(part, prepared, source, direction, ALPHA, BETA, parents)
        return Answer({"hops": hops} | ({"parents": found} if parents else {}), hops >= 0, levels)
    shift = part.num_nodes.bit_length() if parents else 0
    dtype = np.int64 if parents else np.int32
    unreached = np.iinfo(dtype).max
    labels = Label(part, dtype, unreached, MIN)
    gid_mask = np.int64((1 << shift) - 1)
    labels.write(source, source & int(gid_mask))
    out_edges = (part.offsets, part.targets)
    ends = {False: ("src", "dst"), True: ("dst", "src") if part.symmetric else ("src", "dst")}
    level, pulling, before, unexplored = 0, False, 0, part.num_edges
    while True:
        nodes, edges = sync.total(*frontiers.frontier_size(labels.updated, part.degrees))
        if nodes == 0:
            break
        pulling = (
            in_edges is not None
            and {
                "push": False,
                "pull": True,
                "auto": (nodes >= before or nodes > part.num_nodes // BETA) if pulling else edges > unexplored // ALPHA,
            }[direction]
        )
        before, unexplored = nodes, unexplored - edges
        read, write = ends[pulling]
        sync.broadcast(labels, read=read, implied=level << shift)
        frontier = labels.swap_updated()
        level += 1
        value = np.int64(level << shift)
        numbers = (part.gids, gid_mask, value, labels.values.dtype.type(unreached))
        rest = (*numbers, labels.values, labels.updated, prepared)
        if pulling and in_edges:
            ops.bfs_pull(frontier, *in_edges, *rest)
        else:
            ops.bfs_push(frontier, *out_edges, *rest)
        sync.reduce(labels, write=write, implied=None if parents else level)
    values, where = labels.values[: part.num_masters], labels.device.xp.where
    reached = values != unreached
    if not parents:
        return Answer({"hops": where(reached, values, np.int32(-1))}, reached, level)
    hops = where(reached, values >> shift, np.int64(-1)).astype(np.int32)
    return Answer({"hops": hops, "parents": where(reached, values & gid_mask, np.int64(-1))}, reached, level)


def in_edges_of(part: Partition) -> tuple[Any, Any] | None:
    """Offsets and sources of the in-edges of each proxy, or None if they are not there."""
    if part.symmetric:
        return part.offsets, part.targets
    return (part.csc.offsets, part.csc.sources) if part.csc else None


def prepare(part: Partition, sync: Sync) -> Any:
    """What all searches of one partition share."""
    frontiers = backend(Frontier, part.device)
    if frontiers.drains(sync.comm.size):
        return backend(GpuBfs, part.device).plan_bfs(part, in_edges_of(part))
    return frontiers.make_queue(part)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument(
        "--direction",
        choices=("auto", "push", "pull"),
        default="auto",
        help="pull scans the unvisited nodes, push the frontier (default: whichever is cheaper)",
    )
    parser.add_argument("--parents", action="store_true", help="find a parent of each node too")


APP = App(
    name="bfs",
    summary="breadth-first search: hops (and parents) from a source",
    prepare=lambda part, sync, options: prepare(part, sync),
    run=lambda part, sync, source, prepared, options: bfs(
        part, sync, source, options.direction, options.parents, prepared
    ),
    verify=lambda part, sync, source, answer, _, options: verify_hops(part, sync, source, **answer.labels),
    add_options=add_options,
    needs_csc=lambda options, symmetric: options.direction != "push" and not symmetric,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
