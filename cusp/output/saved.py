"""Save a partition and load it again: one HDF5 file per rank and a manifest, in one folder.

::

    parts/manifest.json                     policy, graph and its checksums, ranks, the names below
    parts/part-0-of-4.5f3a9c1e.h5           gids, offsets, targets, weights ... of rank 0
    parts/part-1-of-4.5f3a9c1e.h5           ...

Each save gives its parts new names. The manifest is replaced, in one step, once all parts are complete:
until then, and after a crash, the folder holds what it held before.
"""

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from cusp.errors import together
from cusp.input.checksum import checksum, combine
from cusp.input.graph_file import map_entries, read_header, stored_checksums
from cusp.lid_map import map_lids
from cusp.output.manifest import FORMAT_VERSION, Manifest, SavedError, check_graph, read_manifest, replace_manifest
from cusp.output.whole_file import check_save_folder, explained
from cusp.partition import Partition
from cusp.runtime.leftovers import replacing
from cusp.runtime.storage import IN_MEMORY, Storage, storage_for

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

CHUNK = 1 << 21  # entries written or checked at a time
ARRAYS = ("mirror_starts", "gids", "offsets", "targets", "weights", "has_in", "degrees")
NUMBERS = ("rank", "num_ranks", "num_nodes", "num_edges", "symmetric", "num_masters")


def save_partition(
    folder: str,
    part: Partition,
    comm: "Intracomm",
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
        On every rank; what the folder held before is still intact.
    """
    token = comm.bcast(secrets.token_hex(4))
    name = f"part-{part.rank}-of-{part.num_ranks}.{token}.h5"
    path = Path(folder) / name
    try:
        with together(comm), explained(folder):
            check_save_folder(path.parent)
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_part(path, part.on("cpu"))
        names = comm.allgather(name)
        with together(comm), explained(folder):
            if comm.rank == 0:
                header = read_header(graph)
                weight_dtype = None if header.weight_dtype is None else header.weight_dtype.str
                manifest = Manifest(
                    FORMAT_VERSION, comm.size, policy, parameters, order, split, os.path.abspath(graph),
                    part.num_nodes, part.num_edges, part.symmetric, header.index_dtype.str, weight_dtype,
                    stored_checksums(graph), names,
                )  # fmt: skip
                replace_manifest(path.parent, manifest)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        raise


def load_partition(folder: str, comm: "Intracomm", weights: bool = True, memory_limit: int | None = None) -> Partition:
    """Read this rank's part. Collective.

    With a memory limit the edges stay in the file, see :mod:`cusp.runtime.storage`.

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
        check_graph(folder, manifest)
        part = _read_part(Path(folder) / manifest.parts[comm.rank], manifest, comm.rank, weights, memory_limit)
    return part


def _write_part(path: Path, part: Partition) -> None:
    with replacing(path) as temporary, h5py.File(temporary, "w-") as file:
        file.attrs.update({name: getattr(part, name) for name in NUMBERS})
        for name in ARRAYS:
            values = getattr(part, name)
            if values is not None:
                values = values.view(np.uint8) if values.dtype == bool else values
                dataset = file.create_dataset(name, values.shape, values.dtype)
                for entries in part.storage.parts(values.size, CHUNK):
                    dataset[entries] = values[entries]
                dataset.attrs["checksum"] = np.uint64(_checksum_of(dataset, part.storage))


def _read_part(path: Path, manifest: Manifest, rank: int, weights: bool, memory_limit: int | None) -> Partition:
    try:
        with h5py.File(path, "r") as file:
            numbers = {name: file.attrs[name].item() for name in NUMBERS}
            storage = storage_for(memory_limit, manifest.num_nodes, file["gids"].size)
            names = [name for name in ARRAYS if weights or name != "weights"]
            storages = {"targets": storage, "weights": storage}
            arrays = {name: _read_array(file, name, path, storages.get(name, IN_MEMORY)) for name in names}
    except FileNotFoundError:
        raise SavedError(f"{path}: missing; save the partition again") from None
    except (OSError, KeyError) as error:
        raise SavedError(f"{path}: damaged: {error}; save the partition again") from None
    expected = {"rank": rank, "num_ranks": manifest.ranks, "num_nodes": manifest.num_nodes}
    actual = {name: numbers[name] for name in expected}
    if actual != expected:
        raise SavedError(f"{path}: is the part {actual}, expected {expected}")
    arrays.setdefault("weights", None)
    lid_map = map_lids(manifest.num_nodes, arrays["gids"])
    return Partition(**numbers, **arrays, lid_map=lid_map, storage=storage)  # type: ignore[arg-type]


def _read_array(file: h5py.File, name: str, path: Path, storage: Storage) -> np.ndarray | None:
    if name not in file and name == "weights":
        return None
    mapped = map_entries(file[name], 0, file[name].size, storage)
    values = file[name][...] if mapped is None else mapped
    if _checksum_of(values, storage) != int(file[name].attrs["checksum"]):
        raise SavedError(
            f"{path}: damaged: the checksum of /{name} does not match its values; save the partition again"
        )
    return values.view(np.bool_) if name == "has_in" else values


def _checksum_of(values: np.ndarray | h5py.Dataset, storage: Storage) -> int:
    return combine([checksum(values[part], part.start) for part in storage.parts(values.size, CHUNK)])
