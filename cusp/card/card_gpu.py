"""The memory of this process's GPU, as far as it may be used: see interfaces.py.

Without a limit nothing here is called. With one, arrays with an entry for each edge are hosted, see hosted_gpu.py, and
their last rows are brought onto the card while there is room. All other arrays come from CuPy's pool. When that has
reached the limit, edges make room for it; when there are none left on the card, the new array is hosted itself. So
whatever an algorithm makes, it is right; the more of it fits onto the card, the faster.

Hosted memory that is not used any more is kept for the next array, since page-locked memory is slow to make (3 GB/s),
and given back when an algorithm is prepared.
"""

import itertools
import socket
import weakref
from collections.abc import Sequence
from typing import Any

import cupy as cp
import numpy as np
from numpy.typing import DTypeLike

from cusp.card import driver_gpu
from cusp.card.hosted_gpu import CardError, Hosted
from cusp.card.interfaces import Usage
from cusp.runtime.devices import Array

RESERVE = 1 << 29  # bytes for the driver, libraries and partners, at least
RESERVED_SHARE = 16  # or this part of the card, if that is more
ASIDE = 8  # an array of more than this part of the limit may be put aside
PROBE = 1 << 26  # bytes by which the rate of the link is measured
AT_LEAST = 32  # this part of the limit is made free at a time
WASTE = 1.25  # of kept memory: an array gets up to this times what it needs
OutOfMemoryError = cp.cuda.memory.OutOfMemoryError


class Memory:
    """The card under a limit, and the hosted memory beside it."""

    def __init__(self, limit: int) -> None:
        self.limit, self.rate = limit, 0.0
        self.pool = cp.cuda.MemoryPool()
        self._resident: list[tuple[Hosted, int]] = []  # pieces on the card; those that are wanted most come first
        self._used: weakref.WeakSet[_Lease] = weakref.WeakSet()
        self._looked_up: weakref.WeakSet[_Lease] = weakref.WeakSet()
        self._preferred: list[weakref.WeakSet[_Lease]] = []  # groups of arrays; those preferred last come first
        self._headroom = 0
        self._returned: list[Hosted] = []  # of arrays that are gone: they may go at any time, so nothing is done then
        self._kept: list[Hosted] = []
        self.resize(limit)
        cp.cuda.set_allocator(self.allocate)
        self._measure()

    def resize(self, limit: int) -> None:
        """Another limit from now on."""
        self.limit = limit
        self._bound_pool()

    def allocate(self, size: int) -> Any:
        """Memory for any array, for CuPy: on the card, if there is or can be room, else hosted."""
        try:
            return self.pool.malloc(size)
        except OutOfMemoryError:
            pass
        if self._make_room(size):
            try:
                return self.pool.malloc(size)
            except OutOfMemoryError:  # the card has less than the limit
                pass
        return self.host(size)

    def host(self, size: int) -> Any:
        """Hosted memory."""
        self._take_back()
        fitting = [block for block in self._kept if size <= block.size <= WASTE * size + driver_gpu.granularity()]
        if fitting:
            block = min(fitting, key=lambda block: block.size)
            self._kept.remove(block)
            cp.cuda.runtime.deviceSynchronize()  # a kernel that read what was here may still run
        else:
            try:
                block = Hosted(size)
            except CardError:
                if not self._kept:
                    raise
                self.give_back()
                block = Hosted(size)
        lease = _Lease(block)
        weakref.finalize(lease, self._returned.append, block).atexit = False
        self._used.add(lease)
        return block.pointer(lease)

    def hosts(self, array: Array) -> bool:
        """Whether an array begins where hosted memory does."""
        return len(self._leases([array])) > 0

    def _leases(self, arrays: Sequence[Array]) -> "list[_Lease]":
        addresses = [array.data.ptr for array in arrays]
        return [lease for lease in list(self._used) if lease.block.address in addresses]

    def give_back(self) -> None:
        """Free the hosted memory that no array uses."""
        while self._kept:
            self._kept.pop().free()

    def prefer(self, arrays: Sequence[Array], headroom: int) -> None:
        """See interfaces.py."""
        group = weakref.WeakSet(self._leases(arrays))
        self._preferred = [group, *(older for older in self._preferred if len(older) > 0)]
        self._headroom = max(headroom, self._headroom)
        self.settle()

    def look_up(self, array: Array) -> None:
        """See interfaces.py."""
        self._looked_up.update(self._leases([array]))
        self.settle()

    def settle(self, share: float = 1.0) -> None:
        """See interfaces.py."""
        self._take_back()
        self.pool.free_all_blocks()
        groups = [[lease.block for lease in list(group)] for group in self._preferred if len(group) > 0]
        room = self.limit - self.pool.total_bytes()
        chosen = fitting(last_rows_first([lease.block for lease in list(self._looked_up)]), room)
        room -= bytes_of(chosen) + self._headroom
        if share < 1 and groups:
            room = min(room, int(share * sum(block.size for block in groups[0])))
        chosen += fitting(list(itertools.chain.from_iterable(map(last_rows_first, groups))), room)
        for block, number in set(self._resident) - set(chosen):
            block.send_back(number)
        self._resident = [(block, number) for block, number in chosen if block.bring(number)]
        self._bound_pool()

    def held(self) -> int:
        """Bytes of the card that are taken."""
        return int(self.pool.total_bytes()) + self._resident_bytes()

    def usage(self) -> Usage:
        """See interfaces.py."""
        self._take_back()
        resident = self._resident_bytes()
        return Usage(self.limit, resident, sum(lease.block.size for lease in list(self._used)) - resident, self.rate)

    def _make_room(self, size: int) -> bool:
        """Send edges back until the pool may grow by ``size``; whether there were any on the card."""
        self._take_back()
        self.pool.free_all_blocks()
        missing = size + self.pool.used_bytes() - self.pool.get_limit()
        return self._send_back(max(missing, self.limit // AT_LEAST)) > 0

    def _send_back(self, wanted: int) -> int:
        """Move pieces into the host's memory until ``wanted`` bytes are free; how many became free."""
        freed = 0
        while self._resident and freed < wanted:
            block, number = self._resident.pop()
            block.send_back(number)
            freed += block.bytes_of(number)
        self._bound_pool()
        return freed

    def _bound_pool(self) -> None:
        self.pool.set_limit(size=max(self.limit - self._resident_bytes(), 1))

    def _resident_bytes(self) -> int:
        return bytes_of(self._resident)

    def _take_back(self) -> None:
        """Keep the memory of arrays that are gone."""
        while self._returned:
            block = self._returned.pop()
            self._resident = [piece for piece in self._resident if piece[0] is not block]
            for number in list(block.resident):
                block.send_back(number)
            self._kept.append(block)
        self._bound_pool()

    def _measure(self) -> None:
        """How fast a kernel reads over the link."""
        numbers = cp.ndarray(PROBE // 4, np.int32, self.host(PROBE))
        numbers.fill(1)
        numbers.sum()
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        numbers.sum()
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


_memory: list[Memory] = []  # that of this process, once there is a limit


def place() -> str:
    return f"{socket.gethostname()} {cp.cuda.Device().pci_bus_id}"


def set_limit(limit: int | None, needed: int, sharing: int) -> None:
    free, whole = cp.cuda.runtime.memGetInfo()
    free += _memory[0].held() if _memory else cp.get_default_memory_pool().free_bytes()
    if limit is None:
        most = free // sharing - max(RESERVE, whole // RESERVED_SHARE)
        if needed <= (_memory[0].limit if _memory else most):
            return
        limit = most
    if not 0 < limit <= free:
        what = f"--memory-limit: {limit:,} bytes" if limit > 0 else f"the graph needs up to {needed:,} bytes"
        raise CardError(f"{what}, but the GPU has {free:,} of {whole:,} left, for {sharing} rank{'s' * (sharing > 1)}")
    why = driver_gpu.why_not()
    if why:
        raise CardError(
            f"the graph needs up to {needed:,} bytes, and {limit:,} of the GPU may be used; its driver cannot take "
            f"memory of the host for the rest ({why}): use more ranks, or --device cpu"
        )
    if _memory:
        _memory[0].resize(limit)
    else:
        _memory.append(Memory(limit))


def empty(size: int, dtype: DTypeLike) -> Array:
    if not _memory or size == 0:
        return cp.empty(size, dtype)
    return cp.ndarray(size, dtype, _memory[0].host(size * np.dtype(dtype).itemsize))


def aside(size: int, dtype: DTypeLike) -> Array:
    return empty(size, dtype) if _large(size * np.dtype(dtype).itemsize) else cp.empty(size, dtype)


def put_aside(array: Array) -> Array:
    if not _large(array.nbytes) or _memory[0].hosts(array):
        return array
    moved = empty(array.size, array.dtype)
    moved[...] = array
    return moved


def _large(size: int) -> bool:
    return bool(_memory) and size > _memory[0].limit // ASIDE


def prefer(arrays: Sequence[Array], headroom: int = 0) -> None:
    if _memory:
        _memory[0].prefer(arrays, headroom)


def look_up(array: Array) -> None:
    if _memory:
        _memory[0].look_up(array)


def settle(share: float = 1.0) -> None:
    if _memory:
        _memory[0].settle(share)
        _memory[0].give_back()


def at_once(most: int, entry_bytes: int) -> int:
    return min(most, max(_memory[0].limit // (8 * entry_bytes), 1)) if _memory else most


def usage() -> Usage | None:
    return _memory[0].usage() if _memory else None
