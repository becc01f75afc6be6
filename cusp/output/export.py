"""Write which rank is master of each node, in formats that other programs read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cusp.errors import together
from cusp.output.dataset_writer import OutputError
from cusp.output.gid_order import in_gid_order
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
    written = ""
    problem = None
    slabs = _slabs(ranks, comm)
    if comm.rank == 0:
        try:
            written = {"metis": _metis, "distdgl": _distdgl, "parquet": _parquet}[form](path, part, slabs)
        except (OSError, ImportError) as error:
            problem = OutputError(f"{path}: cannot be written: {error}")
    for _ in slabs:  # those that an error left, and on the other ranks all
        pass
    with together(comm):
        if problem:
            raise problem
    return comm.bcast(written)


def _slabs(own: np.ndarray, comm: "Intracomm") -> Iterator[np.ndarray]:
    """On rank 0, the slabs of all ranks one after the other; the other ranks send theirs. Collective."""
    if comm.rank:
        comm.send(own, 0)
        return
    yield own
    for rank in range(1, comm.size):
        yield comm.recv(source=rank)


def _metis(path: str, part: Partition, slabs: Iterator[np.ndarray]) -> str:
    name = f"{path}.part.{part.num_ranks}"
    with open(name, "w") as file:
        for slab in slabs:
            np.savetxt(file, slab, fmt="%d")
    return name


def _distdgl(path: str, part: Partition, slabs: Iterator[np.ndarray]) -> str:
    node_map = np.lib.format.open_memmap(f"{path}.npy", "w+", np.int32, (part.num_nodes,))
    at = 0
    for slab in slabs:
        node_map[at : at + slab.size] = slab
        at += slab.size
    node_map.flush()
    book = {
        "graph_name": Path(path).name,
        "num_parts": part.num_ranks,
        "num_nodes": part.num_nodes,
        "num_edges": part.num_edges,
        "node_map": f"{Path(path).name}.npy",
    }
    Path(f"{path}.json").write_text(json.dumps(book, indent=1))
    return f"{path}.json"


def _parquet(path: str, part: Partition, slabs: Iterator[np.ndarray]) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("node", pa.int64()), ("rank", pa.int32())])
    at = 0
    with pq.ParquetWriter(f"{path}.parquet", schema) as writer:
        for slab in slabs:
            writer.write_table(pa.table([np.arange(at, at + slab.size), slab], schema=schema))
            at += slab.size
    return f"{path}.parquet"
