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
import errno
import fcntl
import os
import platform
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from cusp.errors import check_same, together
from cusp.input.graph_file import read_header, stored_checksums
from cusp.lid_map import map_lids
from cusp.output.manifest import FORMAT_VERSION, MANIFEST, PART, Manifest, SavedError, fingerprint, read_manifest
from cusp.output.part_checks import check_whole
from cusp.output.part_file import read_part, write_part
from cusp.output.whole_file import OutputError, check_save_folder, explained
from cusp.partition import Partition
from cusp.runtime.mpi import MPI

LOCK = ".saving"  # the file that a job holds while it saves; it says who that is


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
    added: dict[str, int] | None = None,
) -> None:
    """Write the parts of all ranks, then the manifest that makes them the folder's partition. Collective.

    Parameters
    ----------
    graph : str
        Its file.
    added : dict, optional
        How many ``nodes`` and ``edges`` the parts have that are not in the file.

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
                    manifest = _describe(part, graph, policy, parameters, order, split, names, added or {})
                    manifest.write(path.parent)
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
            manifest.check_graph(folder)
    check_same(comm, "partitions", manifest)
    path = Path(folder) / manifest.parts[comm.rank]
    with together(comm):
        part = read_part(path, manifest, comm.rank, weights, memory_limit)
    check_whole(folder, manifest, part.gids, part.offsets, part.degrees, comm)
    with together(comm):
        return replace(part, lid_map=map_lids(part.num_nodes, part.gids))  # a bit of memory for each node of the graph


def _describe(
    part: Partition, graph: str, policy: str, parameters: dict[str, Any], order: str, split: str, names: list[str],
    added: dict[str, int],
) -> Manifest:  # fmt: skip
    header = read_header(graph)
    weight_dtype = None if part.weights is None else part.weights.dtype.str
    return Manifest(
        FORMAT_VERSION, part.num_ranks, policy, parameters, order, split, os.path.abspath(graph), part.num_nodes,
        part.num_edges, bool(part.symmetric), header.index_dtype.str, weight_dtype, stored_checksums(graph), names,
        fingerprint(graph), added,
    )  # fmt: skip


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold a folder, into which one job at a time saves; the system lets it go if the process dies.

    Raises
    ------
    OutputError
        Another job holds it.
    """
    file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = ascii(os.read(file, 200).decode(errors="replace"))[1:-1] or "another job"
            raise OutputError(
                f"{folder}: {holder} is saving a partition there; wait until it is done, or name another folder"
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP):
                raise
        os.ftruncate(file, 0)
        os.write(file, f"process {os.getpid()} on {platform.node()}".encode())
        yield
    finally:
        os.close(file)


def sweep(folder: Path) -> None:
    """Remove the parts that the manifest does not name, and manifests that were never finished.

    Whoever calls this holds the folder, so no living job is writing them.
    """
    try:
        named = set(read_manifest(folder).parts)
    except SavedError:
        if os.path.lexists(folder / MANIFEST):
            return  # it cannot be read, but what it names may be all that is left
        named = set()
    for file in folder.iterdir():
        old_part = PART.fullmatch(file.name) and file.name not in named
        if old_part or (file.name.startswith(f".{MANIFEST}.") and not file.is_dir()):
            with contextlib.suppress(OSError):
                file.unlink()
