"""Storage of arrays with an entry for each edge: in memory, or in files with one chunk at a time in memory.

The phases of the partitioner walk through such arrays in chunks and ask the storage of their slice how large
these are. Without ``--memory-limit`` there is a single chunk. With it, the arrays are mapped: the
slice is the graph file itself, and what is made is a scratch file. After each chunk their pages are released,
so that no more than a chunk of each is ever resident. The loops see plain arrays either way.
On a GPU with a limit, they are hosted: see ``cusp/card/card_gpu.py``.
"""

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np
from numpy.typing import DTypeLike

from cusp.errors import OptionError
from cusp.runtime import watchdog
from cusp.runtime.devices import Array, device_of, move, xp_of
from cusp.runtime.files import ScratchFile, open_input

ROW_BYTES = 17  # kept for each node that a rank reads: where its edges begin, how many there are, its master
EDGE_BYTES = 40  # needed for each edge of a chunk: read, grouped, in transit, received, written
LEAST_CHUNK = 1 << 12
TAKEN_AT_ONCE = 1 << 24  # edges that are copied from one device to another
ALL = 1 << 62  # a chunk that is never full
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # a mapped graph file may be larger than all memory


class Usage(NamedTuple):
    """Where the edges of a process are that computes on a GPU.

    Attributes
    ----------
    limit : int
        Bytes of the card that this process may use.
    resident, hosted : int
        Bytes of edge arrays that lie on the card, and that lie in page-locked memory of the host.
    rate : float
        Bytes per second that come over the link.
    """

    limit: int
    resident: int
    hosted: int
    rate: float


class Storage:
    """Arrays in the memory of a device, as much as there is; the base of those with a limit.

    Attributes
    ----------
    device : {'cpu', 'gpu'}
        Whose memory it is.
    memory_limit : int or None
        Bytes that a rank on CPUs may use for its part of the graph.
    """

    memory_limit: int | None = None

    def __init__(self, chunk: int = ALL, device: str = "cpu") -> None:
        self._chunk, self.device = chunk, device

    @property
    def chunk(self) -> int:
        """Edges that are worked on at a time. A row is never cut: if it is longer, it is a chunk of its own."""
        return self.at_once(self._chunk, EDGE_BYTES)

    def empty(self, size: int, dtype: DTypeLike) -> Array:
        """A new array of one dimension, with an entry for each edge."""
        return xp_of(self.device).empty(size, dtype)

    def empty_aside(self, size: int, dtype: DTypeLike) -> Array:
        """A new array with entries for nodes that is read in order, or seldom: elsewhere if memory is short."""
        return xp_of(self.device).empty(size, dtype)

    def aside(self, array: Array) -> Array:
        """Such an array from one that lies anywhere: itself, or a copy."""
        return array

    def take(self, array: Any) -> Any:
        """An array of any device, copied into this storage if it is of another; None stays None."""
        if array is None or device_of(array) == self.device:
            return array
        taken = self.empty(array.size, array.dtype)
        for part in self.parts(array.size, TAKEN_AT_ONCE):
            taken[part] = move(array[part], self.device)
        return taken

    def prefer(self, arrays: Sequence[Array], headroom: int = 0) -> None:
        """Keep the last rows of these arrays, as many as fit, where they are read fastest, rather than those of others.

        Hubs come first, so the last rows are the short ones. They are asked for most often: a pull seldom looks at a
        hub, which is reached early, and most nodes are reached by their first neighbors. ``headroom`` bytes are left
        for what a run makes.
        """

    def settle(self) -> None:
        """Bring back what had to make room for arrays that are gone, and give back what no array uses."""

    def at_once(self, most: int, entry_bytes: int) -> int:
        """How many entries, at most ``most``, to work on at a time if each needs ``entry_bytes``."""
        return most

    def usage(self) -> Usage | None:
        """Where the edges are; None without a limit of a GPU."""
        return None

    def map_file(self, path: str, offset: int, size: int, dtype: DTypeLike) -> np.ndarray | None:
        """Part of a file as an array; writing to it does not change the file. None where arrays live in memory."""
        return None

    def landing(self, place: np.ndarray) -> np.ndarray:
        """Where messages for ``place``, a part of an array of this storage, may be received: here, in ``place``."""
        return place

    def land(self, place: np.ndarray, received: np.ndarray) -> None:
        """Move what was received into :meth:`landing` to its place."""

    def release(self) -> None:
        """Release the memory of what is also in a file."""

    def check_rows(self, indptr: np.ndarray) -> None:
        """Refuse rows that are too long for a chunk: none is."""

    def rows(self, indptr: np.ndarray, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        """Walk through the rows ``begin`` to ``end - 1`` in chunks: the first row of each, and the one after its last.

        There is at least one chunk, which may be empty.
        """
        begin, end = int(begin), int(indptr.size - 1 if end is None else end)
        while True:
            fits = int(np.searchsorted(indptr[: end + 1], indptr[begin] + self.chunk, side="right")) - 1
            last = min(max(fits, begin + 1), end)
            yield begin, last
            self.release()
            watchdog.step()
            if last == end:
                return
            begin = last

    def parts(self, size: int, at_most: int = ALL) -> Iterator[slice]:
        """Walk through ``size`` entries in chunks, or less than a chunk at a time."""
        step = min(self.chunk, at_most)
        for begin in range(0, size, step):
            yield slice(begin, min(begin + step, size))
            self.release()


class FileStorage(Storage):
    """Arrays in mapped files.

    Parameters
    ----------
    chunk : int
        Edges.
    limit : int
        Bytes from which the chunk was derived.
    """

    def __init__(self, chunk: int, limit: int = 0) -> None:
        super().__init__(chunk)
        self.memory_limit: int = limit
        self._maps: WeakSet[mmap.mmap] = WeakSet()

    def empty(self, size: int, dtype: DTypeLike) -> np.ndarray:
        """A new array in a scratch file, whose disk space is reserved now.

        Raises
        ------
        ScratchError
            There is not enough space.
        """
        if size == 0:
            return np.empty(0, dtype)
        with closing(ScratchFile()) as file:
            return self._array(file.map(size * np.dtype(dtype).itemsize), 0, size, dtype)

    def map_file(self, path: str, offset: int, size: int, dtype: DTypeLike) -> np.ndarray | None:
        """Part of a file as an array; None if numbers of this type cannot begin at ``offset``."""
        if size == 0 or offset % np.dtype(dtype).itemsize:
            return None
        before = offset % mmap.ALLOCATIONGRANULARITY
        num_bytes = before + size * np.dtype(dtype).itemsize
        with open_input(path) as file:
            mapped = mmap.mmap(
                file.fileno(),
                num_bytes,
                flags=mmap.MAP_PRIVATE | NO_RESERVE,
                prot=mmap.PROT_READ | mmap.PROT_WRITE,  # compiled loops expect writable arrays
                offset=offset - before,
            )
        return self._array(mapped, before, size, dtype)

    def landing(self, place: np.ndarray) -> np.ndarray:
        """Ordinary memory: network cards do not write into mapped files."""
        return np.empty_like(place)

    def land(self, place: np.ndarray, received: np.ndarray) -> None:
        """Copy what was received to its place."""
        place[:] = received

    def check_rows(self, indptr: np.ndarray) -> None:
        """Refuse a row that is longer than a chunk."""
        longest = int(np.diff(indptr).max(initial=0))
        if longest > self.chunk:
            raise OptionError(
                f"--memory-limit: {self.memory_limit:,} bytes are not enough for a node with {longest:,} edges, which "
                f"must fit at once; at least {self.memory_limit + (longest - self.chunk) * EDGE_BYTES:,} are needed"
            )

    def release(self) -> None:
        """Take the pages of all mapped arrays out of memory; what was written stays in their files."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_DONTNEED)

    def _array(self, mapped: mmap.mmap, offset: int, size: int, dtype: DTypeLike) -> np.ndarray:
        self._maps.add(mapped)
        return np.frombuffer(mapped, dtype, size, offset)


IN_MEMORY = Storage()
_memories = {"cpu": IN_MEMORY, "gpu": Storage(device="gpu")}


def memory_of(device: str) -> Storage:
    """Storage of arrays in the memory of a device. On a GPU the kernels decide how much they work on at a time."""
    return _memories[device]


def use_memory(storage: Storage) -> None:
    """From now on, this is the memory of its device."""
    _memories[storage.device] = storage


def storage_for(limit: int | None, num_nodes: int, rows: int) -> Storage:
    """Storage of a rank that reads ``rows`` of the nodes and may use ``limit`` bytes for its part of the graph.

    Raises
    ------
    OptionError
        The limit is too small for what is kept of nodes and a small chunk of edges.
    """
    if limit is None:
        return IN_MEMORY
    held = rows * ROW_BYTES + num_nodes // 4
    if limit < held + LEAST_CHUNK * EDGE_BYTES:
        raise OptionError(
            f"--memory-limit: {limit:,} bytes are not enough for the {rows:,} nodes that a rank reads; at least "
            f"{held + LEAST_CHUNK * EDGE_BYTES:,} are needed. Raise it, or use more ranks"
        )
    return FileStorage((limit - held) // EDGE_BYTES, limit)


def host_bytes() -> int:
    """Bytes of memory of this host."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def peak_mb() -> float:
    """Peak memory of this process, in MB (without its parent's before the fork, which getrusage includes)."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) * 1024 / 1e6
