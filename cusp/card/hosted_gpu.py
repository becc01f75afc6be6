"""Hosted arrays: they lie in page-locked memory of the host, and some pieces of them on the card instead.

Kernels see one array. A piece changes its place between kernels: it is copied, and its addresses then mean the copy.
An array that lies on the card from the first piece to the last takes no more of it than its own size: a pool whose
memory was cut for other sizes would need more.
"""

from typing import Any

import cupy as cp

from cusp.card import driver_gpu as driver
from cusp.card.driver_gpu import CARD, HOST, DriverError
from cusp.errors import InputError

RESERVE = 1 << 30  # bytes of the host's memory that are left to others
PIECE = 16  # units of the driver, which are 2 MiB: 32 MiB


class CardError(InputError):
    """The memory of the card or of the host is too small for a graph."""


def host_memory_left() -> int:
    """Bytes of the host's memory that nothing needs."""
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable:")) * 1024


def whole_units(size: int) -> int:
    """Bytes that an array of this size takes."""
    unit = driver.granularity()
    return -(-max(size, 1) // unit) * unit


class Hosted:
    """A range of addresses with memory behind it: at first, all is of the host or all is of the card.

    Attributes
    ----------
    address, size : int
    home : {HOST, CARD}
        Where it was made.
    piece : int
        Bytes of each piece but the last, which may be shorter.
    resident : set of int
        The pieces that lie on the card.
    """

    def __init__(self, size: int, home: int = HOST) -> None:
        unit = driver.granularity()
        self.home, self.size, self.piece = home, whole_units(size), PIECE * unit
        self._device = cp.cuda.runtime.getDevice()
        self.address = driver.reserve(self.size)
        self._handles: list[int] = []
        self.resident: set[int] = set()
        try:
            for number in range(-(-self.size // self.piece)):
                if home == HOST and host_memory_left() < self.bytes_of(number) + RESERVE:  # it may grow as it is used
                    raise CardError
                handle = driver.create(home, self.bytes_of(number))
                driver.show(self._at(number), self.bytes_of(number), handle)
                self._handles.append(handle)
            if home == CARD:
                self.resident.update(range(self.pieces))
        except (CardError, DriverError) as error:
            made = self.piece * len(self._handles)
            self.free()
            if isinstance(error, DriverError) and not error.out_of_memory:
                raise
            raise CardError(
                f"the host has {made:,} bytes left for page-locked memory, and {size:,} are needed for an array that "
                "does not fit onto the GPU: use ranks on more hosts, or a larger --memory-limit"
            ) from None

    def free(self) -> None:
        """Give all memory back."""
        cp.cuda.runtime.deviceSynchronize()
        for number, handle in enumerate(self._handles):
            driver.hide(self._at(number), self.bytes_of(number))
            driver.drop(handle)
        driver.release(self.address, self.size)
        self._handles, self.resident = [], set()

    @property
    def pieces(self) -> int:
        """How many there are."""
        return len(self._handles)

    def bytes_of(self, number: int) -> int:
        """Size of a piece."""
        return min(self.piece, self.size - number * self.piece)

    def bring(self, number: int) -> bool:
        """Move a piece onto the card; False if the card has no room for it."""
        if number in self.resident:
            return True
        try:
            self._move(number, CARD)
        except DriverError as error:
            if error.out_of_memory:
                return False
            raise
        self.resident.add(number)
        return True

    def send_back(self, number: int) -> None:
        """Move a piece into the host's memory."""
        self._move(number, HOST)
        self.resident.remove(number)

    def pointer(self, owner: Any) -> Any:
        """To the first byte; ``owner`` lives as long as an array that uses it."""
        memory = cp.cuda.UnownedMemory(self.address, self.size, owner, self._device)
        return cp.cuda.MemoryPointer(memory, 0)

    def _move(self, number: int, place: int) -> None:
        """The new memory is filled at other addresses before it takes the place of the old."""
        at, size = self._at(number), self.bytes_of(number)
        handle = driver.create(place, size)
        window = driver.reserve(size)
        driver.show(window, size, handle)
        runtime = cp.cuda.runtime
        runtime.deviceSynchronize()  # no kernel uses the piece
        runtime.memcpy(window, at, size, runtime.memcpyDefault)
        runtime.deviceSynchronize()
        driver.hide(window, size)
        driver.release(window, size)
        driver.hide(at, size)
        driver.drop(self._handles[number])
        driver.show(at, size, handle)
        self._handles[number] = handle

    def _at(self, number: int) -> int:
        return self.address + number * self.piece
