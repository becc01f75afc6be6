"""Write which rank is master of each node, in formats that other programs read."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cusp.errors import together
from cusp.output.gid_order import in_gid_order
from cusp.output.tables import write_columns
from cusp.output.whole_file import OutputError, whole_file
from cusp.partition import Partition
from cusp.runtime.mpi import MPI

if TYPE_CHECKING:
    from cusp.names.names import Names

EXPORTS = ("metis", "distdgl", "parquet", "csv")


def export(form: str, path: str, part: Partition, comm: MPI.Intracomm, names: "Names | None" = None) -> str:
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
    targets = export_names(form, path, comm.size)
    if form in ("parquet", "csv"):
        _write_table(targets[0], first, ranks, names, comm)
        return targets[0]
    problem = None
    slabs = _slabs(ranks, comm)
    if comm.rank == 0:
        try:
            with ExitStack() as files:
                temporary = [files.enter_context(whole_file(name)) for name in reversed(targets)][::-1]
                {"metis": _metis, "distdgl": _distdgl}[form](targets, temporary, part, slabs)
        except OutputError as error:
            problem = error
    for _ in slabs:  # those that an error left, and on the other ranks all
        pass
    with together(comm):
        if problem:
            raise problem
    return targets[0]


def export_names(form: str, path: str, ranks: int) -> list[str]:
    """The files that an export writes, the one to name first; a suffix that is there is not added again."""
    ends = {"metis": [f".part.{ranks}"], "distdgl": [".json", ".npy"]}.get(form, [f".{form}"])
    stem = next((path.removesuffix(end) for end in ends if path.endswith(end)), path)
    return [f"{stem}{end}" for end in ends]


def _slabs(own: np.ndarray, comm: MPI.Intracomm) -> Iterator[np.ndarray]:
    """On rank 0, the slabs of all ranks one after the other; the other ranks send theirs. Collective."""
    if comm.rank:
        comm.send(own, 0)
        return
    yield own
    for rank in range(1, comm.size):
        yield comm.recv(source=rank)


def _metis(names: list[str], files: list[Path], part: Partition, slabs: Iterator[np.ndarray]) -> None:
    with open(files[0], "w") as file:
        for slab in slabs:
            np.savetxt(file, slab, fmt="%d")


def _distdgl(names: list[str], files: list[Path], part: Partition, slabs: Iterator[np.ndarray]) -> None:
    with open(files[1], "wb") as file:
        layout = {"descr": "<i4", "fortran_order": False, "shape": (part.num_nodes,)}
        np.lib.format.write_array_header_1_0(file, layout)
        for slab in slabs:
            file.write(slab.astype("<i4").data)
    book = {
        "graph_name": Path(names[0]).stem,
        "num_parts": part.num_ranks,
        "num_nodes": part.num_nodes,
        "num_edges": part.num_edges,
        "node_map": Path(names[1]).name,
    }
    files[0].write_text(json.dumps(book, indent=1))


def _write_table(path: str, first: int, ranks: np.ndarray, names: "Names | None", comm: MPI.Intracomm) -> None:
    columns = {"node": np.arange(first, first + ranks.size), "rank": ranks}
    write_columns(path, columns, names, ["node"], comm)
