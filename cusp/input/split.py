"""How the nodes of a graph are shared out among the ranks that read them: options ``--split``."""

from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cusp.errors import OptionError, together
from cusp.input.graph_file import GraphHeader, read_direct

if TYPE_CHECKING:
    import h5py
    from mpi4py.MPI import Intracomm


def split_weights(split: str, num_nodes: int, num_edges: int) -> tuple[int, int]:
    """What a node and an edge weigh when nodes are shared out among the readers.

    >>> split_weights("weighted", 10, 45), split_weights("10:1", 10, 45)
    ((4, 1), (10, 1))

    Raises
    ------
    OptionError
        ``split`` is not one of those that :func:`cusp.input.edge_slice.read_slice` lists.
    """
    known = {"edges": (0, 1), "nodes": (1, 0), "weighted": (max(1, num_edges // num_nodes), 1)}
    if split == "edges" and num_edges == 0:
        return known["nodes"]
    if split in known:
        return known[split]
    try:
        node_weight, edge_weight = (int(part) for part in split.split(":"))
        if node_weight < 0 or edge_weight < 0 or node_weight + edge_weight == 0:
            raise ValueError
        return node_weight, edge_weight
    except ValueError:
        raise OptionError(f"--split {split}: expected edges, nodes, weighted or NODE:EDGE such as 10:1") from None


def first_node_of(
    prefix_at: Callable[[int], int], num_nodes: int, num_edges: int, rank: int, ranks: int, split: str
) -> int:
    """First node that ``rank`` of ``ranks`` reads; ``prefix_at(v)`` is the number of edges before node v."""
    node_weight, edge_weight = split_weights(split, num_nodes, num_edges)
    total = num_nodes * node_weight + num_edges * edge_weight
    if rank in (0, ranks):
        return num_nodes if rank else 0
    share = -(-total * rank // ranks)
    return bisect_left(range(num_nodes), share, key=lambda v: v * node_weight + int(prefix_at(v)) * edge_weight)


def share_nodes(indptr: "h5py.Dataset", header: GraphHeader, comm: "Intracomm", split: str) -> np.ndarray:
    """Bounds, (ranks + 1,) int64: rank r reads the nodes ``bounds[r] : bounds[r + 1]``. Collective."""

    def prefix_at(node: int) -> int:
        entry = np.empty(1, np.int64)
        read_direct(indptr, entry, node)
        return int(entry[0])

    with together(comm):
        first = first_node_of(prefix_at, header.num_nodes, header.num_edges, comm.rank, comm.size, split)
    bounds = np.empty(comm.size + 1, np.int64)
    bounds[:-1] = comm.allgather(first)
    bounds[-1] = header.num_nodes
    return np.maximum.accumulate(bounds)  # a damaged indptr could send the search anywhere
