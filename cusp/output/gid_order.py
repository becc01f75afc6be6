"""Values of masters in the order of global ids, whichever rank has them."""

from typing import TYPE_CHECKING

import numpy as np

from cusp.partition import Partition
from cusp.runtime.devices import to_host
from cusp.runtime.exchange import all_to_all

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


def in_gid_order(part: Partition, values: np.ndarray, comm: "Intracomm") -> tuple[int, np.ndarray]:
    """First node of this rank's even share of all nodes, and the values of that share by global id. Collective."""
    bounds = np.array([part.num_nodes * rank // comm.size for rank in range(comm.size + 1)])
    gids, values = to_host(part.gids[: part.num_masters]), to_host(values)
    share = np.searchsorted(bounds, gids, side="right") - 1
    received = [all_to_all(comm, [array[share == rank] for rank in range(comm.size)]) for array in (gids, values)]
    slab = np.empty(bounds[comm.rank + 1] - bounds[comm.rank], values.dtype)
    slab[np.concatenate(received[0]) - bounds[comm.rank]] = np.concatenate(received[1])
    return int(bounds[comm.rank]), slab
