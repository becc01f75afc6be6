"""The lists of a sync plan as kernels of peers take them, and memory for what ranks send to each other.

The kernels' side is in gluon/kernels/peers.cuh.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import Struct, struct
from cusp.runtime.exchange import exchange_counts
from gluon.peers.memory_gpu import Peers

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
    sizes : list of int
        Mirrors on each rank of masters of this rank.
    """

    struct: Struct
    sizes: list[int]


def proxies_of(part: "Partition", plan: "SyncPlan", comm: "Intracomm") -> PeerProxies:
    """The proxies of a partition as its peers see them. Collective."""
    begins = exchange_counts(comm, np.ascontiguousarray(part.mirror_starts[:-1]))
    sizes = np.array([lids.size for lids in plan.any.masters], np.int64)
    addresses = cp.asarray(np.array([lids.data.ptr for lids in plan.any.masters], np.uint64))
    proxies = struct(part.num_masters, cp.asarray(part.mirror_starts), cp.asarray(begins), cp.asarray(sizes), addresses)
    proxies.members += plan.any.masters  # they live as long
    return PeerProxies(proxies, sizes.tolist())


def mirrors_elsewhere(part: "Partition", plan: "SyncPlan", comm: "Intracomm") -> Any:
    """(ranks, masters) int32 on the device: local id on each rank of a master's mirror, -1 without one. Collective."""
    begins = exchange_counts(comm, np.ascontiguousarray(part.mirror_starts[:-1]))
    result = cp.full((comm.size, part.num_masters), -1, np.int32)
    for mirrors, lids, begin in zip(result, plan.any.masters, begins.tolist()):
        mirrors[lids] = cp.arange(begin, begin + lids.size, dtype=np.int32)
    return result


def mirrors_have_rows(part: "Partition", comm: "Intracomm", offsets: Any) -> bool:
    """Whether any mirror of any rank has edges in these rows, those of its CSR or of its CSC. Collective."""
    return comm.allreduce(int(offsets[-1] > offsets[part.num_masters])) > 0


class PeerArrays:
    """Arrays on every rank that its partners can write, in the memory of the peers: for as long as one kernel runs.

    Collective; sizes may differ by rank.

    Parameters
    ----------
    peers : Peers
    sizes : list of int
        Bytes of each array on this rank.
    """

    def __init__(self, peers: Peers, sizes: list[int]) -> None:
        self.peers = peers
        ends = np.cumsum([-(-size // ALIGNED) * ALIGNED for size in sizes])
        peers.require(int(ends[-1]))
        self._offsets = np.array(peers.comm.allgather([0, *ends[:-1].tolist()]), np.uint64)
        self._addresses: tuple[Any, Any] = None, None  # in which memory, and what was made of them

    def addresses(self, make: Callable[[], Any]) -> Any:
        """What ``make()`` returns, which changes only where the memory of the peers had to grow."""
        if self._addresses[0] is not self.peers.memory:
            self._addresses = self.peers.memory, make()
        return self._addresses[1]

    def of_all(self, number: int) -> Any:
        """(ranks,) uint64 on the device: the address of array ``number`` on each rank."""
        return cp.asarray(self.peers.memory.bases + self._offsets[:, number])

    def for_me(self, first: int) -> Any:
        """(ranks,) uint64 on the device: the address on each rank of the array ``first`` + this rank there."""
        return self.of_all(first + self.peers.comm.rank)

    def from_all(self, first: int) -> Any:
        """(ranks,) uint64 on the device: the addresses of this rank's arrays, from ``first`` on, one for each rank."""
        rank, bases = self.peers.comm.rank, self.peers.memory.bases
        return cp.asarray(bases[rank] + self._offsets[rank, first : first + bases.size])

    def own(self, number: int, size: int, dtype: Any) -> Any:
        """(size,) dtype: the first entries of array ``number`` of this rank, until other peers use the memory."""
        rank = self.peers.comm.rank
        address = int(self.peers.memory.bases[rank] + self._offsets[rank, number])
        memory = cp.cuda.UnownedMemory(address, max(size, 1) * np.dtype(dtype).itemsize, self.peers)
        return cp.ndarray((size,), dtype, cp.cuda.MemoryPointer(memory, 0))
