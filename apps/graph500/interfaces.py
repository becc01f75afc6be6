"""The interface of Graph500 on every device."""

from typing import TYPE_CHECKING, Any, Protocol

from cusp.runtime.devices import Array
from cusp.runtime.mpi import MPI

if TYPE_CHECKING:
    from cusp.input.edge_slice import EdgeSlice


class EdgeList(Protocol):
    """From an edge list in memory to slices of an undirected graph; and what it says about trees of shortest paths."""

    def undirected_slice(
        self, sources: Array, targets: Array, weights: Array, num_nodes: int, comm: MPI.Intracomm
    ) -> "EdgeSlice":
        """This rank's slice of the graph of all ranks' edges, each in both directions, without loops. Collective.

        Of parallel edges at least one of the smallest weight is kept.

        Parameters
        ----------
        sources, targets : (edges,) uint32, or int64 beyond 2**32 nodes
            Edges that this rank contributes, in any order; ids below ``num_nodes``.
        weights : (edges,), on a GPU of 4 bytes each, or None on every rank
        """

    def check_edges(
        self, sources: Array, targets: Array, lengths: Array, parent: Array, depth: Array, far: Any, joined: Array
    ) -> tuple[int, int]:
        """The first undirected edge whose ends differ by more than its length, or -1, and the edges traversed.

        ``joined`` is set for a node with an edge of the right length to its parent. Without ``lengths``, all are 1.
        """
