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
from cusp.names.numbering import NameSlab, slab_of
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

    As HDF5 one dataset per label, with entry v for node v, and the names of nodes as in a graph file; of arrays, one
    row after the other. In other formats a row per node, in the order of global ids. Tables have one row after the
    other. A file of that name is replaced in the end.

    Parameters
    ----------
    path : str
        On a file system that all ranks share; its suffix is one of ``HDF5`` or ``TABLES``.
    nodes
        Labels and columns whose values are nodes, or -1: by name where nodes have names, except in HDF5.

    Returns
    -------
    list of str
        What was written where.

    Raises
    ------
    OutputError
        On every rank; nothing is left behind.
    """
    wrote = []
    if answer.table:
        _write(path, _share_of(answer, comm), part, comm, names, nodes)
        wrote.append(f"wrote {', '.join(answer.table)} to {path}")
    elif answer.labels or answer.arrays:
        columns = {name: in_gid_order(part, values, comm)[1] for name, values in answer.labels.items()}
        bounds = [part.num_nodes * rank // comm.size for rank in (comm.rank, comm.rank + 1)]
        if suffix_of(path) in HDF5:
            columns |= {name: values.ravel() for name, values in answer.arrays.items()}
            slab = None if names is None else slab_of(names.packed(*bounds), comm)
        else:
            columns, slab = {"node": np.arange(*bounds)} | columns, None
        _write(path, columns, part, comm, names, ("node", *nodes), slab)
        wrote.append(f"wrote {', '.join([*answer.labels, *answer.arrays])} to {path}")
    if answer.edges:
        path = "-edges".join(os.path.splitext(path)) if wrote else path
        table = Answer({}, table=gather_edges(part, answer.edges, comm))
        _write(path, _share_of(table, comm), part, comm, names, ("source", "target"))
        what = "pair" if "source" in answer.edges else "edge"
        wrote.append(f"wrote {', '.join(answer.edges)} of every {what} to {path}")
    return wrote


def _share_of(answer: Answer, comm: MPI.Intracomm) -> dict[str, np.ndarray]:
    """This rank's even share of the rows of a table that is the same on every rank."""
    size = np.broadcast(*answer.table.values()).size
    return answer.rows(slice(size * comm.rank // comm.size, size * (comm.rank + 1) // comm.size))


def _write(
    path: str, columns: dict[str, np.ndarray], part: Partition, comm: MPI.Intracomm, names: SortedNames | None,
    nodes: Sequence[str], slab: NameSlab | None = None,
) -> None:  # fmt: skip
    """Write columns of which each rank has consecutive entries, and names of nodes in HDF5. Collective."""
    if suffix_of(path) not in HDF5:
        write_columns(path, columns, names, nodes, comm)
        return
    sizes = {name: comm.allgather(values.size) for name, values in columns.items()}
    shapes = {name: (sum(sizes[name]), values.dtype) for name, values in columns.items()}
    shapes |= {} if slab is None else slab.shapes()
    with writing_datasets(path, comm, shapes, {"num_nodes": part.num_nodes}) as writer:
        if slab is not None:
            slab.write(writer)
        for name, values in columns.items():
            writer.write(name, sum(sizes[name][: comm.rank]), values)


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
