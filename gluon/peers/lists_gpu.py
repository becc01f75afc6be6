"""The lists of a sync plan as kernels of peers take them, and memory for what ranks send to each other.

The kernels' side is in gluon/kernels/peers.cuh.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import Struct, struct
from cusp.runtime.exchange import exchange_counts
from gluon.peers.memory_gpu import PeerMemory

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from cusp.partition import Partition
    from gluon.plan import SyncPlan

ALIGNED = 256  # bytes: where arrays begin


@dataclass(frozen=True)
class PeerProxies:
    """Where the mirrors of this rank's masters are, and the masters of its mirrors.

    Attributes
    ----------
    struct : Struct
        Struct Proxies of peers.cuh.
    sizes : (ranks,) int64
        Mirrors on rank r of masters of this rank.
    mirrors : (ranks,) int64
        Mirrors on this rank of masters of rank r.
    """

    struct: Struct
    sizes: np.ndarray
    mirrors: np.ndarray


def proxies_of(part: "Partition", plan: "SyncPlan", comm: "Intracomm") -> PeerProxies:
    """The proxies of a partition as its peers see them. Collective."""
    begins = exchange_counts(comm, np.ascontiguousarray(part.mirror_starts[:-1]))
    sizes = np.array([lids.size for lids in plan.any.masters], np.int64)
    lists = [cp.asarray(lids) for lids in plan.any.masters]
    addresses = cp.asarray(np.array([lids.data.ptr for lids in lists], np.uint64))
    addresses_and_lists = struct(
        part.num_masters, cp.asarray(part.mirror_starts), cp.asarray(begins), cp.asarray(sizes), addresses
    )
    addresses_and_lists.members += tuple(lists)  # they live as long
    return PeerProxies(addresses_and_lists, sizes, np.diff(part.mirror_starts))


class PeerArrays:
    """Arrays on every rank that its partners can write: their sizes may differ by rank. Collective.

    Parameters
    ----------
    comm : Intracomm
    sizes : list of int
        Bytes of each array on this rank.

    Attributes
    ----------
    offsets : list of int
        Where each array begins in the memory of this rank.
    """

    def __init__(self, comm: "Intracomm", sizes: list[int]) -> None:
        self._rank = comm.rank
        ends = np.cumsum([-(-size // ALIGNED) * ALIGNED for size in sizes])
        self.offsets = [0, *ends[:-1].tolist()]
        self.memory = PeerMemory(comm, int(ends[-1]))
        self._everywhere = np.array(comm.allgather(self.offsets), np.uint64)

    def of_all(self, number: int) -> Any:
        """(ranks,) uint64 on the device: the address of array ``number`` on each rank."""
        return cp.asarray(self.memory.bases + self._everywhere[:, number])

    def for_me(self, first: int) -> Any:
        """(ranks,) uint64 on the device: the address on each rank of the array ``first`` + this rank there."""
        return self.of_all(first + self._rank)

    def from_all(self, first: int) -> Any:
        """(ranks,) uint64 on the device: the addresses of this rank's arrays, from ``first`` on."""
        offsets = self._everywhere[self._rank, first : first + self.memory.bases.size]
        return cp.asarray(self.memory.bases[self._rank] + offsets)
