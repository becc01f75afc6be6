"""The world of ranks in which kernels of one partition run: this rank alone, or together with its peers.

The kernels' side is in gluon/kernels/link.cuh, and in peers.cuh beside it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from cusp.errors import Intracomm
from cusp.kernels.cuda import Struct, load, struct
from cusp.runtime.exchange import exchange_counts

if TYPE_CHECKING:
    from cusp.partition import Partition
    from gluon.plan import SyncPlan
    from gluon.sync import Sync

ALIGNED = 256  # bytes: where arrays begin


class Link:
    """What a kernel gets as ``RANKS::Given``, and memory that partners store into while it runs. Collective.

    Parameters
    ----------
    part : Partition
    sync : Sync
    progress : array, or None where no rank is alone
        Of the kernel's queue: begins with the counter of barriers.
    arrays : list of int
        Bytes of arrays that partners store into; sizes may differ by rank.
    boxes : function (entries) -> list of int, optional
        Bytes of the mail that may come from one rank: of entries, of their values if there are some, and of what else
        there is, where so many nodes may be sent between two meetings.
    sends : {'mirrors', 'masters', 'both'}
        Mirrors are sent to the ranks of their masters, masters to those of their mirrors, or both.

    Attributes
    ----------
    alone : bool
    entries : list of int
        How many nodes each rank may send this one; with peers.
    """

    def __init__(
        self, part: "Partition", sync: "Sync", progress: Any, arrays: list[int],
        boxes: Callable[[int], list[int]] = lambda entries: [], sends: str = "mirrors",
    ) -> None:  # fmt: skip
        peers = self._peers = sync.peers
        self.alone = peers is None
        self._found: tuple[Any, tuple[Any, ...]] | None = None  # in which memory, and what was found there
        if peers is None:
            self._own = [cp.empty(max(size, 1), np.uint8) for size in arrays]
            self._progress = progress
            return
        masters = np.array([lids.size for lids in sync.plan.any.masters])
        mirrors = np.diff(part.mirror_starts)
        self.entries = {"mirrors": masters, "masters": mirrors, "both": masters + mirrors}[sends].tolist()
        sizes = [*arrays, *(size for box in zip(*map(boxes, self.entries)) for size in box)]
        ends = np.cumsum([-(-size // ALIGNED) * ALIGNED for size in sizes])
        peers.require(int(ends[-1]))
        self._offsets = np.array(peers.comm.allgather([0, *ends[:-1].tolist()]), np.uint64)
        self._first, self._boxes = len(arrays), len(boxes(0))
        self._proxies, self._sent = proxies_of(part, sync.plan, sync.comm), cp.zeros(2 * sync.comm.size, np.uint64)
        self._mirrors = mirrors_elsewhere(part, sync.plan, sync.comm) if sends == "masters" else None

    def load(self, path: str, name: str, each: int, **defines: str) -> Any:
        """The resident kernel ``name`` of a file, made for this world; see ``Kernels.resident``."""
        return load(path, **defines, RANKS="Alone" if self.alone else "Together").resident(name, each)

    def run(self, kernel: Any, find: Callable[[], tuple[Any, ...]], *arguments: Any) -> None:
        """Run a kernel with this world, what ``find()`` says of addresses, and more arguments. Collective.

        The addresses change only where the memory of the peers had to grow.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        memory = None if self._peers is None else self._peers.memory
        if self._found is None or self._found[0] is not memory:
            self._found = memory, (self._given(), *find())
        if self._peers is None:
            kernel(*self._found[1], *arguments)
        else:
            self._peers.run(kernel, *self._found[1], *arguments)

    def own(self, number: int, size: int, dtype: Any) -> Any:
        """(size,) dtype: the first entries of array ``number`` of this rank, until other peers use the memory."""
        assert self._peers is not None
        rank = self._peers.comm.rank
        address = int(self._peers.memory.bases[rank] + self._offsets[rank, number])
        memory = cp.cuda.UnownedMemory(address, max(size, 1) * np.dtype(dtype).itemsize, self._peers)
        return cp.ndarray((size,), dtype, cp.cuda.MemoryPointer(memory, 0))

    def array(self, number: int) -> tuple[Any, Any]:
        """Array ``number`` of this rank, for a struct, and (ranks,) its addresses on all; alone, None."""
        if self._peers is None:
            return self._own[number], None
        of_all = self._peers.memory.bases + self._offsets[:, number]
        return int(of_all[self._peers.comm.rank]), cp.asarray(of_all)

    def box(self, number: int) -> tuple[Any, Any]:
        """(ranks,) addresses of box ``number`` on each rank for this one, and of this rank for each; None alone."""
        if self._peers is None or number >= self._boxes:
            return None, None
        rank, bases = self._peers.comm.rank, self._peers.memory.bases
        first = self._first + number * bases.size
        there, here = self._offsets[:, first + rank], self._offsets[rank, first : first + bases.size]
        return cp.asarray(bases + there), cp.asarray(bases[rank] + here)

    def _given(self) -> Struct:
        """Struct Given of the world."""
        if self._peers is None:
            return struct(self._progress)
        return struct(self._peers.struct, self._proxies, *self.box(0), *self.box(1), self._sent, self._mirrors)


def proxies_of(part: "Partition", plan: "SyncPlan", comm: Intracomm) -> Struct:
    """Struct Proxies of peers.cuh: where the mirrors of this rank's masters are, and the masters of its mirrors.
    Collective.
    """
    begins = exchange_counts(comm, np.ascontiguousarray(part.mirror_starts[:-1]))
    sizes = np.array([lids.size for lids in plan.any.masters], np.int64)
    addresses = cp.asarray(np.array([lids.data.ptr for lids in plan.any.masters], np.uint64))
    proxies = struct(part.num_masters, cp.asarray(part.mirror_starts), cp.asarray(begins), cp.asarray(sizes), addresses)
    proxies.members += plan.any.masters  # they live as long
    return proxies


def mirrors_elsewhere(part: "Partition", plan: "SyncPlan", comm: Intracomm) -> Any:
    """(ranks, masters) int32 on the device: local id on each rank of a master's mirror, -1 without one. Collective."""
    begins = exchange_counts(comm, np.ascontiguousarray(part.mirror_starts[:-1]))
    result = cp.full((comm.size, part.num_masters), -1, np.int32)
    for mirrors, lids, begin in zip(result, plan.any.masters, begins.tolist()):
        mirrors[lids] = cp.arange(begin, begin + lids.size, dtype=np.int32)
    return result
