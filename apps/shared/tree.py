"""The tree of shortest paths: a parent of every node, from hops or distances; from parents, the paths to targets."""

from typing import Any

import numpy as np

from cusp import MIN, Label, Partition, Sync, everywhere
from cusp.apps.operators.traversal.interfaces import Sssp
from cusp.errors import GraphFileError, together
from cusp.kernels.arrays import total
from cusp.runtime.devices import backend, to_host, xp_of
from cusp.runtime.mpi import MPI

NO_PARENT = np.iinfo(np.int64).max


def find_parents(part: Partition, sync: Sync, source: int, distances: Any, weights: Any = None) -> Any:
    """A parent of every node: an in-neighbour from which the edge here is tight. Collective.

    A node looks through its in-edges for one whose length is the difference of the distances, and stops at the first.
    An edge of length 0 does not say which of its ends is closer to the source, and two nodes might choose each other:
    so its source is chosen only once it has a parent itself, which takes further rounds.

    Parameters
    ----------
    part : Partition
        Symmetric, with reversed edges of the same weight; or with ``csc``.
    distances : (masters,) int32 or int64 with -1, or float64 with inf, where not reached
        Exactly what the weights along shortest paths add up to.
    weights : (edges,), optional
        As ``part.weights``; 1 if left out.

    Returns
    -------
    (masters,) int64
        The source is its own parent; -1 where not reached.

    Raises
    ------
    GraphFileError
        On every rank: a node was reached over no edge, so the distances are those of another graph.
    """
    ops = backend(Sssp, part.device)
    offsets, sources, lengths, write = part.offsets, part.targets, weights, "src"
    if part.csc is not None:  # else the reversed edges are the same set
        lengths = None if weights is None else part.csc.weights
        offsets, sources, write = part.csc.offsets, part.csc.sources, "dst"
    far: Any = MIN.identity(distances.dtype)
    if distances.dtype.kind != "f":
        distances = xp_of(part.device).where(distances < 0, far, distances)
    values, own = everywhere(part, sync, distances, far), slice(0, part.num_masters)
    parents = Label(part, np.int64, NO_PARENT, MIN)
    parents.write(source, source)
    reached, before = values.values[own] != far, None
    while True:
        known = parents.values.copy()
        ops.find_parents(offsets, sources, lengths, part.gids, values.values, far, known, NO_PARENT,
                         parents.values, parents.updated)  # fmt: skip
        sync.reduce(parents, write=write)
        lost = total(reached & (parents.values[own] == NO_PARENT))
        (left,) = sync.total(lost)
        if left == 0:
            break
        with together(sync.comm):
            if left == before:
                raise GraphFileError(f"{left:,} nodes were reached over no edge")
        before = left
        sync.broadcast(parents, read="any")  # a node with a parent keeps it: another proxy might choose a lower one
    parent = parents.masters()
    parent[~reached] = -1
    return parent


def trace(part: Partition, comm: MPI.Intracomm, parents: np.ndarray, targets: list[int]) -> list[np.ndarray]:
    """A path from the source to each target, all traced at once, with one small exchange per step. Collective.

    Parameters
    ----------
    parents : (masters,) int64
        The source is its own parent; -1 where there is no path.
    targets : list of int
        Global ids, the same on every rank.

    Returns
    -------
    list of (nodes,) int64
        For each target the nodes from the source to it, both included, on every rank; empty where there is no path.
    """
    parents = to_host(parents)
    heads = np.array(targets, np.int64)
    steps = [heads]
    walking, lost = np.ones(heads.size, bool), np.zeros(heads.size, bool)
    while walking.any():
        own, lids = part.masters_among(heads)
        known = np.full(heads.size, -1, np.int64)
        known[own] = parents[lids]
        before = np.empty_like(known)
        comm.Allreduce(known, before, MPI.MAX)
        walking = (before >= 0) & (before != heads)
        heads = np.where(walking, before, heads)
        lost = before < 0
        steps.append(np.where(walking, before, -1))
    columns = np.array(steps[::-1]).T
    return [np.zeros(0, np.int64) if gone else column[column >= 0] for column, gone in zip(columns, lost)]
