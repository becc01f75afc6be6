"""What algorithms in which nodes or trees choose need from every device."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cusp.runtime.devices import Array

if TYPE_CHECKING:
    from cusp.partition import Partition


class Candidates(NamedTuple):
    """Edges that may be in a spanning forest. By their keys, and then places, one comes before another.

    Attributes
    ----------
    keys : (n, 2) uint64
        In the order of the weights; and for equal ones, above bit 31 the lower end by its place among the gids of this
        rank, below it the higher end, and in bit 0 whether the source is that.
    sources, targets : (n,) int32
        Local ids.
    places : (n,) int64
        Among the edges of the rank.
    """

    keys: Array
    sources: Array
    targets: Array
    places: Array


class Msf(Protocol):
    """Spanning forests: the edges of a rank, and rounds in which every tree takes its first edge to another."""

    def list_edges(
        self, part: "Partition", order: Array, parents: Array, end: tuple[Any, int], maximum: bool, light: bool
    ) -> tuple[Array, Array]:
        """Sources (int32) and places (int64) of the light edges between trees, or of the others.

        Of an edge that a graph without weights has in both directions, only that from the lower gid.

        Parameters
        ----------
        order : (proxies,) uint32
            Place of each among all gids of this rank.
        parents : (proxies,) int32
            Roots of the trees.
        end : (weight, number)
            Of the last light edge: its weight, 0 if there are none, and the second of its keys.
        maximum : bool
            The heaviest come first.
        light : bool
            Not the others.
        """

    def choose(self, edges: Candidates, active: Array, trees: Array, best: Array) -> Array:
        """Which of the active edges lead from one tree to another; the first of each tree goes to ``best``.

        Parameters
        ----------
        active : (m,) int64
            Places in ``edges``.
        trees : (proxies,) int32
        best : (trees,) int64, all -1
        """

    def join(self, edges: Candidates, best: Array, parents: Array, in_forest: Array) -> None:
        """Unite trees along the best edge of each, whose byte in ``in_forest`` becomes 1; all best are -1 again."""


class Coloring(Protocol):
    """Greedy coloring: a node takes its color when all neighbours before it have told theirs.

    A color below 0 is -1 less the number of those that have not. That of a mirror is -1 until it is known.
    """

    def plan_colors(self, part: "Partition") -> Any:
        """What the colorings of one graph share.

        Parameters
        ----------
        part : Partition
            What :func:`~cusp.apps.shared.graphs.undirected.as_undirected` made.
        """

    def room_for_colors(self, part: "Partition", plan: Any, colors: Array, most: int) -> AbstractContextManager[Any]:
        """Memory, and threads, of one coloring.

        Parameters
        ----------
        colors : (proxies,) int32
            As they are at first; the calls of :meth:`color_nodes` change them.
        most : int
            No master of any rank waits for more neighbours.
        """

    def color_nodes(self, part: "Partition", room: Any, frontier: Array, updated: Array) -> None:
        """Color the masters of the frontier that have no color, and all who are then ready, until nobody is.

        Mirrors of the frontier tell their colors first.

        Parameters
        ----------
        frontier : bits of proxies
        updated : bits of proxies
            Takes those of masters that got a color.
        """
