"""Memory that pieces of a pass borrow: a row for each thread, so that one is always free."""

from typing import Any

import numpy as np

from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import load, replaced, store
from cusp.runtime.threads import num_threads


def thread_rows(size: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are lent, none of them; and rows of zeros. Memory that nobody writes takes none."""
    return np.zeros(num_threads(), np.int64), np.zeros((num_threads(), size), dtype)


@njit(cache=True, nogil=True)
def borrow(lent):  # type: ignore[no-untyped-def]
    """The number of a row that nobody has."""
    row = 0
    while load(lent, row) or not replaced(lent, row, 0, 1):
        row = row + 1 if row + 1 < lent.size else 0
    return row


@njit(cache=True, nogil=True)
def give_back(lent, row):  # type: ignore[no-untyped-def]
    store(lent, row, 0)
