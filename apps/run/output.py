"""What a run writes: answers as HDF5, rows as JSON lines, and a line to read for each trial."""

import json
import os
import subprocess
from functools import cache
from typing import Any

import numpy as np
from mpi4py import MPI

from cusp.errors import shortened, together
from cusp.names.names import SortedNames
from cusp.names.numbering import slab_of
from cusp.output.dataset_writer import DatasetWriter
from cusp.output.gid_order import in_gid_order
from cusp.output.whole_file import append_lines
from cusp.partition import Partition


def write_labels(
    path: str, part: Partition, labels: dict[str, np.ndarray], comm: MPI.Intracomm, names: SortedNames | None = None
) -> None:
    """Write one dataset per label, with entry v for node v; a file of that name is replaced in the end. Collective.

    The names of nodes are written as in a graph file.

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
    bounds = [part.num_nodes * rank // comm.size for rank in (comm.rank, comm.rank + 1)]
    slab = None if names is None else slab_of(names.packed(*bounds), comm)
    shapes |= {} if slab is None else slab.shapes()
    with DatasetWriter(path, comm, shapes, {"num_nodes": part.num_nodes}) as writer:
        if slab is not None:
            slab.write(writer)
        for name, values in labels.items():
            writer.write(name, *in_gid_order(part, values, comm))


def trial_line(row: dict, figures: dict[str, Any]) -> str:
    """One trial in a line to read."""
    source = row["source"]
    reached = [] if source is None else [f"{row['reached']:,} nodes reached"]
    values = (
        f"{name.replace('_', ' ')} {value:{',' if isinstance(value, int) else '.6g'}}"
        for name, value in figures.items()
    )
    parts = [
        f"{row['app']}{'' if source is None else f' from {shortened(source)}'}: {row['seconds'] * 1e3:.2f} ms", *values,
        f"{row['rounds']} rounds", f"{row['messages']} messages", f"{row['mb_sent']:.3f} MB sent", *reached,
        f"{row['traversed_edges'] / row['seconds'] / 1e6:,.1f} M edges/s", *(["verified"] if row["verified"] else []),
    ]  # fmt: skip
    return ", ".join(parts)


@cache
def commit() -> str | None:
    """Short hash of the commit that this code is from, if it is a checkout."""
    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=folder, capture_output=True, text=True)
    except OSError:
        return None
    return git.stdout.strip() or None


def append_rows(path: str, rows: list[dict], comm: MPI.Intracomm) -> None:
    """Append one JSON line per trial. Collective.

    Raises
    ------
    OutputError
        On every rank: the file cannot be written; it is as it was.
    """
    with together(comm):
        if comm.rank == 0:
            append_lines(path, [json.dumps(row) for row in rows])
