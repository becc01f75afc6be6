"""The whole of a small graph, on each rank: for what is many small tasks, each of which needs all of it."""

from typing import TYPE_CHECKING

import numpy as np

from cusp.partition import Partition
from cusp.runtime.exchange import all_to_all

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


def whole_graph(part: Partition, comm: "Intracomm") -> tuple[np.ndarray, np.ndarray]:
    """Offsets (int64) and targets (int32) of a CSR whose rows are all nodes, by global id. Collective."""
    sources = np.repeat(part.gids, np.diff(part.offsets)).astype(np.int32)
    edges = (sources, part.gids[part.targets].astype(np.int32))
    sources, targets = (np.concatenate(all_to_all(comm, [ends] * comm.size)) for ends in edges)
    order = np.argsort(sources, kind="stable")
    offsets = np.zeros(part.num_nodes + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=part.num_nodes), out=offsets[1:])
    return offsets, targets[order]


def sum_of_copies(part: Partition, comm: "Intracomm", values: np.ndarray) -> np.ndarray:
    """Sums over the ranks, in their order, of numbers (nodes,) that each has, for this rank's masters. Collective."""
    total: np.ndarray = sum(comm.allgather(values))
    return total[part.gids[: part.num_masters]]
