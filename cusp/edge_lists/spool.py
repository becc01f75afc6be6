"""Arrays kept in memory while a budget lasts, and in an unnamed scratch file after that."""

import os
import tempfile
from dataclasses import dataclass
from threading import Lock
from typing import IO

import numpy as np

from cusp.errors import GraphFileError

MAX_CALL = 2**30  # bytes a single read or write call is given; Linux cuts off at just under 2**31


class Budget:
    """Bytes of memory that several spools share; safe between threads."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._lock = Lock()

    def take(self, num_bytes: int) -> bool:
        """Reserve bytes if they are left; return whether they were."""
        with self._lock:
            if num_bytes > self._left:
                return False
            self._left -= num_bytes
            return True

    def give(self, num_bytes: int) -> None:
        """Return bytes that were taken."""
        with self._lock:
            self._left += num_bytes


@dataclass(frozen=True)
class Stored:
    """An array in a :class:`Spool`: its values if they are in memory, else where they stand in the file."""

    size: int
    dtype: np.dtype
    values: np.ndarray | None
    offset: int


class Spool:
    """Keeps one-dimensional arrays of any type; safe between threads.

    Parameters
    ----------
    budget : Budget
        Memory for the arrays; those for which it does not suffice go to the file.
    folder : str or None
        Folder of the scratch file (None: the system's), which has no name and vanishes with the process.
    """

    def __init__(self, budget: Budget, folder: str | None = None) -> None:
        self._budget = budget
        self._folder = folder or tempfile.gettempdir()
        self._file: IO[bytes] | None = None
        self._end = 0
        self._lock = Lock()

    def put(self, values: np.ndarray) -> Stored:
        """Keep an array, which then belongs to the spool.

        Raises
        ------
        GraphFileError
            If the scratch file cannot be written.
        """
        if self._budget.take(values.nbytes):
            return Stored(values.size, values.dtype, values, 0)
        try:
            with self._lock:
                if self._file is None:
                    self._file = tempfile.TemporaryFile(dir=self._folder)
                offset, self._end = self._end, self._end + values.nbytes
            write_at(self._file.fileno(), offset, values)
        except OSError as error:
            raise GraphFileError(
                f"{self._folder}: cannot write {values.nbytes:,} bytes to a scratch file: {error.strerror}; "
                "give more memory or another scratch folder"
            ) from error
        return Stored(values.size, values.dtype, None, offset)

    def get(self, stored: Stored, first: int = 0, last: int | None = None) -> np.ndarray:
        """Values ``first`` to ``last`` (not included; None: all): a view if in memory, else a new array.

        Raises
        ------
        GraphFileError
            If the scratch file cannot be read.
        """
        last = stored.size if last is None else last
        if stored.values is not None:
            return stored.values[first:last]
        values = np.empty(last - first, stored.dtype)
        try:
            if self._file is not None:
                read_at(self._file.fileno(), stored.offset + first * stored.dtype.itemsize, values)
        except OSError as error:
            raise GraphFileError(f"{self._folder}: cannot read the scratch file: {error}") from error
        return values

    def drop(self, stored: Stored) -> None:
        """Give the array's memory back to the budget; the caller forgets ``stored``."""
        if stored.values is not None:
            self._budget.give(stored.values.nbytes)

    def close(self) -> None:
        """Remove the scratch file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def write_at(file: int, offset: int, values: np.ndarray) -> None:
    """Write a contiguous array at a byte offset of an open file, however short the single writes are."""
    data = values.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(data):
        done += os.pwrite(file, data[done : done + MAX_CALL], offset + done)


def read_at(file: int, offset: int, values: np.ndarray) -> None:
    """Fill a contiguous array from a byte offset of an open file; OSError if the file ends before."""
    data = values.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(data):
        count = os.preadv(file, [data[done : done + MAX_CALL]], offset + done)
        if count == 0:
            raise OSError(f"the file ends {len(data) - done:,} bytes too early")
        done += count
