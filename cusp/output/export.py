"""Write which rank is master of each node, in formats that other programs read."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cusp.errors import together
from cusp.output.gid_order import in_gid_order
from cusp.output.whole_file import OutputError, whole_file
from cusp.partition import Partition

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

EXPORTS = ("metis", "distdgl", "parquet")


def export(form: str, path: str, part: Partition, comm: "Intracomm") -> str:
    """Write the master of each node; returns the name of the file. Collective.

    Parameters
    ----------
    form : {'metis', 'distdgl', 'parquet'}
        ``PATH.part.K`` with one number per line; ``PATH.json`` and ``PATH.npy``, a partition book of DistDGL and
        its node map; ``PATH.parquet`` with columns ``node`` and ``rank``.
    path : str

    Raises
    ------
    OutputError
    """
    _, ranks = in_gid_order(part, np.full(part.num_masters, part.rank, np.int32), comm)
    problem = None
    slabs = _slabs(ranks, comm)
    names = export_names(form, path, comm.size)
    if comm.rank == 0:
        try:
            with ExitStack() as files:
                temporary = [files.enter_context(whole_file(name)) for name in reversed(names)][::-1]
                {"metis": _metis, "distdgl": _distdgl, "parquet": _parquet}[form](names, temporary, part, slabs)
        except (OutputError, ImportError) as error:
            problem = error if isinstance(error, OutputError) else OutputError(f"{path}: cannot be written: {error}")
    for _ in slabs:  # those that an error left, and on the other ranks all
        pass
    with together(comm):
        if problem:
            raise problem
    return names[0]


def export_names(form: str, path: str, ranks: int) -> list[str]:
    """The files that an export writes, the one to name first."""
    return [
        f"{path}{end}" for end in {"metis": [f".part.{ranks}"], "distdgl": [".json", ".npy"]}.get(form, [f".{form}"])
    ]


def _slabs(own: np.ndarray, comm: "Intracomm") -> Iterator[np.ndarray]:
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


def _parquet(names: list[str], files: list[Path], part: Partition, slabs: Iterator[np.ndarray]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("node", pa.int64()), ("rank", pa.int32())])
    at = 0
    with open(files[0], "wb") as file, pq.ParquetWriter(file, schema) as writer:
        for slab in slabs:
            writer.write_table(pa.table([np.arange(at, at + slab.size), slab], schema=schema))
            at += slab.size
