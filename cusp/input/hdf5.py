"""HDF5 files that nobody vouches for: opened and looked into so that all they can do is be read or refused.

A dataset is taken only if the file itself holds it: no links, no storage in other files, and no more entries than
can be behind the bytes that are there.
"""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

import h5py
import numpy as np

from cusp.errors import GraphFileError, InputError
from cusp.runtime.files import check_regular

EXPANSION = 1100  # entries unpacked are at most this many times as large as packed: 1032 in a gzip file
HARMLESS = 64 << 20  # bytes that any dataset may claim
ONE_NUMBER = (h5py.h5t.INTEGER, h5py.h5t.FLOAT, h5py.h5t.ENUM)  # h5py writes truth values as the last
NUMBERS = tuple(np.dtype(kind) for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"))


@contextmanager
def explained(path: object, what: str, kind: type[InputError] = GraphFileError) -> Iterator[None]:
    """Turn any error in a block into one of ours: a library that reads a damaged file may raise anything.

    The block should do little else.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001
        reason = f"{type(error).__name__}: {error}"
        raise kind(f"{path}: {what} cannot be read ({reason}); the file is damaged or of another format") from None


def open_hdf5(path: str) -> h5py.File:
    """Open a file for reading; GraphFileError says why it cannot be."""
    check_regular(path)
    try:
        return h5py.File(path, "r", locking="best-effort")
    except Exception as error:  # noqa: BLE001 - h5py raises many
        text = str(error)
        if "truncated file" in text:
            raise GraphFileError(f"{path}: the file was cut short ({text}); copy or convert it again") from None
        if "signature not found" in text:
            size = os.path.getsize(path)
            raise GraphFileError(f"{path}: not an HDF5 file ({size:,} bytes); cusp convert makes one") from None
        raise GraphFileError(f"{path}: cannot be opened: {text}") from None


def find(file: h5py.Group, path: str, name: str) -> h5py.HLObject | None:
    """What the file itself has under a name such as ``csc/indptr``, or None; links are not followed, but refused."""
    found = file
    for part in name.encode().split(b"/"):
        if not isinstance(found, h5py.Group) or not found.id.links.exists(part):
            return None
        if found.id.links.get_info(part).type != h5py.h5l.TYPE_HARD:
            raise GraphFileError(
                f"{path}: /{name} is a link to another place or file, which is not followed; copy the data into the "
                "file, for instance with h5py"
            )
        found = found[part]
    return found


def find_dataset(file: h5py.File, path: str, name: str, kinds: str) -> h5py.Dataset:
    """A dataset of one dimension of numbers, of these kinds of NumPy types, that the file itself holds.

    Raises
    ------
    GraphFileError
        There is none, or not of such numbers, or its entries are in other files or cannot all be in this one.
    """
    dataset = find(file, path, name)
    if not isinstance(dataset, h5py.Dataset):
        contents = ", ".join("/" + key for key in file) or "nothing"
        raise GraphFileError(f"{path}: no dataset /{name} (the file has {contents}); cusp convert makes graph files")
    created = dataset.id.get_create_plist()
    if created.get_layout() == h5py.h5d.VIRTUAL or created.get_external_count():
        raise GraphFileError(
            f"{path}: the entries of /{name} are in other files, which are not read; copy them into this one, for "
            "instance with h5py"
        )
    native = dataset.dtype.newbyteorder("=")
    if native.kind not in kinds or native not in NUMBERS or dataset.ndim != 1:
        expected = "integers, float32 or float64" if "f" in kinds else "integers"
        raise GraphFileError(
            f"{path}: /{name} has {dataset.ndim} dimension(s) of {dataset.dtype}, expected one of {expected}; "
            "write it with cusp convert or correct its type"
        )
    _check_storage(path, name, dataset)
    return dataset


def _check_storage(path: str, name: str, dataset: h5py.Dataset) -> None:
    """Refuse a dataset that claims more than the file can hold of it, before anything of that size is allocated."""
    claimed, stored = dataset.size * dataset.dtype.itemsize, dataset.id.get_storage_size()
    created = dataset.id.get_create_plist()
    enough = True
    if created.get_layout() == h5py.h5d.CONTIGUOUS:
        begin = dataset.id.get_offset()
        enough = not claimed or (begin is not None and begin + claimed <= os.path.getsize(path))
    elif created.get_layout() == h5py.h5d.CHUNKED:
        chunk = math.prod(created.get_chunk()) * dataset.dtype.itemsize
        enough = believable(max(claimed, chunk), min(stored, os.path.getsize(path)))
    if not enough:
        raise GraphFileError(
            f"{path}: /{name} says that it has {dataset.size:,} entries ({claimed:,} bytes), but the file has "
            f"{stored:,} bytes of it; it is damaged or was never completed: copy or convert it again"
        )


def believable(claimed: int, stored: int) -> bool:
    """Whether so many bytes can have been packed into the stored ones, or are too few to do harm."""
    return claimed <= max(HARMLESS, EXPANSION * stored)


def whole_number(path: str, holder: h5py.HLObject, name: str, default: int | None = None) -> int:
    """An attribute of a file or dataset, or the default if it has none; GraphFileError if it is no whole number.

    Its type is looked at before it is read: in a damaged file, values that say where they are may lead anywhere.
    """
    if name not in holder.attrs:
        if default is None:
            raise GraphFileError(f"{path}: has no attribute {name}; the file is damaged or of another format")
        return default
    opened = holder.attrs.get_id(name)
    value: object = "an array or text"
    if opened.get_type().get_class() in ONE_NUMBER and opened.get_space().get_simple_extent_npoints() == 1:
        value = np.asarray(holder.attrs[name]).item()
        if isinstance(value, (bool, int, float)) and float(value).is_integer():
            return int(value)
    raise GraphFileError(f"{path}: attribute {name} is {value}, expected a whole number")


def stored_checksum(path: str, dataset: h5py.Dataset) -> int | None:
    """The checksum that a dataset was given when it was written, if any."""
    return whole_number(path, dataset, "checksum", 0) if "checksum" in dataset.attrs else None
