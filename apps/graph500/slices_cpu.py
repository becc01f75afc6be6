"""From an edge list in memory to slices of an undirected graph, on the CPU: see interfaces.py."""

from typing import TYPE_CHECKING

import numpy as np

from cusp.edge_lists.csr_builder import CsrBuilder
from cusp.errors import together
from cusp.input.edge_slice import EdgeSlice

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


def undirected_slice(
    sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None, num_nodes: int, comm: "Intracomm"
) -> EdgeSlice:
    """Of parallel edges, only one of the smallest weight is kept."""
    dtype = None if weights is None else weights.dtype
    builder = CsrBuilder(comm, num_nodes=num_nodes, weight_dtype=dtype, symmetrize=True, drop_loops=True, dedup=True)
    with together(comm):
        builder.add(sources, targets, weights)
    return builder.build()
