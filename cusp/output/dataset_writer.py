"""Write an HDF5 file in parallel: each rank writes its own slabs, and only a complete file gets its final name."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import h5py
import numpy as np

from cusp.errors import raise_together, together
from cusp.input.checksum import checksum, combine
from cusp.output.whole_file import OutputError, check_folder, explained
from cusp.runtime.files import write_at
from cusp.runtime.leftovers import gone_at_end, temporary_beside

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

PAGE = 4096  # datasets start on a page, so that a reader may map them


class DatasetWriter:
    """Writes one-dimensional datasets; used in a ``with`` statement, whose entry and exit are collective.

    The file grows under a temporary name beside the target and is renamed once all of it is written. After an error
    on any rank it is removed, and every rank raises. The slabs of all ranks must cover each dataset exactly once.

    Parameters
    ----------
    path : str or path
        An existing file of that name is replaced at the end.
    comm : Intracomm
    shapes : dict of (size, dtype)
        Length and type of each dataset, by name; the same on all ranks.
    attributes : dict
        Of the file.
    durable : bool
        Wait until the disk has it all: for a file that replaces the only other one of its kind.

    Raises
    ------
    OutputError
        At entry or exit, on every rank: no such folder, no permission, disk full, slabs missing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        comm: "Intracomm",
        shapes: Mapping[str, tuple[int, np.dtype]],
        attributes: Mapping[str, Any] | None = None,
        durable: bool = False,
    ) -> None:
        self._path = Path(path)
        self._comm = comm
        self._shapes = dict(shapes)
        self._attributes = dict(attributes or {})
        self._durable = durable
        self._sums = dict.fromkeys(self._shapes, 0)
        self._counts = dict.fromkeys(self._shapes, 0)
        self._offsets: dict[str, int | None] = {}
        self._temporary = self._path
        self._file = -1
        self._ending = ExitStack()  # removes the temporary file
        self._error: BaseException | None = None
        self._lock = Lock()

    def __enter__(self) -> Self:
        """Create the temporary file and open it on every rank. Collective."""
        name = temporary_beside(self._path) if self._comm.rank == 0 else None
        self._temporary = self._comm.bcast(name, root=0)
        try:
            with together(self._comm):
                if self._comm.rank == 0:
                    check_folder(self._path)
                    self._ending.enter_context(gone_at_end(self._temporary))
                    with explained(self._path):
                        self._create()
            self._offsets = self._comm.bcast(self._offsets, root=0)
            with together(self._comm), explained(self._path):
                self._file = os.open(self._temporary, os.O_WRONLY)
        except BaseException:
            self._discard()
            raise
        return self

    def write(self, name: str, first: int, values: np.ndarray) -> None:
        """Write ``values`` at positions ``first``, ``first + 1`` ... of a dataset; any thread may call it.

        An error of the disk is kept until the end of the ``with`` statement, which raises it on every rank.

        Parameters
        ----------
        name : str
        first : int
        values : (n,) array of the dataset's type
        """
        size, dtype = self._shapes[name]
        if values.dtype != dtype or not 0 <= first <= first + values.size <= size:
            slab = f"{values.size} {values.dtype} from {first} on"
            raise ValueError(f"{name} has {size} {dtype}: cannot write {slab}")
        if values.size == 0 or self._error is not None:
            return
        values = np.ascontiguousarray(values)
        offset = self._offsets[name]
        assert offset is not None  # only a dataset of size zero has none
        part = checksum(values, first)
        try:
            with explained(self._path):
                write_at(self._file, offset + first * dtype.itemsize, values)
        except OutputError as error:
            self._error = error
        with self._lock:
            self._sums[name] = combine([self._sums[name], part])
            self._counts[name] += values.size

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the file, or remove it if anything failed on any rank. Collective."""
        try:
            if error is None or isinstance(error, Exception):
                self._finish(error or self._error)
        except BaseException:
            self._discard()
            if error is None:
                raise
        if error is not None:
            self._discard()

    def _finish(self, error: BaseException | None) -> None:
        raise_together(self._comm, error)
        with together(self._comm), explained(self._path):
            self._close()
        totals = self._comm.allgather((self._sums, self._counts))
        with together(self._comm), explained(self._path):
            if self._comm.rank == 0:
                self._complete(totals)

    def _create(self) -> None:
        options = {"alignment_threshold": PAGE, "alignment_interval": PAGE}
        with h5py.File(self._temporary, "w-", **options, locking="best-effort") as file:
            for name, (size, dtype) in self._shapes.items():
                creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                creation.set_layout(h5py.h5d.CONTIGUOUS)
                creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
                creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
                dataset = file.create_dataset(name, shape=(size,), dtype=dtype, dcpl=creation)
                dataset.attrs["checksum"] = np.uint64(0)
                self._offsets[name] = dataset.id.get_offset()
            file.attrs.update(self._attributes)

    def _close(self) -> None:
        file, self._file = self._file, -1
        try:
            if self._durable:
                os.fsync(file)
        finally:
            os.close(file)

    def _complete(self, totals: list[tuple[dict[str, int], dict[str, int]]]) -> None:
        with h5py.File(self._temporary, "r+", locking="best-effort") as file:
            for name, (size, _) in self._shapes.items():
                count = sum(counts[name] for _, counts in totals)
                if count != size:
                    raise OutputError(f"{self._path}: {count:,} of {size:,} values of /{name} were written")
                file[name].attrs["checksum"] = np.uint64(combine([sums[name] for sums, _ in totals]))
        if self._durable:
            with open(self._temporary, "rb") as written:
                os.fsync(written.fileno())
        os.replace(self._temporary, self._path)
        self._ending.close()

    def _discard(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._ending.close()
