"""The names of nodes in a graph file: the datasets ``names/offsets`` and ``names/bytes``."""

import numpy as np

from cusp.errors import GraphFileError, Intracomm, together
from cusp.input.checksum import checksum
from cusp.input.edge_slice import compare_sums
from cusp.input.graph_file import offset_in_file, read_direct
from cusp.input.hdf5 import explained, find, find_dataset, open_hdf5, stored_checksum, whole_number
from cusp.names.names import SortedNames
from cusp.names.packed import OFFSETS, TEXT, WHOLE, Packed


def has_names(path: str) -> bool:
    """Whether a graph file has the names of nodes."""
    with explained(path, "the graph"), open_hdf5(path) as file:
        return find(file, path, "names") is not None


def read_names(path: str, comm: Intracomm, num_nodes: int) -> SortedNames | None:
    """The names in a graph file, mapped where possible; None if it has none. Collective.

    Rank 0 reads and checks all of them, the others only what they look up.

    Raises
    ------
    GraphFileError
        On every rank: names that are damaged, not sorted, or not as many as nodes.
    """
    with together(comm):
        names = mapped_names(path, num_nodes) if has_names(path) else None
        if names is not None and comm.rank == 0:
            check_names(path, names.packed())
    return names


def mapped_names(path: str, num_nodes: int) -> SortedNames:
    """The names in a graph file as they are, mapped where possible.

    Raises
    ------
    GraphFileError
        They are not there, or not of as many nodes.
    """
    arrays = []
    with explained(path, "the names"), open_hdf5(path) as file:
        for name, dtype in ((OFFSETS, np.dtype(np.int64)), (TEXT, np.dtype(np.uint8))):
            dataset = find_dataset(file, path, name, dtype.kind)
            place = offset_in_file(dataset, dtype)
            if place is None or dataset.size == 0:
                arrays.append(np.empty(dataset.size, dtype))
                read_direct(dataset, arrays[-1], 0)
            else:
                arrays.append(np.memmap(path, dtype, "r", place, (dataset.size,)).view(np.ndarray))
        names = SortedNames(Packed(*arrays), bool(whole_number(path, file, WHOLE, 0)))
    if len(names) != num_nodes:
        raise GraphFileError(f"{path}: /{OFFSETS} is for {len(names):,} nodes, but the graph has {num_nodes:,} nodes")
    return names


def check_names(path: str, names: Packed) -> None:
    """Raise GraphFileError unless the names are whole, and each comes after the one before."""
    from pyarrow import compute

    if names.offsets[0] != 0 or names.offsets[-1] != names.text.size or (np.diff(names.offsets) < 0).any():
        raise GraphFileError(f"{path}: /{OFFSETS} does not divide /{TEXT} into names; convert the graph again")
    with explained(path, "the names"), open_hdf5(path) as file:
        for name, values in ((OFFSETS, names.offsets), (TEXT, names.text)):
            compare_sums(path, name, stored_checksum(path, find_dataset(file, path, name, "iu")), checksum(values))
    texts = names.arrow()
    rises = compute.less(texts[:-1], texts[1:])
    wrong = compute.index(rises, False).as_py() + 1
    if wrong:
        raise GraphFileError(f"{path}: the name of node {wrong:,} does not come after that of node {wrong - 1:,}")
