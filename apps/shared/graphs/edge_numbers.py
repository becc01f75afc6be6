"""Numbers of edges, which say where what else is known of them can be found."""

import numpy as np

from cusp import Partition
from cusp.apps.operators.interfaces import kept_with
from cusp.apps.operators.samples.rows_cpu import find_places, order_rows
from cusp.apps.operators.undirected_cpu import gather_rows
from cusp.apps.shared.graphs.undirected import exchange_rows, nodes_of, nodes_of_rank
from cusp.apps.shared.graphs.whole_rows import as_marks, kind_of
from cusp.output.gid_order import at_gids, in_gid_order
from cusp.runtime.exchange import all_to_all
from cusp.runtime.mpi import MPI

ALL_BITS = 62  # ends are global ids only


def edge_numbers(part: Partition, comm: MPI.Intracomm) -> np.ndarray:
    """(edges,) int64, on the host: the numbers of this rank's edges; they are kept with the partition. Collective.

    The number of an edge is its place among all edges, sorted by source, target and weight: in graph files with such
    rows, as ours have, that in ``indices``. Parallel edges of the same weight, or without weights, have their places in
    any order. The master of a node has its whole row sorted, and tells each owner of an edge where that is: while it
    does, an edge takes up to 40 bytes there.
    """
    return kept_with(part, "edge numbers", lambda: _numbers(part.on("cpu"), comm))


def _numbers(host: Partition, comm: MPI.Intracomm) -> np.ndarray:
    weights = host.weights
    marks = None if weights is None else as_marks(weights.astype(kind_of(weights.dtype)))
    arrived = exchange_rows(host, nodes_of(host), host.offsets, host.targets, marks, comm)
    for rows in arrived:
        rows.nodes[:] %= host.num_nodes
    whole = gather_rows([*arrived], host.num_masters, np.int64, np.int64, marks is not None)
    order_rows(*whole, np.empty(0, np.int64), ALL_BITS, by_marks=False)
    _, degrees = in_gid_order(host, host.degrees, comm)
    before = np.cumsum(degrees) - degrees + sum(comm.allgather(int(degrees.sum()))[: comm.rank])
    firsts = at_gids(before, host.gids[: host.num_masters], host.num_nodes, comm)  # how many edges others have first
    numbers = np.empty(host.num_local_edges, np.int64)
    for rank, found in enumerate(all_to_all(comm, find_places(arrived, *whole, firsts))):
        first, last = nodes_of_rank(host, rank)
        numbers[host.offsets[first] : host.offsets[last]] = found
    return numbers
