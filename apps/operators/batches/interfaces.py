"""What searches from many nodes at once need from every device."""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cusp.runtime.devices import Array
from gluon.label import Label

if TYPE_CHECKING:
    from cusp.apps.shared.graphs.whole_graph import WholeGraph


class HopSums(NamedTuple):
    """Of each master, sums over the searches that have reached it, but for those that begin there.

    Attributes
    ----------
    reached : (masters,) int64
        How many have.
    lengths, inverse : (masters,) float64
        Sums of their hops to it, or distances, and of 1 / hops.
    """

    reached: Any
    lengths: Any
    inverse: Any


class Batches(Protocol):
    """Levels of up to 64 searches, each of which has a bit in the int64 of a node."""

    def end_level(
        self, frontier: Array, touched: Array, front: Label, arrived: Label, open_bits: Array
    ) -> tuple[int, int, int]:
        """What arrived at masters for the first time is their new ``front``, which is marked as updated.

        Parameters
        ----------
        frontier : bits of proxies
            Whose ``front`` is not 0 yet: that of the level before. It becomes 0.
        touched : bits of proxies
            Where something arrived. It becomes 0.
        open_bits : (proxies,) int64
            The searches that have not reached a node, as far as this rank knows.

        Returns
        -------
        nodes, edges, alive : int
            Masters with a new front, their out-edges, and the bits of all of them.
        """

    def add_hops(self, hops: int, front: Label, sums: HopSums) -> None:
        """Add a level to the sums of the updated masters; nothing at 0 hops."""


class CpuBatches(Batches, Protocol):
    """What only the CPU has: many searches in one call, each by one thread."""

    def add_lengths(self, graph: "WholeGraph", sources: Array, sums: HopSums) -> Array:
        """Add the distances from some sources, each found by one thread, to the sums of all nodes.

        Parameters
        ----------
        graph : WholeGraph
            Distances are hops, or sums of its weights, int64 or float64, none below 0.
        sources : (n,) int64

        Returns
        -------
        (n,) float64
            Distance to the farthest node that each leads to.
        """
