"""How the nodes of a graph are shared out among the ranks that read them: options ``--split`` and ``--shares``."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import h5py
import numpy as np

from cusp.errors import Intracomm, OptionError, together
from cusp.input.graph_file import GraphHeader, read_direct
from cusp.runtime.devices import to_host

if TYPE_CHECKING:
    from cusp.input.edge_slice import EdgeSlice


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


def weights_before(total: int, parts: int, shares: Sequence[int] = ()) -> list[int]:
    """How much of a total weight is before each part, and before the end, when parts get it by their shares.

    Parameters
    ----------
    shares : (parts,) of int, optional
        In proportion; if there are none, all parts get the same.

    >>> weights_before(10, 4), weights_before(100, 3, (8, 1, 1))
    ([0, 3, 5, 8, 10], [0, 80, 90, 100])
    """
    before = [*accumulate(shares or (1,) * parts, initial=0)]
    return [-(-total * part // before[-1]) for part in before]


def first_node_of(
    prefix_at: Callable[[int], int], num_nodes: int, num_edges: int, part: int, parts: int, split: str,
    shares: Sequence[int] = (),
) -> int:  # fmt: skip
    """First node of ``part`` of ``parts``; ``prefix_at(v)`` is the number of edges before node v."""
    node_weight, edge_weight = split_weights(split, num_nodes, num_edges)
    total = num_nodes * node_weight + num_edges * edge_weight
    before = weights_before(total, parts, shares)
    if part == 0:
        return 0
    if part == parts or (shares and not any(shares[part:])):  # the last nodes are not left to parts without a share
        return num_nodes
    return bisect_left(range(num_nodes), before[part], key=lambda v: v * node_weight + int(prefix_at(v)) * edge_weight)


def bounds_of_parts(
    edges: "EdgeSlice", num_parts: int, split: str, comm: Intracomm, shares: Sequence[int] = ()
) -> np.ndarray:
    """(num_parts + 1,) int64: blocks of consecutive nodes, of equal weight or as shares say. Collective.

    Part p gets the nodes ``bounds[p] : bounds[p + 1]`` of a graph that ranks have read, however many they are.
    """
    node_weight, edge_weight = split_weights(split, edges.num_nodes, edges.num_edges)
    first_edge = int(comm.exscan(edges.targets.size) or 0)
    nodes = np.arange(edges.first_node, edges.first_node + edges.indptr.size)
    weight = nodes * node_weight + (to_host(edges.indptr) + first_edge) * edge_weight
    total = edges.num_nodes * node_weight + edges.num_edges * edge_weight
    place = np.searchsorted(weight, weights_before(total, num_parts, shares)[1:-1])
    firsts = np.where(place < weight.size, nodes[np.minimum(place, weight.size - 1)], edges.num_nodes)
    firsts = np.min(comm.allgather(firsts), axis=0)
    if shares:
        firsts[[not any(shares[part:]) for part in range(1, num_parts)]] = edges.num_nodes
    return np.array([0, *firsts, edges.num_nodes], np.int64)


def share_nodes(
    indptr: h5py.Dataset, header: GraphHeader, comm: Intracomm, split: str, shares: Sequence[int] = ()
) -> np.ndarray:
    """Bounds, (ranks + 1,) int64: rank r reads the nodes ``bounds[r] : bounds[r + 1]``. Collective."""

    def prefix_at(node: int) -> int:
        entry = np.empty(1, np.int64)
        read_direct(indptr, entry, node)
        return int(entry[0])

    with together(comm):
        sizes = header.num_nodes, header.num_edges
        first = first_node_of(prefix_at, *sizes, comm.rank, comm.size, split, shares)
    bounds = np.empty(comm.size + 1, np.int64)
    bounds[:-1] = comm.allgather(first)
    bounds[-1] = header.num_nodes
    return np.maximum.accumulate(bounds)  # a damaged indptr could send the search anywhere
