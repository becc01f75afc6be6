"""The world of ranks in which kernels of one partition run: this rank alone, or together with its peers.

The kernels' side is in gluon/kernels/link.cuh.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import cupy as cp
import numpy as np

from cusp.kernels.cuda import Struct, load, struct
from gluon.peers.lists_gpu import PeerArrays, PeerProxies, mirrors_elsewhere, proxies_of

if TYPE_CHECKING:
    from cusp.partition import Partition
    from gluon.sync import Sync


class Link:
    """What a kernel gets as ``RANKS::Given``, and memory that partners store into. Collective.

    Parameters
    ----------
    part : Partition
    sync : Sync
    progress : array
        Of the kernel's queue: begins with the counter of barriers.
    arrays : list of int
        Bytes of arrays that partners store into.
    boxes : function (entries) -> list of int, optional
        Bytes of the mail that may come from one rank: of entries, of their values if there are some, and of what else
        there is, where so many nodes may be sent between two meetings.
    to_mirrors : bool
        Masters are sent to the ranks of their mirrors; otherwise mirrors to those of their masters.

    Attributes
    ----------
    alone : bool
    proxies : PeerProxies or None
    """

    def __init__(
        self, part: "Partition", sync: "Sync", progress: Any, arrays: list[int],
        boxes: Callable[[int], list[int]] = lambda entries: [], to_mirrors: bool = False,
    ) -> None:  # fmt: skip
        peers = self._peers = sync.peers
        self.alone = peers is None
        self.proxies: PeerProxies | None = None
        if peers is None:
            self._own = [cp.empty(max(size, 1), np.uint8) for size in arrays]
            self._alone = struct(progress)
            return
        self.proxies = proxies_of(part, sync.plan, sync.comm)
        entries = np.diff(part.mirror_starts).tolist() if to_mirrors else self.proxies.sizes
        sizes = [boxes(size) for size in entries]
        self._first, self._boxes = len(arrays), len(sizes[0])
        self._arrays = PeerArrays(peers, [*arrays, *(size for box in zip(*sizes) for size in box)])
        self._mirrors = mirrors_elsewhere(part, sync.plan, sync.comm) if to_mirrors else None
        self._sent = cp.zeros(2 * sync.comm.size, np.uint64)

    def load(self, path: str, name: str, each: int, **defines: str) -> Any:
        """The resident kernel ``name`` of a file, made for this world; see ``Kernels.resident``."""
        return load(path, **defines, RANKS="Alone" if self.alone else "Together").resident(name, each)

    def run(self, kernel: Any, find: Callable[[], tuple[Any, ...]], *arguments: Any) -> None:
        """Run a kernel with this world, what ``find()`` says of addresses, and more arguments. Collective.

        Raises
        ------
        PeerError
            A partner did not answer.
        """
        if self._peers is None:
            kernel(self._alone, *find(), *arguments)
        else:
            given, found = self._arrays.addresses(lambda: (self._given(), find()))
            self._peers.run(kernel, given, *found, *arguments)

    def own(self, number: int, size: int, dtype: Any) -> Any:
        """(size,) dtype: the first entries of array ``number`` of this rank, until other peers use the memory."""
        if self.alone:
            return self._own[number][: size * np.dtype(dtype).itemsize].view(dtype)
        return self._arrays.own(number, size, dtype)

    def array(self, number: int) -> tuple[Any, Any]:
        """Array ``number`` of this rank, for a struct, and (ranks,) its addresses on all; alone, None."""
        if self.alone:
            return self._own[number], None
        of_all = self._arrays.of_all(number)
        return int(of_all[self._arrays.peers.comm.rank]), of_all

    def box(self, number: int) -> tuple[Any, Any]:
        """(ranks,) addresses of box ``number`` on each rank for this one, and of this rank for each; None alone."""
        if self.alone or number >= self._boxes:
            return None, None
        first = self._first + number * self._arrays.peers.comm.size
        return self._arrays.for_me(first), self._arrays.from_all(first)

    def _given(self) -> Struct:
        assert self._peers is not None and self.proxies is not None
        return struct(self._peers.struct, self.proxies.struct, *self.box(0), *self.box(1), self._sent, self._mirrors)
