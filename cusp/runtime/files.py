"""Read and write arrays at byte offsets of open files; scratch files without a name."""

import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import IO

import numpy as np

from cusp.errors import InputError

MAX_CALL = 2**30  # bytes that a single read or write call is given; Linux cuts off at just under 2**31


class ScratchError(InputError):
    """A scratch file that cannot be made, written or read."""


def write_at(file: int, offset: int, values: np.ndarray) -> None:
    """Write a contiguous array at a byte offset of an open file, however short the single writes are."""
    data = values.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(data):
        done += os.pwrite(file, data[done : done + MAX_CALL], offset + done)


def read_at(file: int, offset: int, values: np.ndarray) -> None:
    """Fill a contiguous array from a byte offset of an open file.

    Raises
    ------
    OSError
        The file cannot be read, or ends too early.
    """
    data = values.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(data):
        count = os.preadv(file, [data[done : done + MAX_CALL]], offset + done)
        if count == 0:
            raise OSError(f"the file ends at byte {offset + done:,}, {len(data) - done:,} bytes too early")
        done += count


def has_space(folder: str, num_bytes: int) -> bool:
    """Whether files of this size can be written into a folder now."""
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, num_bytes)
    except OSError:
        return False
    return True


class ScratchFile:
    """A file without a name, made on first use, that vanishes with the process; safe between threads.

    Parameters
    ----------
    folder : str, optional
        Default: ``$TMPDIR``, else ``/tmp``.

    Raises
    ------
    ScratchError
        From every method: there is no such folder, no space, or the file cannot be read.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder or tempfile.gettempdir()
        self._advice = "set TMPDIR to a folder" if folder is None else "name a scratch folder"
        self._file: IO[bytes] | None = None
        self._end = 0
        self._lock = Lock()

    def append(self, values: np.ndarray) -> int:
        """Write an array behind those before it; returns the byte offset at which it begins."""
        with self._explained(f"cannot write {values.nbytes:,} bytes to a scratch file"):
            with self._lock:
                file = self._open()
                offset, self._end = self._end, self._end + values.nbytes
            write_at(file, offset, values)
        return offset

    def read(self, offset: int, values: np.ndarray) -> None:
        """Fill an array from a byte offset."""
        with self._explained("cannot read a scratch file"):
            read_at(self._open(), offset, values)

    def map(self, num_bytes: int) -> mmap.mmap:
        """The first bytes of the file as memory, which keeps the file; its disk space is reserved now."""
        with self._explained(f"no space for a scratch file of {num_bytes:,} bytes"):
            os.posix_fallocate(self._open(), 0, num_bytes)
            return mmap.mmap(self._open(), num_bytes)

    def close(self) -> None:
        """Forget the contents, unless they are mapped."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> int:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)
        return self._file.fileno()

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ScratchError(
                f"{self._folder}: {what}: {error.strerror or error}; {self._advice} on a larger disk"
            ) from error
