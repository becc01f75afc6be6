"""What Graph500 does with its edge list, on the CPU: see interfaces.py."""

import numpy as np

from cusp.edge_lists.csr_builder import CsrBuilder
from cusp.errors import together
from cusp.input.edge_slice import EdgeSlice
from cusp.runtime.compiled_code import njit
from cusp.runtime.mpi import MPI


def undirected_slice(
    sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None, num_nodes: int, comm: MPI.Intracomm
) -> EdgeSlice:
    """Of parallel edges, only one of the smallest weight is kept."""
    dtype = None if weights is None else weights.dtype
    builder = CsrBuilder(comm, num_nodes=num_nodes, weight_dtype=dtype, symmetrize=True, drop_loops=True, dedup=True)
    with together(comm):
        builder.add(sources, targets, weights)
    return builder.build()


@njit(cache=True, nogil=True)
def check_edges(sources, targets, lengths, parent, depth, far, joined):  # type: ignore[no-untyped-def]
    traversed = 0
    for edge in range(sources.size):
        left, right = sources[edge], targets[edge]
        at_left, at_right = depth[left], depth[right]
        if at_left == far and at_right == far:
            continue
        length = 1 if lengths is None else lengths[edge]
        if at_left > at_right + length or at_right > at_left + length:
            return edge, traversed
        traversed += 1
        if parent[right] == left and at_left + length == at_right:
            joined[right] = True
        if parent[left] == right and at_right + length == at_left:
            joined[left] = True
    return -1, traversed
