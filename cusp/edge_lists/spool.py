"""Arrays that are kept in memory while a budget lasts, and in a scratch file after that."""

from dataclasses import dataclass
from threading import Lock

import numpy as np

from cusp.runtime.files import ScratchFile


class Budget:
    """Bytes of memory that several spools share; safe between threads."""

    def __init__(self, limit: int) -> None:
        self.limit = self._left = limit
        self._lock = Lock()

    def take(self, num_bytes: int) -> bool:
        """Reserve bytes if that many are left; returns whether they were."""
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
    """An array in a :class:`Spool`: its values if they are in memory, else its byte offset in the file."""

    size: int
    dtype: np.dtype
    values: np.ndarray | None
    offset: int


class Spool:
    """Keeps one-dimensional arrays of any type; safe between threads.

    Parameters
    ----------
    budget : Budget
        Memory for the arrays; those that exceed it go to a scratch file.
    folder : str or None
        Of the scratch file; see :class:`~cusp.runtime.files.ScratchFile`, also for the errors.
    """

    def __init__(self, budget: Budget, folder: str | None = None) -> None:
        self._budget = budget
        self._file = ScratchFile(folder)

    def put(self, values: np.ndarray) -> Stored:
        """Keep an array, which then belongs to the spool."""
        if self._budget.take(values.nbytes):
            return Stored(values.size, values.dtype, values, 0)
        return Stored(values.size, values.dtype, None, self._file.append(values))

    def get(self, stored: Stored, first: int = 0, last: int | None = None) -> np.ndarray:
        """Values ``first`` to ``last`` (exclusive; None: all): a view if in memory, else a new array."""
        last = stored.size if last is None else last
        if stored.values is not None:
            return stored.values[first:last]
        values = np.empty(last - first, stored.dtype)
        self._file.read(stored.offset + first * stored.dtype.itemsize, values)
        return values

    def drop(self, *arrays: Stored | None) -> None:
        """Return the memory of arrays to the budget; the caller forgets them. None is no array."""
        for stored in arrays:
            if stored is not None and stored.values is not None:
                self._budget.give(stored.values.nbytes)

    def close(self) -> None:
        """Remove the scratch file."""
        self._file.close()
