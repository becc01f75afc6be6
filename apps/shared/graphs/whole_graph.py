"""A copy of a small graph on each rank: for many small tasks, each of which needs the whole graph."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cusp.apps.operators.interfaces import SMALL, is_sparse
from cusp.apps.operators.sums.interfaces import Betweenness
from cusp.apps.operators.ways import way_of
from cusp.apps.shared.graphs.oriented import transpose
from cusp.apps.shared.lengths import Lengths
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

AT_ONCE = 1 << 28  # edges that each rank walks along by itself before the sums of all are added up: a few seconds


class WholeGraph(NamedTuple):
    """A CSR whose rows are all nodes, in the memory of the host.

    Those with more out-edges come first, so that what is read most often lies together; in sparse graphs, in which
    neighbours often have similar numbers, rows are in the order of global ids.

    Attributes
    ----------
    offsets : (nodes + 1,) int64
    targets : (edges,) int32
        Rows.
    weights : (edges,) any number type, or None
    into : (nodes + 1,) int64, (edges,) int32
        Without weights, offsets and sources of the in-edges; else empty.
    gids, rows : (nodes,) int64
        Global id of each row; row of each global id.
    places : (local edges,) int64
        Where the edges of this rank are.
    """

    offsets: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    into: tuple[np.ndarray, np.ndarray]
    gids: np.ndarray
    rows: np.ndarray
    places: np.ndarray


def works_in_copies(part: Partition, sync: Sync, tasks: int) -> bool:
    """Whether each rank does some of that many tasks, such as sources, in a copy of its own. Collective."""
    if not way_of(("copies",), part, sync):
        return False
    return bool(sync.lowest(int(backend(Betweenness, part.device).sweeps(part, sync.comm.size, tasks))))


def whole_graph(part: Partition, comm: MPI.Intracomm, lengths: Lengths | None = None) -> WholeGraph:
    """The edges of all ranks; with lengths, in place of weights, as int64 or float64. Collective."""
    if lengths is not None:
        dtype = np.float64 if lengths.dtype.kind == "f" else np.int64
        part = replace(part, weights=to_host(lengths.weights).astype(dtype, copy=False))
    sources, targets, weights = _edges_of_all(part, comm)
    degrees = np.bincount(sources, minlength=part.num_nodes)
    gids = np.arange(part.num_nodes) if is_sparse(part) else np.argsort(-degrees, kind="stable")
    rows = np.empty(part.num_nodes, np.int64)
    rows[gids] = np.arange(part.num_nodes)
    order, places = np.argsort(rows[sources], kind="stable"), np.empty(sources.size, np.int64)
    places[order] = np.arange(order.size)
    own = comm.exscan(part.num_local_edges) or 0
    offsets, targets = offsets_of(degrees[gids]), rows[targets[order]].astype(np.int32)
    if weights is not None:
        weights, into = weights[order], (offsets[:0], targets[:0])
    else:
        into = (offsets, targets) if part.symmetric else transpose(offsets, targets)
    return WholeGraph(offsets, targets, weights, into, gids, rows, places[own : own + part.num_local_edges])


def _edges_of_all(part: Partition, comm: MPI.Intracomm) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Sources and targets, (edges,) int32 global ids, and weights of all ranks' edges, in their order. Collective."""

    def of_all(values: Any) -> np.ndarray:
        return np.concatenate(all_to_all(comm, [to_host(values)] * comm.size))

    gids = to_host(part.gids).astype(np.int32)
    sources = of_all(np.repeat(gids, np.diff(to_host(part.offsets))))
    return sources, of_all(gids[to_host(part.targets)]), None if part.weights is None else of_all(part.weights)


def copy_of(part: Partition, comm: MPI.Intracomm) -> tuple[Partition, Sync]:
    """The whole graph as the partition of one rank, with ``csc`` if it is not symmetric, and its sync. Collective.

    It is on the device of ``part``.
    """
    sources, targets, weights = _edges_of_all(part, comm)
    order, bounds = np.argsort(sources, kind="stable"), np.array([0, part.num_nodes], np.int64)
    offsets, targets = offsets_of(np.bincount(sources, minlength=part.num_nodes)), targets[order].view(np.uint32)
    weights = None if weights is None else weights[order]
    edges = EdgeSlice(part.num_nodes, targets.size, part.symmetric, bounds, 0, offsets, targets, weights)
    copy = partition_slice(edges, load_policy("oec"), MPI.COMM_SELF, csc=not part.symmetric, device=part.device)
    return copy, Sync(make_plan(copy, MPI.COMM_SELF), MPI.COMM_SELF)


def in_copies(part: Partition, sync: Sync) -> bool:
    """Whether each rank may have a copy of a graph, which is small. Collective."""
    return part.num_edges <= SMALL and way_of(("copies",), part, sync) == "copies"


def copy_for(part: Partition, sync: Sync, tasks: int) -> tuple[Partition, Sync] | None:
    """The same as :func:`copy_of` if there are that many tasks, one for each rank at least; else None. Collective."""
    return copy_of(part, sync.comm) if 1 < sync.comm.size <= tasks and in_copies(part, sync) else None


def tasks_at_once(part: Partition, comm: MPI.Intracomm) -> int:
    """How many tasks, along all edges, all ranks do in their copies before they add up what they have found."""
    return comm.size * max(1, AT_ONCE // max(part.num_edges, 1))


def sum_of_copies(part: Partition, comm: MPI.Intracomm, values: np.ndarray, places: Any = None) -> Any:
    """Sums over the ranks, in their order, of the numbers that each has of all nodes or edges. Collective.

    Those at ``places`` are returned, by default those of this rank's masters, on their device.
    """
    total = sum(comm.bcast(values if rank == comm.rank else None, rank) for rank in range(comm.size))
    return move(total[to_host(part.gids[: part.num_masters]) if places is None else places], part.device)
