"""A rank for each node, read from a file: any other partitioner can decide where masters are."""

import itertools

import numpy as np

from cusp.errors import PolicyError
from cusp.input.edge_slice import EdgeSlice


def read_node_map(path: str, edges: EdgeSlice) -> np.ndarray:
    """Ranks, int32, of the nodes of this slice.

    Parameters
    ----------
    path : str
        Text with one number per line (as METIS and KaHIP write it), or a NumPy file of N integers.

    Raises
    ------
    PolicyError
        The file cannot be read, or does not have one number per node.
    """
    first, last = edges.first_node, edges.first_node + edges.indptr.size - 1
    try:
        if path.endswith(".npy"):
            ranks = np.load(path, mmap_mode="r")
            count, part = ranks.size, np.array(ranks[first:last], np.int32)
        else:
            with open(path) as file:
                part = np.fromiter((int(line) for line in itertools.islice(file, first, last)), np.int32)
                count = first + part.size + sum(1 for _ in file)
    except (OSError, ValueError) as error:
        raise PolicyError(f"--node-map {path}: cannot be read: {error}") from None
    if count != edges.num_nodes:
        raise PolicyError(f"--node-map {path}: has {count:,} ranks, but the graph has {edges.num_nodes:,} nodes")
    return part
