"""Answers in a file: one HDF5 dataset a label, entry v for node v, written by all ranks at once."""

import os
import tempfile

import h5py
import numpy as np
from mpi4py import MPI

from cusp.errors import InputError, together
from cusp.exchange import all_to_all
from cusp.partition import Partition


class OutputError(InputError):
    """A file that cannot be written."""


def check_writable(path: str, comm: MPI.Intracomm) -> None:
    """Say before the work begins that a file could not be written after it. Collective."""
    with together(comm):
        folder = os.path.dirname(os.path.abspath(path))
        if comm.rank == 0 and not (os.path.isdir(folder) and os.access(folder, os.W_OK)):
            raise OutputError(f"{path}: cannot be written: {folder} is not a folder in which you may create files")
        if comm.rank == 0 and os.path.isdir(path):
            raise OutputError(f"{path}: cannot be written: it is a folder")


def write_labels(path: str, part: Partition, labels: dict[str, np.ndarray], comm: MPI.Intracomm) -> None:
    """Write the labels of all masters; a file of that name is replaced when all is written. Collective.

    Parameters
    ----------
    path : str
        On a file system that all ranks see.
    labels : dict of (masters,) arrays

    Raises
    ------
    OutputError
        On every rank; nothing is left behind.
    """
    temporary, offsets = _create(path, part.num_nodes, labels, comm)
    try:
        with together(comm):
            descriptor = os.open(temporary, os.O_WRONLY)
        try:
            for name, values in labels.items():
                first, slab = in_gid_order(part, values, comm)
                with together(comm), _as_output_error(path):
                    _write_at(descriptor, slab, offsets[name] + first * slab.itemsize)
        finally:
            os.close(descriptor)
        comm.Barrier()
        with together(comm), _as_output_error(path):
            if comm.rank == 0:
                os.replace(temporary, path)
    except BaseException:
        if comm.rank == 0 and os.path.exists(temporary):
            os.unlink(temporary)
        raise


def in_gid_order(part: Partition, values: np.ndarray, comm: MPI.Intracomm) -> tuple[int, np.ndarray]:
    """First node of an even share of all nodes, and the values of that share by global id. Collective."""
    bounds = [part.num_nodes * rank // comm.size for rank in range(comm.size + 1)]
    gids = part.gids[: part.num_masters]
    share = np.searchsorted(bounds, gids, side="right") - 1
    came = [all_to_all(comm, [what[share == rank] for rank in range(comm.size)]) for what in (gids, values)]
    slab = np.empty(bounds[comm.rank + 1] - bounds[comm.rank], values.dtype)
    slab[np.concatenate(came[0]) - bounds[comm.rank]] = np.concatenate(came[1])
    return bounds[comm.rank], slab


class _as_output_error:
    """Turns an OSError into one that names the file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise OutputError(f"{self.path}: cannot be written: {error.strerror or error}") from error


def _create(path: str, num_nodes: int, labels: dict[str, np.ndarray], comm: MPI.Intracomm) -> tuple[str, dict[str, int]]:
    """Rank 0 makes a file of full size beside the target; returns where each dataset begins. Collective."""
    made: tuple[str, dict[str, int]] = ("", {})
    with together(comm), _as_output_error(path):
        if comm.rank == 0:
            handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), suffix=".part")
            os.close(handle)
            try:
                made = temporary, _create_datasets(temporary, num_nodes, labels)
            except BaseException:
                os.unlink(temporary)
                raise
    return comm.bcast(made)


def _create_datasets(path: str, num_nodes: int, labels: dict[str, np.ndarray]) -> dict[str, int]:
    offsets = {}
    with h5py.File(path, "w") as file:
        for name, values in labels.items():
            properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            space = h5py.h5s.create_simple((num_nodes,))
            dataset = h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(values.dtype), space, properties)
            offsets[name] = dataset.get_offset()
    os.chmod(path, 0o666 & ~_umask())
    return offsets


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write_at(descriptor: int, values: np.ndarray, offset: int) -> None:
    raw = memoryview(values).cast("B") if values.size else memoryview(b"")
    while raw:
        written = os.pwrite(descriptor, raw[: 1 << 30], offset)
        raw, offset = raw[written:], offset + written
