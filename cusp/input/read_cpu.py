"""Reads a rank's slice into the memory of the host and checks each chunk while it is in the cache."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cusp.input.checks import asymmetry, first_descent
from cusp.input.checksum import checksum, combine
from cusp.input.graph_file import map_entries, read_ahead, read_direct
from cusp.runtime.storage import Storage

if TYPE_CHECKING:
    import h5py

__all__ = ["asymmetry", "checksum", "first_descent", "read_checked", "read_offsets"]

CHUNK = 1 << 21  # entries read and checked at a time: few enough to stay in the cache in between


def read_offsets(dataset: "h5py.Dataset", begin: int, end: int) -> np.ndarray:
    """Entries ``begin`` to ``end - 1`` as int64."""
    values = np.empty(end - begin, np.int64)
    read_direct(dataset, values, begin)
    return values


def read_checked(
    dataset: "h5py.Dataset",
    begin: int,
    end: int,
    storage: Storage,
    check: Callable[[np.ndarray, int], None],
    most: int | None,
) -> tuple[np.ndarray, int]:
    """Entries ``begin`` to ``end - 1`` and their checksum; the operating system reads ahead meanwhile.

    ``check(chunk, begin)`` raises if an entry of a chunk is wrong: above ``most``, or, if that is None, not a number.
    """
    mapped = map_entries(dataset, begin, end, storage)
    values = storage.empty(end - begin, dataset.dtype.newbyteorder("=")) if mapped is None else mapped
    read_ahead(dataset, begin, end)
    sums = []
    for part in storage.parts(values.size, CHUNK):
        if mapped is None:
            read_direct(dataset, values[part], begin + part.start)
        sums.append(checksum(values[part], begin + part.start))
        check(values[part], begin + part.start)
    return values, combine(sums)
