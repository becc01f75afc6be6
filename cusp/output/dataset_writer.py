"""Write HDF5 files in parallel: each rank writes its own slabs, and only a complete file gets its final name."""

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

import h5py
import numpy as np

from cusp.errors import raise_together, together
from cusp.input.checksum import checksum, combine
from cusp.input.graph_file import FORMAT_VERSION, index_dtype
from cusp.names.numbering import NameSlab
from cusp.names.packed import WHOLE
from cusp.output.gid_order import in_gid_order
from cusp.output.whole_file import OutputError, check_folder, explained
from cusp.partition import Partition
from cusp.runtime.files import write_at
from cusp.runtime.leftovers import gone_at_end, temporary_beside
from cusp.runtime.mpi import MPI

PAGE = 4096  # datasets start on a page, so that a reader may map them
Shapes = Mapping[str, tuple[int, np.dtype]]


@contextmanager
def writing_datasets(
    path: str | os.PathLike[str], comm: MPI.Intracomm, shapes: Shapes, attributes: Mapping[str, Any] | None = None,
    durable: bool = False,
) -> "Iterator[DatasetWriter]":  # fmt: skip
    """Write one-dimensional datasets in a ``with`` statement, whose entry and exit are collective.

    The file grows under a temporary name beside the target and is renamed once all of it is written. After an error
    on any rank it is removed, and every rank raises. The slabs of all ranks must cover each dataset exactly once.

    Parameters
    ----------
    path : str or path
        An existing file of that name is replaced at the end.
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
    target, offsets = Path(path), dict[str, int | None]()
    temporary = comm.bcast(temporary_beside(target) if comm.rank == 0 else None)
    with ExitStack() as ending:
        with together(comm):
            if comm.rank == 0:
                check_folder(target)
                ending.enter_context(gone_at_end(temporary))
                with explained(target):
                    offsets = _create(temporary, shapes, attributes or {})
        offsets = comm.bcast(offsets)
        with together(comm), explained(target):
            file = os.open(temporary, os.O_WRONLY)
            closing = ending.enter_context(ExitStack())
            closing.callback(os.close, file)
        writer = DatasetWriter(target, file, shapes, offsets)
        try:
            yield writer
        except Exception as error:
            with suppress(Exception):
                if not writer.apart:
                    raise_together(comm, error)
            raise
        raise_together(comm, writer.error)
        with together(comm), explained(target):
            if durable:
                os.fsync(file)
            closing.close()
        totals = comm.allgather((writer.sums, writer.counts))
        with together(comm), explained(target):
            if comm.rank == 0:
                _complete(target, temporary, shapes, totals)
                if durable:
                    with open(temporary, "rb") as written:
                        os.fsync(written.fileno())
                os.replace(temporary, target)


class DatasetWriter:
    """Writes slabs of the datasets of a file that :func:`writing_datasets` has made.

    Attributes
    ----------
    sums, counts : dict of int
        Checksum and number of the values that this rank has written, by dataset.
    error : OutputError or None
        What went wrong first.
    apart : bool
        An error now is of this rank alone: others may wait for it in another call.
    """

    def __init__(self, path: Path, file: int, shapes: Shapes, offsets: Mapping[str, int | None]) -> None:
        self._path, self._file, self._shapes, self._offsets = path, file, shapes, offsets
        self.sums, self.counts = dict.fromkeys(shapes, 0), dict.fromkeys(shapes, 0)
        self.error: OutputError | None = None
        self.apart = False
        self._lock = Lock()

    def write(self, name: str, first: int, values: np.ndarray) -> None:
        """Write ``values`` at positions ``first``, ``first + 1`` ... of a dataset; any thread may call it.

        An error of the disk is kept until the end of the ``with`` statement, which raises it on every rank. The values
        are an array of the dataset's type.
        """
        size, dtype = self._shapes[name]
        if values.dtype != dtype or not 0 <= first <= first + values.size <= size:
            slab = f"{values.size} {values.dtype} from {first} on"
            raise ValueError(f"{name} has {size} {dtype}: cannot write {slab}")
        if values.size == 0 or self.error is not None:
            return
        values = np.ascontiguousarray(values)
        offset = self._offsets[name]
        assert offset is not None  # only a dataset of size zero has none
        part = checksum(values, first)
        try:
            with explained(self._path):
                write_at(self._file, offset + first * dtype.itemsize, values)
        except OutputError as error:
            self.error = error
        with self._lock:
            self.sums[name] = combine([self.sums[name], part])
            self.counts[name] += values.size

    def write_masters(self, name: str, part: Partition, values: np.ndarray, comm: MPI.Intracomm) -> None:
        """Write values of this rank's masters to the places of their global ids. Collective."""
        self.apart = True
        first, slab = in_gid_order(part, values, comm)
        self.apart = False
        self.write(name, first, slab)


def _create(path: Path, shapes: Shapes, attributes: Mapping[str, Any]) -> dict[str, int | None]:
    """Make the file; where each dataset begins in it."""
    offsets: dict[str, int | None] = {}
    options = {"alignment_threshold": PAGE, "alignment_interval": PAGE}
    with h5py.File(path, "w-", **options, locking="best-effort") as file:
        for name, (size, dtype) in shapes.items():
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_layout(h5py.h5d.CONTIGUOUS)
            creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            dataset = file.create_dataset(name, shape=(size,), dtype=dtype, dcpl=creation)
            dataset.attrs["checksum"] = np.uint64(0)
            offsets[name] = dataset.id.get_offset()
        file.attrs.update(attributes)
    return offsets


def _complete(path: Path, temporary: Path, shapes: Shapes, totals: list[tuple[dict[str, int], dict[str, int]]]) -> None:
    """Store the checksums, if all is there."""
    with h5py.File(temporary, "r+", locking="best-effort") as file:
        for name, (size, _) in shapes.items():
            count = sum(counts[name] for _, counts in totals)
            if count != size:
                raise OutputError(f"{path}: {count:,} of {size:,} values of /{name} were written")
            file[name].attrs["checksum"] = np.uint64(combine([sums[name] for sums, _ in totals]))


def writing_graph(
    path: str | os.PathLike[str], comm: MPI.Intracomm, *, num_nodes: int, num_edges: int,
    weight_dtype: np.dtype | type | None = None, symmetric: bool = False, transpose: bool = False,
    names: NameSlab | None = None,
) -> AbstractContextManager[DatasetWriter]:  # fmt: skip
    """Write a graph file (:mod:`cusp.input.graph_file`): the arrays of one graph, and with ``csc/`` of its transpose.

    Parameters
    ----------
    num_nodes, num_edges : int
        Of the whole graph.
    weight_dtype : dtype or None
        Type of the edge weights ``data``; None for a graph without weights.
    symmetric : bool
        Whether each edge has its reverse; stored as an attribute.
    transpose : bool
        Whether there is also a group ``csc`` with the transpose.
    names : NameSlab or None
        What nodes are called, for which :meth:`NameSlab.write` writes the datasets.
    """
    group = {"indptr": (num_nodes + 1, np.dtype(np.int64)), "indices": (num_edges, index_dtype(num_nodes))}
    if weight_dtype is not None:
        group["data"] = (num_edges, np.dtype(weight_dtype))
    attributes = {
        "num_nodes": np.int64(num_nodes), "num_edges": np.int64(num_edges), "symmetric": np.bool_(symmetric),
        "format_version": np.int64(FORMAT_VERSION),
    }  # fmt: skip
    shapes = {prefix + name: group[name] for prefix in ["", "csc/"][: 1 + transpose] for name in group}
    if names is not None:
        shapes |= names.shapes()
        attributes |= {WHOLE: np.bool_(True)} if names.whole else {}
    return writing_datasets(path, comm, shapes, attributes)
