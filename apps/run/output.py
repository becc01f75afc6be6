"""Answers in a file: one HDF5 dataset per label, with entry v for node v, written by all ranks at once."""

import numpy as np
from mpi4py import MPI

from cusp.output.dataset_writer import DatasetWriter
from cusp.output.gid_order import in_gid_order
from cusp.partition import Partition


def write_labels(path: str, part: Partition, labels: dict[str, np.ndarray], comm: MPI.Intracomm) -> None:
    """Write the labels of all masters; a file of that name is replaced once all is written. Collective.

    Parameters
    ----------
    path : str
        On a file system that all ranks share.
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
