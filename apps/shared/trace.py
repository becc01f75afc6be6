"""Back-tracking: the nodes on the paths from a source to targets, from the parents that a search found."""

import numpy as np
from mpi4py import MPI

from cusp.partition import Partition
from cusp.runtime.devices import to_host


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
        lids = part.lid_map.lids(heads)
        own = (lids >= 0) & (lids < part.num_masters)
        known = np.full(heads.size, -1, np.int64)
        known[own] = parents[lids[own]]
        before = np.empty_like(known)
        comm.Allreduce(known, before, MPI.MAX)
        walking = (before >= 0) & (before != heads)
        heads = np.where(walking, before, heads)
        lost = before < 0
        steps.append(np.where(walking, before, -1))
    columns = np.array(steps[::-1]).T
    return [np.zeros(0, np.int64) if gone else column[column >= 0] for column, gone in zip(columns, lost)]
