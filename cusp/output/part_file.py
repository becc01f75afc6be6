"""The part of one rank as an HDF5 file: plain arrays with checksums, and a few numbers."""

import contextlib
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from cusp.errors import GraphFileError
from cusp.input.checksum import as_bits, checksum, combine
from cusp.input.graph_file import offset_in_file
from cusp.input.hdf5 import open_hdf5, whole_number
from cusp.input.read_cpu import first_descent, read_checked
from cusp.lid_map import map_lids
from cusp.output.manifest import Manifest, SavedError
from cusp.output.part_checks import check_proxies, mark_targets
from cusp.partition import Partition
from cusp.runtime.leftovers import replacing
from cusp.runtime.storage import IN_MEMORY, Storage, storage_for

CHUNK = 1 << 21  # entries written at a time
ARRAYS = ("mirror_starts", "gids", "offsets", "targets", "weights", "has_in", "degrees")
NUMBERS = ("rank", "num_ranks", "num_nodes", "num_edges", "symmetric", "num_masters")
MOST_PROXIES = 2**31 - 1


def write_part(path: Path, part: Partition) -> None:
    """Write a part; returns when the disk has it."""
    with replacing(path) as temporary, h5py.File(temporary, "w-", locking="best-effort") as file:
        file.attrs.update({name: getattr(part, name) for name in NUMBERS})
        for name in ARRAYS:
            values = getattr(part, name)
            if values is not None:
                values = values.view(np.uint8) if values.dtype == bool else values
                dataset = file.create_dataset(name, values.shape, values.dtype)
                for entries in part.storage.parts(values.size, CHUNK):
                    dataset[entries] = values[entries]
                sums = [checksum(dataset[some], some.start) for some in part.storage.parts(values.size, CHUNK)]
                dataset.attrs["checksum"] = np.uint64(combine(sums))


def read_part(path: Path, manifest: Manifest, rank: int, weights: bool, memory_limit: int | None) -> Partition:
    """Read a part and check all that one rank can check; the map of its local ids is still to be made.

    Raises
    ------
    SavedError
    """
    with _explained(path), open_hdf5(str(path)) as file:
        numbers = {name: whole_number(str(path), file, name) for name in NUMBERS}
        expected = {"rank": rank, "num_ranks": manifest.ranks, "num_nodes": manifest.num_nodes}
        expected |= {"num_edges": manifest.num_edges, "symmetric": manifest.symmetric}
        for name, value in expected.items():
            if numbers[name] != value:
                raise _damaged(path, f"{name} is {numbers[name]}, but {value} in the manifest")
        masters = numbers["num_masters"]
        arrays, storage = _read_arrays(_Reader(file, path), manifest, rank, masters, weights, memory_limit)
    graph = (manifest.num_nodes, manifest.num_edges, manifest.symmetric)
    unknown = map_lids(1, np.empty(0, np.int64))
    return Partition(rank, manifest.ranks, *graph, masters, **arrays, lid_map=unknown, storage=storage)


class _Reader:
    """Reads the arrays of a part; an array has the expected size and type, plain values and the right checksum."""

    def __init__(self, file: h5py.File, path: Path) -> None:
        self.file, self.path, self.num_bytes = file, path, path.stat().st_size

    def size(self, name: str) -> int:
        """Number of entries of a dataset."""
        if not isinstance(self.file.get(name, getlink=True), h5py.HardLink):
            raise _damaged(self.path, f"there is no array /{name}")
        dataset = self.file[name]
        if not isinstance(dataset, h5py.Dataset) or dataset.ndim != 1:
            raise _damaged(self.path, f"/{name} is not an array of one dimension")
        return int(dataset.size)

    def read(
        self,
        name: str,
        size: int,
        dtype: Any,
        storage: Storage = IN_MEMORY,
        check: Callable[[np.ndarray, int], None] = lambda values, begin: None,
        most: int | None = None,
        visit: Callable[[np.ndarray], None] = lambda values: None,
    ) -> np.ndarray:
        """All entries; for ``check``, ``most`` and ``visit`` see :func:`~cusp.input.read_cpu.read_checked`."""
        found, dtype = self.size(name), np.dtype(dtype)
        dataset = self.file[name]
        if found != size or dataset.dtype != dtype:
            raise _damaged(self.path, f"/{name} has {found:,} values {dataset.dtype}, expected {size:,} {dtype}")
        offset = offset_in_file(dataset, dtype)
        if size and (offset is None or offset + size * dtype.itemsize > self.num_bytes):
            raise _damaged(self.path, f"the values of /{name} are not in the file")
        values, found_sum = read_checked(dataset, 0, size, storage, check, most, visit)
        if found_sum != whole_number(str(self.path), dataset, "checksum"):
            raise _damaged(self.path, f"the checksum of /{name} does not match its values")
        return values


def _read_arrays(
    reader: _Reader, manifest: Manifest, rank: int, num_masters: int, weights: bool, memory_limit: int | None
) -> tuple[dict[str, Any], Storage]:
    path, proxies, edges = reader.path, reader.size("gids"), reader.size("targets")
    if proxies > MOST_PROXIES or not 0 <= num_masters <= proxies:
        raise _damaged(path, f"{num_masters:,} masters among {proxies:,} proxies")
    storage = storage_for(memory_limit, manifest.num_nodes, proxies)
    starts = reader.read("mirror_starts", manifest.ranks + 1, np.int64)
    gids, degrees = reader.read("gids", proxies, np.int64), reader.read("degrees", num_masters, np.int64)
    if wrong := check_proxies(rank, manifest, num_masters, starts, gids, degrees):
        raise _damaged(path, wrong)
    offsets = reader.read("offsets", proxies + 1, np.int64)
    at = first_descent(offsets, edges)
    if at < 0 and (offsets[0], offsets[-1]) != (0, edges):
        at = proxies if offsets[0] == 0 else 0
    if at >= 0:
        raise _damaged(path, f"/offsets must rise from 0 to {edges:,} edges, but entry {at:,} is {offsets[at]:,}")
    targeted = np.zeros(-(-proxies // 64), np.uint64)

    def refuse_target(targets: np.ndarray, begin: int) -> None:
        at = int(np.argmax(as_bits(targets) >= proxies))
        raise _damaged(path, f"/targets[{begin + at:,}] is {targets[at]:,}, but there are {proxies:,} proxies")

    def mark(targets: np.ndarray) -> None:
        mark_targets(as_bits(targets), targeted)

    def check_numbers(values: np.ndarray, begin: int) -> None:
        if values.dtype.kind == "f" and np.isnan(values.min()):
            raise _damaged(path, "/weights has values that are not numbers (NaN)")

    targets = reader.read("targets", edges, np.int32, storage, refuse_target, proxies - 1, mark)
    has_in = reader.read("has_in", proxies, np.uint8)
    wrong_roles = np.count_nonzero(has_in != np.unpackbits(targeted.view(np.uint8), count=proxies, bitorder="little"))
    if wrong_roles:
        raise _damaged(path, f"/has_in is wrong for {wrong_roles:,} proxies")
    if ("weights" in reader.file) != (manifest.weight_dtype is not None):
        raise _damaged(path, f"/weights and the manifest, which says {manifest.weight_dtype}, do not agree")
    values = None
    if weights and manifest.weight_dtype is not None:
        values = reader.read("weights", edges, manifest.weight_dtype, storage, check_numbers)
    arrays = {"mirror_starts": starts, "gids": gids, "offsets": offsets, "targets": targets, "weights": values}
    return arrays | {"has_in": has_in.view(np.bool_), "degrees": degrees}, storage


def _damaged(path: Path, what: str) -> SavedError:
    return SavedError(f"{path}: damaged: {what}; save the partition again")


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """What HDF5 says of a damaged file, in one line; a part is a plain file."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise SavedError(f"{path}: is not a plain file; save the partition again")
        yield
    except FileNotFoundError:
        raise SavedError(f"{path}: missing; save the partition again") from None
    except (OSError, KeyError, RuntimeError, ValueError, TypeError, GraphFileError) as error:
        text = str(error).removeprefix(f"{path}: ")
        raise _damaged(path, " ".join(ascii(text)[1:-1].split())) from None
