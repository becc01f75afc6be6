"""Arrays in the memory of the GPU; see storage.py. What is worked on at a time, kernels decide themselves."""

from collections.abc import Iterator
from typing import Any

import cupy as cp

from cusp.runtime.storage import Storage


class DeviceStorage(Storage):
    """Arrays of CuPy; all edges are one chunk."""

    device = "gpu"

    def empty(self, size: int, dtype: Any) -> Any:
        """A new array of one dimension."""
        return cp.empty(size, dtype)

    def rows(self, indptr: Any, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        """All rows at once."""
        yield int(begin), int(indptr.size - 1 if end is None else end)


IN_MEMORY = DeviceStorage()
