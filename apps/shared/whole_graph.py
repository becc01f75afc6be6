"""A copy of a small graph on each rank: for many small tasks, each of which needs the whole graph."""

from typing import Any

import numpy as np

from cusp.apps.operators.sums.interfaces import Betweenness
from cusp.apps.operators.ways import way_of
from cusp.input.edge_slice import EdgeSlice
from cusp.kernels.arrays import offsets_of
from cusp.partition import Partition
from cusp.partitioner import partition_slice
from cusp.policies import load_policy
from cusp.runtime.devices import backend, move, to_host
from cusp.runtime.exchange import all_to_all
from cusp.runtime.mpi import MPI
from gluon.plan import make_plan
from gluon.sync import Sync

SMALL = 1 << 23  # edges of a graph of which each rank may have a copy


def works_in_copies(part: Partition, sync: Sync, tasks: int) -> bool:
    """Whether each rank does some of that many tasks, such as sources, in a copy of its own. Collective."""
    if not way_of(("copies",), part, sync):
        return False
    return bool(sync.lowest(int(backend(Betweenness, part.device).sweeps(part, sync.comm.size, tasks))))


def whole_graph(part: Partition, comm: MPI.Intracomm) -> tuple[Any, ...]:
    """Offsets (int64), targets (int32) and perhaps weights of a CSR with all nodes by global id. Collective."""
    gids, lids = to_host(part.gids).astype(np.int32), to_host(part.targets)
    edges = [np.repeat(gids, np.diff(to_host(part.offsets))), gids[lids]]
    edges += [] if part.weights is None else [to_host(part.weights)]
    sources, *others = (np.concatenate(all_to_all(comm, [values] * comm.size)) for values in edges)
    order = np.argsort(sources, kind="stable")
    return offsets_of(np.bincount(sources, minlength=part.num_nodes)), *(values[order] for values in others)


def copy_of(part: Partition, comm: MPI.Intracomm) -> tuple[Partition, Sync]:
    """The whole graph as the partition of one rank, with ``csc`` if it is not symmetric, and its sync. Collective.

    It is on the device of ``part``.
    """
    offsets, targets, *weights = whole_graph(part, comm)
    bounds, ends = np.array([0, part.num_nodes], np.int64), targets.view(np.uint32)
    weighs = weights[0] if weights else None
    edges = EdgeSlice(part.num_nodes, targets.size, part.symmetric, bounds, 0, offsets, ends, weighs)
    copy = partition_slice(edges, load_policy("oec"), MPI.COMM_SELF, csc=not part.symmetric, device=part.device)
    return copy, Sync(make_plan(copy, MPI.COMM_SELF), MPI.COMM_SELF)


def copy_for(part: Partition, sync: Sync, tasks: int) -> tuple[Partition, Sync] | None:
    """The same of a small graph, if there are that many tasks, one for each rank at least; else None. Collective."""
    alone = 1 < sync.comm.size <= tasks and part.num_edges <= SMALL and way_of(("copies",), part, sync)
    return copy_of(part, sync.comm) if alone else None


def sum_of_copies(part: Partition, comm: MPI.Intracomm, values: np.ndarray) -> np.ndarray:
    """Sums over the ranks, in their order, of numbers (nodes,) that each has. Collective.

    Those of this rank's masters are returned, on their device.
    """
    total: np.ndarray = sum(comm.allgather(values))
    return move(total[to_host(part.gids[: part.num_masters])], part.device)
