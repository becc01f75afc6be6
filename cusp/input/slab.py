"""A rank's even share of a dataset with a number for each node, as runs write their answers."""

import numpy as np

from cusp.errors import GraphFileError, Intracomm, together
from cusp.input.checksum import combine
from cusp.input.hdf5 import explained, find_dataset, open_hdf5, stored_checksum
from cusp.input.read_cpu import read_checked
from cusp.runtime.storage import IN_MEMORY


def read_slab(path: str, name: str, comm: Intracomm) -> tuple[np.ndarray, int]:
    """This rank's even share of the numbers of a dataset, and how many there are in all. Collective.

    Raises
    ------
    GraphFileError
        On every rank: there is no such dataset, or it is damaged.
    """
    with together(comm), explained(path, f"/{name}"), open_hdf5(path) as file:
        dataset = find_dataset(file, path, name, "iuf")
        size = dataset.size
        share = size * comm.rank // comm.size, size * (comm.rank + 1) // comm.size
        slab, found = read_checked(dataset, *share, IN_MEMORY, lambda chunk, begin: None, None)
        stored = stored_checksum(path, dataset)
    if combine(comm.allgather(found)) != stored is not None:
        raise GraphFileError(f"{path}: the checksum of /{name} does not match its values; write the file again")
    return slab, size
