"""A graph file with more edges: its rows and the added ones are sorted together."""

from dataclasses import replace

import numpy as np

from cusp.edge_lists.csr_builder import CsrBuilder
from cusp.errors import together
from cusp.formats import open_edges
from cusp.formats.source import Asked, share
from cusp.growth.edges import AddedEdges
from cusp.input.graph_file import GraphHeader
from cusp.names.numbering import slab_of
from cusp.runtime.files import check_unchanged
from cusp.runtime.mpi import MPI


def grow_file(
    comm: MPI.Intracomm, graph: GraphHeader, added: AddedEdges, output: str, memory_limit: int | None = None,
    scratch: str | None = None,
) -> tuple[int, int]:  # fmt: skip
    """Write a graph file, which may replace that of the graph; returns the numbers of nodes and edges. Collective.

    It has a transpose if the graph has one, and is symmetric if the graph and the added edges are.

    Raises
    ------
    InputError
        On every rank; what ``output`` was is still there.
    """
    edges, numbers = added.edges, added.numbers
    with together(comm):
        source = open_edges(graph.path, "hdf5", Asked())
        builder = CsrBuilder(
            comm, num_nodes=edges.num_nodes, weight_dtype=graph.weight_dtype, memory_limit=memory_limit,
            scratch=scratch, symmetric=graph.symmetric and edges.symmetric,
        )  # fmt: skip
        for sources, targets, weights in source.chunks(comm.rank, comm.size):
            if numbers is not None:
                sources, targets = numbers[sources], numbers[targets]
            builder.add(sources, targets, weights)
        sources = edges.first_node + np.repeat(np.arange(edges.indptr.size - 1), np.diff(edges.indptr))
        builder.add(sources, edges.targets, edges.weights)
        check_unchanged(graph.path, graph.stamp)
    edges_read, sums = comm.allreduce(source.edges_read), comm.allgather(source.sums)
    with together(comm):
        source.check_complete(edges_read, sums)
    slab, names = None, added.names
    if names is not None:
        own = names.packed(*share(edges.num_nodes, comm.rank, comm.size))
        slab = replace(slab_of(own, comm), whole=names.whole)
    return builder.write(output, graph.has_transpose, slab)
