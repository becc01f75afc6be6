"""Save a partition and load it again: one HDF5 file per rank and a manifest, in one folder.

::

    parts/manifest.json                     policy, graph and its checksums, ranks, the names below
    parts/part-0-of-4.5f3a9c1e.h5           gids, offsets, targets, weights ... of rank 0
    parts/part-1-of-4.5f3a9c1e.h5           ...
    parts/.saving                           held by the job that saves, if there is one

Each save gives its parts new names. The manifest is replaced, in one step, once all parts are complete:
until then, and after a crash, the folder holds what it held before; the next save removes what a crash left.
"""

import contextlib
import os
import secrets
from pathlib import Path
from typing import Any

from cusp.errors import check_same, together
from cusp.input.graph_file import read_header, stored_checksums
from cusp.output.fingerprint import check_graph, fingerprint
from cusp.output.manifest import FORMAT_VERSION, Manifest, SavedError, read_manifest, replace_manifest
from cusp.output.part_checks import check_whole
from cusp.output.part_file import map_proxies, read_part, write_part
from cusp.output.saving import only_writer, sweep
from cusp.output.whole_file import check_save_folder, explained
from cusp.partition import Partition
from cusp.runtime.mpi import MPI


def save_partition(
    folder: str,
    part: Partition,
    comm: MPI.Intracomm,
    *,
    graph: str,
    policy: str,
    parameters: dict[str, Any],
    order: str,
    split: str,
) -> None:
    """Write the parts of all ranks, then the manifest that makes them the folder's partition. Collective.

    Raises
    ------
    OutputError
        On every rank; what the folder held before is still intact. Another job may be saving there.
    """
    token = comm.bcast(secrets.token_hex(4))
    name = f"part-{part.rank}-of-{part.num_ranks}.{token}.h5"
    path = Path(folder) / name
    with contextlib.ExitStack() as held:
        with together(comm), explained(folder):
            check_save_folder(path.parent)
            if comm.rank == 0:
                path.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(only_writer(path.parent))
                sweep(path.parent)
        try:
            with together(comm), explained(folder):
                path.parent.mkdir(parents=True, exist_ok=True)
                write_part(path, part.on("cpu"))
            names = comm.allgather(name)
            with together(comm), explained(folder):
                if comm.rank == 0:
                    replace_manifest(path.parent, _describe(part, graph, policy, parameters, order, split, names))
                    sweep(path.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            raise


def saved_before(folder: str) -> str | None:
    """What a folder holds, in a few words; None if that is no saved partition."""
    try:
        manifest = read_manifest(folder)
    except SavedError:
        return None
    return f"one of {manifest.graph} by {manifest.policy} for {manifest.ranks} ranks"


def load_partition(
    folder: str, comm: MPI.Intracomm, weights: bool = True, memory_limit: int | None = None
) -> Partition:
    """Read this rank's part. Collective.

    With a memory limit the edges stay in the file, see :mod:`cusp.runtime.storage`. Who made the files does not
    matter: what is returned has the invariants of a partition that was just made.

    Raises
    ------
    SavedError
        On every rank: a part is missing or damaged, was made for another number of ranks, or the graph
        file has changed since.
    """
    with together(comm):
        manifest = read_manifest(folder)
        if manifest.ranks != comm.size:
            raise SavedError(f"{folder}: made for {manifest.ranks} ranks, but there are {comm.size}")
        if comm.rank == 0:
            check_graph(folder, manifest)
    check_same(comm, "partitions", manifest)
    path = Path(folder) / manifest.parts[comm.rank]
    with together(comm):
        part = read_part(path, manifest, comm.rank, weights, memory_limit)
    check_whole(folder, manifest, part.gids, part.offsets, part.degrees, comm)
    with together(comm):
        return map_proxies(path, part)


def _describe(
    part: Partition, graph: str, policy: str, parameters: dict[str, Any], order: str, split: str, names: list[str]
) -> Manifest:
    header = read_header(graph)
    weight_dtype = None if part.weights is None else part.weights.dtype.str
    return Manifest(
        FORMAT_VERSION, part.num_ranks, policy, parameters, order, split, os.path.abspath(graph), part.num_nodes,
        part.num_edges, bool(part.symmetric), header.index_dtype.str, weight_dtype, stored_checksums(graph), names,
        fingerprint(graph),
    )  # fmt: skip
