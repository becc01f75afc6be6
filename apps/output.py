"""Answers in a file: one HDF5 dataset a label, entry v for node v, written by all ranks at once."""

import numpy as np
from mpi4py import MPI

from cusp.dataset_writer import DatasetWriter
from cusp.exchange import all_to_all
from cusp.partition import Partition


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
    shapes = {name: (part.num_nodes, values.dtype) for name, values in labels.items()}
    with DatasetWriter(path, comm, shapes, {"num_nodes": part.num_nodes}) as writer:
        for name, values in labels.items():
            writer.write(name, *in_gid_order(part, values, comm))


def in_gid_order(part: Partition, values: np.ndarray, comm: MPI.Intracomm) -> tuple[int, np.ndarray]:
    """First node of an even share of all nodes, and the values of that share by global id. Collective."""
    bounds = np.array([part.num_nodes * rank // comm.size for rank in range(comm.size + 1)])
    gids = part.gids[: part.num_masters]
    share = np.searchsorted(bounds, gids, side="right") - 1
    came = [all_to_all(comm, [what[share == rank] for rank in range(comm.size)]) for what in (gids, values)]
    slab = np.empty(bounds[comm.rank + 1] - bounds[comm.rank], values.dtype)
    slab[np.concatenate(came[0]) - bounds[comm.rank]] = np.concatenate(came[1])
    return int(bounds[comm.rank]), slab
