"""The memory of this process's GPU, as far as it may be used.

Without a limit nothing here is called. With one, arrays with an entry for each edge are hosted, see hosted_gpu.py, and
their last rows are brought onto the card while there is room. All other arrays lie on the card: small ones come from
CuPy's pool, large ones are hosted arrays that were made on the card, so that the pool is never cut into pieces of which
none is large enough. When the limit is reached, edges make room; when there are none left on the card, the new array
lies in the host's memory, until there is room again. So whatever an algorithm makes, it is right; the more of it fits
onto the card, the faster.

Memory that is not used any more is kept for the next array, since page-locked memory is slow to make (3 GB/s), and
given back when an algorithm is prepared; that of the card also when anything else needs it.
"""

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

import cupy as cp
import numpy as np
from numpy.typing import DTypeLike

from cusp.card.driver_gpu import CARD, HOST, granularity, why_not
from cusp.card.hosted_gpu import CardError, Hosted, whole_units
from cusp.runtime.devices import Array
from cusp.runtime.storage import Storage, Usage, memory_of, use_memory

RESERVE = 1 << 29  # bytes for the driver, libraries and partners, at least
RESERVED_SHARE = 16  # or this part of the card, if that is more
ASIDE = 8  # an array of more than this part of the limit may be put aside
PROBE = 1 << 26  # bytes by which the rate of the link is measured
LARGE = 64  # an array of more than this part of the limit is large
AT_LEAST = 32  # this part of the limit is made free at a time
WASTE = 1.25  # of kept memory: an array gets up to this times what it needs
OutOfMemoryError = cp.cuda.memory.OutOfMemoryError


class Card(Storage):
    """The card under a limit, and the hosted memory beside it."""

    def __init__(self, limit: int) -> None:
        super().__init__(device="gpu")
        self.limit, self.rate = limit, 0.0
        self.pool = cp.cuda.MemoryPool()
        self._resident: list[tuple[Hosted, int]] = []  # pieces brought there; those that are wanted most come first
        self._made_there: list[Hosted] = []  # used or kept
        self._used: weakref.WeakSet[_Lease] = weakref.WeakSet()
        self._crowded_out: weakref.WeakSet[_Lease] = weakref.WeakSet()  # arrays for which there was no room
        self._preferred: list[weakref.WeakSet[_Lease]] = []  # groups of arrays; those preferred last come first
        self._headroom = 0
        self._returned: list[Hosted] = []  # of arrays that are gone: they may go at any time, so nothing is done then
        self._kept: dict[int, list[Hosted]] = {CARD: [], HOST: []}
        self.resize(limit)
        cp.cuda.set_allocator(self.allocate)
        self._measure()

    def resize(self, limit: int) -> None:
        """Another limit from now on."""
        self.limit = limit
        self._bound_pool()

    def empty(self, size: int, dtype: DTypeLike) -> Array:
        """Hosted memory."""
        if size == 0:
            return cp.empty(size, dtype)
        return cp.ndarray(size, dtype, self.host(size * np.dtype(dtype).itemsize))

    def empty_aside(self, size: int, dtype: DTypeLike) -> Array:
        """Hosted memory, if it is much."""
        return (self.empty if self._is_much(size * np.dtype(dtype).itemsize) else cp.empty)(size, dtype)

    def at_once(self, most: int, entry_bytes: int) -> int:
        """As many entries as take an eighth of the limit."""
        return min(most, max(self.limit // (8 * entry_bytes), 1))

    def allocate(self, size: int) -> Any:
        """Memory for any array, for CuPy: on the card, if there is or can be room, else hosted."""
        find = self._large if size > self.limit // LARGE else self.pool.malloc
        for _ in range(2):
            try:
                return find(size)
            except (OutOfMemoryError, CardError):  # the limit, or the card has less than that
                self._make_room(size)
        return self._lend(self._hosted(size), self._crowded_out)

    def host(self, size: int) -> Any:
        """Hosted memory."""
        return self._lend(self._hosted(size))

    def _large(self, size: int) -> Any:
        """Memory of the card that is not from the pool."""
        block = self._again(CARD, size)
        if block is None:
            if whole_units(size) > self.limit - self.held():
                raise CardError
            block = Hosted(size, CARD)
            self._made_there.append(block)
            self._bound_pool()
        return self._lend(block)

    def _hosted(self, size: int) -> Hosted:
        block = self._again(HOST, size)
        if block:
            cp.cuda.runtime.deviceSynchronize()  # a kernel that read what was here may still run
            return block
        try:
            return Hosted(size)
        except CardError:
            if not self._kept[HOST]:
                raise
            self.give_back()
            return Hosted(size)

    def _again(self, home: int, size: int) -> Hosted | None:
        """Kept memory of about this size."""
        self._take_back()
        fitting = [block for block in self._kept[home] if size <= block.size <= WASTE * size + granularity()]
        if not fitting:
            return None
        block = min(fitting, key=lambda block: block.size)
        self._kept[home].remove(block)
        return block

    def _lend(self, block: Hosted, *lists: "weakref.WeakSet[_Lease]") -> Any:
        """A pointer that keeps a lease, which is in some lists as long as it lives."""
        lease = _Lease(block)
        weakref.finalize(lease, self._returned.append, block).atexit = False
        for leases in (self._used, *lists):
            leases.add(lease)
        return block.pointer(lease)

    def aside(self, array: Array) -> Array:
        """A copy in hosted memory, if it is large and lies on the card."""
        if not self._is_much(array.nbytes):
            return array
        for lease in self._leases([array]):
            if lease.block.home == HOST:
                self._crowded_out.discard(lease)
                return array
        moved = cp.ndarray(array.size, array.dtype, self.host(array.nbytes))
        moved[...] = array
        return moved

    def _is_much(self, size: int) -> bool:
        return size > self.limit // ASIDE

    def _leases(self, arrays: Sequence[Array]) -> "list[_Lease]":
        addresses = [array.data.ptr for array in arrays]
        return [lease for lease in list(self._used) if lease.block.address in addresses]

    def give_back(self) -> None:
        """Free the memory that no array uses."""
        self._free_card()
        while self._kept[HOST]:
            self._kept[HOST].pop().free()

    def _free_card(self) -> None:
        """Free that of the card."""
        self._take_back()
        self.pool.free_all_blocks()
        for block in self._kept[CARD]:
            self._made_there.remove(block)
            block.free()
        self._kept[CARD].clear()
        self._bound_pool()

    def prefer(self, arrays: Sequence[Array], headroom: int = 0) -> None:
        """Those of the last call come first."""
        group = weakref.WeakSet(self._leases(arrays))
        self._preferred = [group, *(older for older in self._preferred if len(older) > 0)]
        self._headroom = max(headroom, self._headroom)
        self._bring()

    def settle(self) -> None:
        """Arrays for which there was no room come first, then those that are preferred."""
        self._bring()
        self.give_back()

    def _bring(self) -> None:
        self._free_card()
        groups = [[lease.block for lease in list(group)] for group in self._preferred if len(group) > 0]
        room = self.limit - self.held() + bytes_of(self._resident)
        chosen = fitting(last_rows_first([lease.block for lease in list(self._crowded_out)]), room)
        room -= bytes_of(chosen) + self._headroom
        chosen += fitting(list(itertools.chain.from_iterable(map(last_rows_first, groups))), room)
        for block, number in set(self._resident) - set(chosen):
            block.send_back(number)
        self._resident = [(block, number) for block, number in chosen if block.bring(number)]
        self._bound_pool()

    def held(self) -> int:
        """Bytes of the card that are taken."""
        return int(self.pool.total_bytes()) + self._outside_pool()

    def usage(self) -> Usage:
        """Where the edges are."""
        self._take_back()
        resident = bytes_of(self._resident)
        hosted = sum(lease.block.size for lease in list(self._used) if lease.block.home == HOST)
        return Usage(self.limit, resident, hosted - resident, self.rate)

    def _make_room(self, size: int) -> None:
        """Free what is not used, then send pieces back until ``size`` bytes are left."""
        self._free_card()
        missing = whole_units(size) - (self.limit - self.held())
        wanted, freed = max(missing, self.limit // AT_LEAST) if missing > 0 else 0, 0
        while self._resident and freed < wanted:
            block, number = self._resident.pop()
            block.send_back(number)
            freed += block.bytes_of(number)
        self._bound_pool()

    def _bound_pool(self) -> None:
        self.pool.set_limit(size=max(self.limit - self._outside_pool(), 1))

    def _outside_pool(self) -> int:
        """Bytes of the card that the pool does not have."""
        return bytes_of(self._resident) + sum(block.size for block in self._made_there)

    def _take_back(self) -> None:
        """Keep the memory of arrays that are gone."""
        while self._returned:
            block = self._returned.pop()
            self._resident = [piece for piece in self._resident if piece[0] is not block]
            self._kept[block.home].append(block)
            if block.home == HOST:
                for number in list(block.resident):
                    block.send_back(number)
                self._bound_pool()

    def _measure(self) -> None:
        """How fast a kernel reads over the link."""
        numbers = cp.ndarray(PROBE // 4, np.int32, self.host(PROBE))
        numbers.fill(1)
        numbers.max()
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        numbers.max()
        end.record()
        end.synchronize()
        self.rate = numbers.nbytes / max(cp.cuda.get_elapsed_time(begin, end) / 1e3, 1e-9)


def last_rows_first(blocks: list[Hosted]) -> list[tuple[Hosted, int]]:
    """The pieces of arrays that have the same rows, by which to keep first."""
    pieces = [(block, number) for block in blocks for number in range(block.pieces)]
    return sorted(pieces, key=lambda piece: piece[1] / piece[0].pieces, reverse=True)


def bytes_of(pieces: list[tuple[Hosted, int]]) -> int:
    """Of all of them."""
    return sum(block.bytes_of(number) for block, number in pieces)


def fitting(pieces: list[tuple[Hosted, int]], room: int) -> list[tuple[Hosted, int]]:
    """As many of the first as have room."""
    ends = itertools.accumulate(block.bytes_of(number) for block, number in pieces)
    return [piece for piece, end in zip(pieces, ends) if end <= room]


class _Lease:
    """An array's use of hosted memory."""

    def __init__(self, block: Hosted) -> None:
        self.block = block


def bus() -> str:
    """Where the GPU of this process is, on its host."""
    return str(cp.cuda.Device().pci_bus_id)


def set_limit(limit: int | None, needed: int, sharing: int) -> None:
    """Use at most ``limit`` bytes of the card from now on; what does not fit lies in the host's memory.

    Parameters
    ----------
    limit : int or None
        None: this rank's part of what the card has free, less a reserve, if ``needed`` bytes are more than that;
        else there is no limit.
    needed : int
        Bytes that a graph takes while it is partitioned.
    sharing : int
        Ranks that use the card.

    Raises
    ------
    CardError
        The limit is more than the card has.
    """
    card = memory_of("gpu")
    free, whole = cp.cuda.runtime.memGetInfo()
    free += card.held() if isinstance(card, Card) else cp.get_default_memory_pool().free_bytes()
    if limit is None:
        most = free // sharing - max(RESERVE, whole // RESERVED_SHARE)
        if needed <= (card.limit if isinstance(card, Card) else most):
            return
        limit = most
    if not 0 < limit <= free:
        what = f"--memory-limit: {limit:,} bytes" if limit > 0 else f"the graph needs up to {needed:,} bytes"
        raise CardError(f"{what}, but the GPU has {free:,} of {whole:,} free, for {sharing} rank{'s' * (sharing > 1)}")
    why = why_not()
    if why:
        raise CardError(
            f"the graph needs up to {needed:,} bytes, and {limit:,} of the GPU may be used; its driver cannot use "
            f"host memory for the rest ({why}): use more ranks, or --device cpu"
        )
    if isinstance(card, Card):
        card.resize(limit)
    else:
        use_memory(Card(limit))
