"""Where arrays with an entry for each edge live: in memory, or in files of which one chunk is in memory at a time.

The phases of the partitioner walk through such arrays in chunks, and ask the storage of their slice how
large these are. Without ``--memory-limit`` a chunk is all there is. With it, the arrays are mapped: the
slice is the graph file itself, what is made is a scratch file without a name in ``$TMPDIR``. After each
chunk their pages are given back, so that no more than a chunk of each is ever resident; the loops
see plain arrays either way.
"""

import mmap
import os
import tempfile
from collections.abc import Iterator
from weakref import WeakSet

import numpy as np
from numpy.typing import DTypeLike

from cusp.errors import OptionError
from cusp.runtime.devices import Array, xp_of

ROW_BYTES = 17  # held for each node that a rank reads: where its edges begin, how many there are, its master
EDGE_BYTES = 40  # at work for each edge of a chunk: read, grouped, under way, received, written
LEAST_CHUNK = 1 << 12
ALL = 1 << 62  # a chunk that is never full
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # a mapped graph file may be larger than all memory


class Storage:
    """Arrays in memory; the base of :class:`FileStorage`.

    Attributes
    ----------
    chunk : int
        Edges that are worked on at a time. A row is never cut: if it is longer, it is a chunk of its own.
    device : {'cpu', 'gpu'}
        Whose memory it is.
    """

    def __init__(self, chunk: int = ALL, device: str = "cpu") -> None:
        self.chunk, self.device = chunk, device

    def empty(self, size: int, dtype: DTypeLike) -> Array:
        """A new array of one dimension."""
        return xp_of(self.device).empty(size, dtype)

    def map_file(self, path: str, offset: int, size: int, dtype: DTypeLike) -> np.ndarray | None:
        """Part of a file as an array that changes nothing in the file; None where arrays live in memory."""
        return None

    def landing(self, place: np.ndarray) -> np.ndarray:
        """Where messages for a place in an array of this storage may be received: the place itself."""
        return place

    def land(self, place: np.ndarray, received: np.ndarray) -> None:
        """Bring what came to where it belongs."""

    def release(self) -> None:
        """Give back the memory of what is also in a file."""

    def check_rows(self, indptr: np.ndarray) -> None:
        """Refuse rows that are too long to be worked on: none."""

    def rows(self, indptr: np.ndarray, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        """Walk through the rows ``begin`` to ``end - 1`` in chunks: first row of each and the one after its last.

        There is at least one, which may be empty.
        """
        begin, end = int(begin), int(indptr.size - 1 if end is None else end)
        while True:
            fits = int(np.searchsorted(indptr[: end + 1], indptr[begin] + self.chunk, side="right")) - 1
            last = min(max(fits, begin + 1), end)
            yield begin, last
            self.release()
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
        Bytes from which the chunk was derived, for messages.
    folder : str, optional
        For scratch files; they have no name and vanish with the process. Default: ``$TMPDIR``, else ``/tmp``.
    """

    def __init__(self, chunk: int, limit: int = 0, folder: str | None = None) -> None:
        super().__init__(chunk)
        self._limit = limit
        self._folder = folder or tempfile.gettempdir()
        self._maps: WeakSet[mmap.mmap] = WeakSet()

    def empty(self, size: int, dtype: DTypeLike) -> np.ndarray:
        """A new array in a scratch file, whose room on the disk is reserved now.

        Raises
        ------
        OptionError
            There is not enough room.
        """
        if size == 0:
            return np.empty(0, dtype)
        num_bytes = size * np.dtype(dtype).itemsize
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                os.posix_fallocate(file.fileno(), 0, num_bytes)
                return self._array(mmap.mmap(file.fileno(), num_bytes), 0, size, dtype)
        except OSError as error:
            raise OptionError(
                f"--memory-limit: {self._folder} has no room for a scratch file of {num_bytes:,} bytes: "
                f"{error.strerror}; set TMPDIR to a folder on a larger disk"
            ) from None

    def map_file(self, path: str, offset: int, size: int, dtype: DTypeLike) -> np.ndarray | None:
        """Part of a file as an array; None if numbers of this type cannot begin at ``offset``."""
        if size == 0 or offset % np.dtype(dtype).itemsize:
            return None
        before = offset % mmap.ALLOCATIONGRANULARITY
        num_bytes = before + size * np.dtype(dtype).itemsize
        with open(path, "rb") as file:
            mapped = mmap.mmap(
                file.fileno(),
                num_bytes,
                flags=mmap.MAP_PRIVATE | NO_RESERVE,
                prot=mmap.PROT_READ | mmap.PROT_WRITE,  # compiled loops are made for arrays that can be written
                offset=offset - before,
            )
        return self._array(mapped, before, size, dtype)

    def landing(self, place: np.ndarray) -> np.ndarray:
        """Ordinary memory: network cards do not write into mapped files."""
        return np.empty_like(place)

    def land(self, place: np.ndarray, received: np.ndarray) -> None:
        """Copy what came to where it belongs."""
        place[:] = received

    def check_rows(self, indptr: np.ndarray) -> None:
        """Refuse a row that is longer than a chunk."""
        longest = int(np.diff(indptr).max(initial=0))
        if longest > self.chunk:
            raise OptionError(
                f"--memory-limit: {self._limit:,} bytes do not suffice for a node with {longest:,} edges, which are "
                f"worked on together; at least {self._limit + (longest - self.chunk) * EDGE_BYTES:,} do"
            )

    def release(self) -> None:
        """Take the pages of all mapped arrays out of memory; what was written stays in their files."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_DONTNEED)

    def _array(self, mapped: mmap.mmap, offset: int, size: int, dtype: DTypeLike) -> np.ndarray:
        self._maps.add(mapped)
        return np.frombuffer(mapped, dtype, size, offset)


IN_MEMORY = Storage()
ON_GPU = Storage(device="gpu")


def memory_of(device: str) -> Storage:
    """Storage of arrays in the memory of a device; what is worked on at a time on a GPU, kernels decide themselves."""
    return IN_MEMORY if device == "cpu" else ON_GPU


def storage_for(limit: int | None, num_nodes: int, rows: int) -> Storage:
    """Storage of a rank that reads ``rows`` of the nodes and may use ``limit`` bytes for its part of the graph.

    Raises
    ------
    OptionError
        The limit does not suffice for what is known of nodes and a small chunk of edges.
    """
    if limit is None:
        return IN_MEMORY
    held = rows * ROW_BYTES + num_nodes // 4
    if limit < held + LEAST_CHUNK * EDGE_BYTES:
        raise OptionError(
            f"--memory-limit: {limit:,} bytes do not suffice for the {rows:,} nodes that a rank reads; at least "
            f"{held + LEAST_CHUNK * EDGE_BYTES:,} do. Raise it, or use more ranks"
        )
    return FileStorage((limit - held) // EDGE_BYTES, limit)


def peak_mb() -> float:
    """Most memory that this process has ever had, in MB (not what its parent had before it, as getrusage says)."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) * 1024 / 1e6
