"""What reads and checks a graph file on every device."""

from collections.abc import Callable
from typing import Protocol

import h5py
import numpy as np

from cusp.runtime.devices import Array
from cusp.runtime.storage import Storage


class Read(Protocol):
    """Reads a rank's slice into the memory of its device, and checks it there."""

    def read_offsets(self, dataset: h5py.Dataset, begin: int, end: int) -> Array:
        """Entries ``begin`` to ``end - 1`` as int64."""

    def read_checked(
        self, dataset: h5py.Dataset, begin: int, end: int, storage: Storage,
        check: Callable[[np.ndarray, int], None], most: int | None,
    ) -> tuple[Array, int]:  # fmt: skip
        """Entries ``begin`` to ``end - 1`` and their checksum.

        ``check(chunk, begin)``, which gets entries on the host, raises if one is wrong: above ``most``, or, if that
        is None, not a number.
        """

    def read_targets(
        self, dataset: h5py.Dataset, begin: int, first_node: int, indptr: Array, storage: Storage,
        check: Callable[[np.ndarray, int], None], most: int, symmetric: bool,
    ) -> tuple[Array, int, int]:  # fmt: skip
        """The targets of some rows, whose first is entry ``begin``, as :meth:`read_checked`, and their asymmetry.

        That is 0 where ``symmetric`` is False; see :func:`cusp.input.read_cpu.asymmetry`.
        """

    def checksum(self, values: Array, first: int = 0) -> int:
        """See :func:`cusp.input.checksum.checksum`."""

    def first_descent(self, indptr: Array, num_edges: int) -> int:
        """Index of the first entry that is below the one before it or outside ``0 .. num_edges``; -1 if none."""
