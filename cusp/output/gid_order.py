"""Values of masters in the order of global ids, whichever rank has them, and back."""

import numpy as np

from cusp.kernels.arrays import put
from cusp.partition import Partition
from cusp.runtime.devices import device_of, move, to_host, xp_of
from cusp.runtime.exchange import all_to_all
from cusp.runtime.mpi import MPI


def in_gid_order(part: Partition, values: np.ndarray, comm: MPI.Intracomm) -> tuple[int, np.ndarray]:
    """First node of this rank's even share of all nodes, and the values of that share by global id. Collective."""
    if comm.size == 1:
        slab = xp_of(device_of(values)).empty_like(values)
        put(values, move(part.gids[: part.num_masters], device_of(values)), slab)
        return 0, to_host(slab)
    bounds = _bounds(part.num_nodes, comm)
    gids, values = to_host(part.gids[: part.num_masters]), to_host(values)
    share = _share(bounds, gids)
    received = [all_to_all(comm, [array[share == rank] for rank in range(comm.size)]) for array in (gids, values)]
    slab = np.empty(bounds[comm.rank + 1] - bounds[comm.rank], values.dtype)
    slab[np.concatenate(received[0]) - bounds[comm.rank]] = np.concatenate(received[1])
    return int(bounds[comm.rank]), slab


def at_gids(slab: np.ndarray, gids: np.ndarray, num_nodes: int, comm: MPI.Intracomm) -> np.ndarray:
    """Values of some nodes, in their order, where each rank has those of its even share by global id. Collective."""
    bounds = _bounds(num_nodes, comm)
    share = _share(bounds, gids)
    asked = all_to_all(comm, [gids[share == rank] for rank in range(comm.size)])
    values = np.empty(gids.size, slab.dtype)
    for rank, answer in enumerate(all_to_all(comm, [slab[some - bounds[comm.rank]] for some in asked])):
        values[share == rank] = answer
    return values


def _bounds(num_nodes: int, comm: MPI.Intracomm) -> np.ndarray:
    """(ranks + 1,) int64: the first node of each rank's even share."""
    return np.array([num_nodes * rank // comm.size for rank in range(comm.size + 1)])


def _share(bounds: np.ndarray, gids: np.ndarray) -> np.ndarray:
    """(n,) int64: the rank in whose share each node is."""
    return np.searchsorted(bounds, gids, side="right") - 1
