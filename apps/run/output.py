"""What a run writes: answers, rows as JSON lines, and a line to read for each trial."""

import json
import os
import subprocess
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from cusp.apps.run.app import Answer
from cusp.apps.run.result import gather_edges
from cusp.errors import shortened, together
from cusp.names.names import SortedNames
from cusp.names.numbering import slab_of
from cusp.output.dataset_writer import writing_datasets
from cusp.output.gid_order import in_gid_order
from cusp.output.tables import HDF5, suffix_of, write_columns
from cusp.output.whole_file import append_lines
from cusp.partition import Partition
from cusp.runtime.mpi import MPI


def write_answer(
    path: str, answer: Answer, part: Partition, comm: MPI.Intracomm, names: SortedNames | None = None,
    nodes: Sequence[str] = (),
) -> list[str]:  # fmt: skip
    """Write an answer in the memory of the host; what edges have to a second file, if there is more. Collective.

    Returns
    -------
    list of str
        What was written where.

    Raises
    ------
    OutputError
        On every rank.
    """
    wrote = []
    if answer.table:
        write_answer_table(path, answer, part.num_nodes, comm, names, nodes)
        wrote.append(f"wrote {', '.join(answer.table)} to {path}")
    elif answer.labels or answer.arrays:
        write_labels(path, part, answer.labels, comm, names, nodes, answer.arrays)
        wrote.append(f"wrote {', '.join([*answer.labels, *answer.arrays])} to {path}")
    if answer.edges:
        path = "-edges".join(os.path.splitext(path)) if wrote else path
        write_edges(path, part, answer.edges, comm, names)
        what = "pair" if "source" in answer.edges else "edge"
        wrote.append(f"wrote {', '.join(answer.edges)} of every {what} to {path}")
    return wrote


def write_labels(
    path: str, part: Partition, labels: dict[str, np.ndarray], comm: MPI.Intracomm, names: SortedNames | None = None,
    nodes: Sequence[str] = (), arrays: dict[str, np.ndarray] | None = None,
) -> None:  # fmt: skip
    """Write the labels of all nodes; a file of that name is replaced in the end. Collective.

    As HDF5 one dataset per label, with entry v for node v, and the names of nodes as in a graph file. In other formats
    a row per node, in the order of global ids.

    Parameters
    ----------
    path : str
        On a file system that all ranks share; its suffix is one of ``HDF5`` or ``TABLES``.
    labels : dict of (masters,) arrays
    nodes
        Labels whose values are nodes, or -1.
    arrays : dict of arrays, optional
        For HDF5: of each rank some of the first dimension. A dataset has one row after the other.

    Raises
    ------
    OutputError
        On every rank; nothing is left behind.
    """
    bounds = [part.num_nodes * rank // comm.size for rank in (comm.rank, comm.rank + 1)]
    if suffix_of(path) not in HDF5:
        columns = {name: in_gid_order(part, values, comm)[1] for name, values in labels.items()}
        write_columns(path, {"node": np.arange(*bounds)} | columns, names, ("node", *nodes), comm)
        return
    shapes = {name: (part.num_nodes, values.dtype) for name, values in labels.items()}
    flat = {name: values.ravel() for name, values in (arrays or {}).items()}
    sizes = {name: comm.allgather(values.size) for name, values in flat.items()}
    shapes |= {name: (sum(sizes[name]), values.dtype) for name, values in flat.items()}
    slab = None if names is None else slab_of(names.packed(*bounds), comm)
    shapes |= {} if slab is None else slab.shapes()
    with writing_datasets(path, comm, shapes, {"num_nodes": part.num_nodes}) as writer:
        if slab is not None:
            slab.write(writer)
        for name, values in labels.items():
            writer.write_masters(name, part, values, comm)
        for name, values in flat.items():
            writer.write(name, sum(sizes[name][: comm.rank]), values)


def write_edges(
    path: str, part: Partition, edges: dict[str, np.ndarray], comm: MPI.Intracomm, names: SortedNames | None = None
) -> None:
    """Write the columns of :func:`~cusp.apps.run.result.gather_edges`, in the format that the suffix says. Collective.

    Raises
    ------
    OutputError
        On every rank; nothing is left behind.
    """
    write_answer_table(path, Answer({}, table=gather_edges(part, edges, comm)), part.num_nodes, comm, names,
                       ("source", "target"))  # fmt: skip


def write_answer_table(
    path: str, answer: Answer, num_nodes: int, comm: MPI.Intracomm, names: SortedNames | None = None,
    nodes: Sequence[str] = (),
) -> None:  # fmt: skip
    """Write the rows of a table that is the same on every rank, in the format that the suffix says. Collective.

    Parameters
    ----------
    nodes
        Columns whose values are nodes: by name where nodes have names, except in HDF5.

    Raises
    ------
    OutputError
        On every rank; nothing is left behind.
    """
    size = np.broadcast(*answer.table.values()).size
    first, last = (size * rank // comm.size for rank in (comm.rank, comm.rank + 1))
    columns = answer.rows(slice(first, last))
    if suffix_of(path) not in HDF5:
        write_columns(path, columns, names, nodes, comm)
        return
    shapes = {name: (size, values.dtype) for name, values in columns.items()}
    with writing_datasets(path, comm, shapes, {"num_nodes": num_nodes}) as writer:
        for name, values in columns.items():
            writer.write(name, first, values)


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
def commit(folder: str = os.path.dirname(os.path.abspath(__file__))) -> str | None:
    """Short hash of the commit that this code is from, or what is in a folder, if it is a checkout."""
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
