"""Write which rank is master of each node, in formats that other programs read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from cusp.names.names import Names
from cusp.output.gid_order import in_gid_order
from cusp.output.tables import write_columns, write_rows
from cusp.output.whole_file import write_json
from cusp.partition import Partition
from cusp.runtime.mpi import MPI

EXPORTS = ("metis", "distdgl", "parquet", "csv")


def export(form: str, path: str, part: Partition, comm: MPI.Intracomm, names: Names | None = None) -> str:
    """Write the master of each node; returns the name of the file. Collective.

    Parameters
    ----------
    form : {'metis', 'distdgl', 'parquet', 'csv'}
        ``PATH.part.K`` with one number per line; ``PATH.json`` and ``PATH.npy``, a partition book of DistDGL and
        its node map; ``PATH.parquet`` or ``PATH.csv`` with columns ``node`` and ``rank``.
    path : str
        With or without the suffix.
    names : Names, optional
        What nodes are called in a table; the other formats know them by number.

    Raises
    ------
    OutputError
    """
    first, ranks = in_gid_order(part, np.full(part.num_masters, part.rank, np.int32), comm)
    file, *others = export_names(form, path, comm.size)
    if form == "metis":
        write_rows(file, [ranks], _lines, comm)
    elif form == "distdgl":
        write_rows(others[0], [ranks], partial(_node_map, part.num_nodes), comm)
        book = {
            "graph_name": Path(file).stem, "num_parts": part.num_ranks, "num_nodes": part.num_nodes,
            "num_edges": part.num_edges, "node_map": Path(others[0]).name,
        }  # fmt: skip
        write_json(file, book, comm)
    else:
        columns = {"node": np.arange(first, first + ranks.size), "rank": ranks}
        write_columns(file, columns, names, ["node"], comm)
    return file


def export_names(form: str, path: str, ranks: int) -> list[str]:
    """The files that an export writes, the one to name first; a suffix that is there is not added again."""
    ends = {"metis": [f".part.{ranks}"], "distdgl": [".json", ".npy"]}.get(form, [f".{form}"])
    stem = next((path.removesuffix(end) for end in ends if path.endswith(end)), path)
    return [f"{stem}{end}" for end in ends]


@contextmanager
def _lines(file: IO[bytes]) -> Iterator[Callable[[np.ndarray], object]]:
    yield partial(np.savetxt, file, fmt="%d")


@contextmanager
def _node_map(num_nodes: int, file: IO[bytes]) -> Iterator[Callable[[np.ndarray], object]]:
    layout = {"descr": "<i4", "fortran_order": False, "shape": (num_nodes,)}
    np.lib.format.write_array_header_1_0(file, layout)
    yield lambda slab: file.write(slab.astype("<i4").data)
