"""What sums over neighbours need from every device."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cusp.runtime.devices import Array

if TYPE_CHECKING:
    from cusp.apps.shared.graphs.whole_graph import WholeGraph
    from cusp.partition import Partition
    from gluon.label import Label


class Rows(Protocol):
    """Sums over rows of a CSR or CSC: what every node gets from its neighbours."""

    def group_rows(self, lids: Array, bounds: Sequence[int], offsets: Array) -> Any:
        """Those of the rows ``lids`` that have edges; group g is ``lids[bounds[g] : bounds[g + 1]]``."""

    def sum_rows(
        self, rows: Any, group: int, columns: Array, values: Array, sums: Array, weights: Array | None = None
    ) -> None:
        """``sums[v]`` = sum of ``values[columns[e]]`` over the edges e of v, for the rows v of a group.

        Each is multiplied by ``weights[e]``, a number of any type, if there are weights. Other entries are left as they
        are. ``rows`` is what :meth:`group_rows` returned.
        """


class Pagerank(Protocol):
    """PageRank: what masters do between two passes over the edges, and a pass that pushes residuals."""

    def begin(
        self, damping: float, precision: str, teleport: Array, strengths: Array, masters: int
    ) -> tuple[Array, Array, Array]:
        """``teleport``, ``damping / strengths`` and as many ranks of 0, in that precision."""

    def new_ranks(
        self, kept: Any, teleport: Array, factors: Array, sums: Array, ranks: Array, contributions: Array
    ) -> tuple[float, float]:
        """Ranks of the masters from the sums over their in-edges, and what they contribute in turn.

        ``ranks`` = ``sums + kept * teleport``, and ``contributions`` = ``factors * ranks`` for the first nodes, which
        are those with out-edges. ``sums`` are 0 afterwards. Here and below, ``teleport`` may be one number for all.

        Returns
        -------
        change : float
            Sum of the absolute differences of the ranks.
        dangling : float
            Sum of the ranks of nodes without out-edges.
        """

    def collect(self, pending: float, teleport: Array, residuals: Array) -> int:
        """Add ``pending * teleport``, rounded down, to the int64 residuals; returns the sum of their magnitudes."""

    def settle(
        self, threshold: float, damping: float, degrees: Array, residuals: Array, settled: Array, shares: Array,
        updated: Array,
    ) -> tuple[int, int]:  # fmt: skip
        """Masters settle their residuals that are, without sign, above ``threshold`` times their out-degree.

        Each out-neighbour will get a share: ``damping`` times an equal part, rounded to a whole number towards 0. The
        amount behind the shares moves from ``residuals`` to ``settled``; both are int64.

        Returns
        -------
        moved, dangling : int
            What all masters settled, and what the ones without out-edges settled.
        """

    def push_shares(self, frontier: Array, shares: Array, residuals: "Label") -> None:
        """Every frontier node adds its share to the residuals of its out-neighbours; mirrors with some are updated."""


class Steps(NamedTuple):
    """What a step of a walk in the whole of a graph follows.

    Attributes
    ----------
    offsets, targets : CSR
        Out-edges.
    in_offsets, sources : CSC
    weights : (edges,) any number type, or None
        Of the in-edges.
    factors : (nodes,) float64
        The probability that a walk goes on, divided by what a node's out-edges weigh in all; 0 where none leads on.
    """

    offsets: Any
    targets: Any
    in_offsets: Any
    sources: Any
    weights: Any
    factors: Any


class CpuPagerank(Pagerank, Protocol):
    """What only the CPU has: many walks in one call."""

    def ranks_from(
        self, steps: Steps, starts: Array, damping: float, tolerance: float, iterations: int | None,
        visit: Callable[[int, Array, Array, int, float], None],
    ) -> None:  # fmt: skip
        """Ranks of all nodes for walks that start at one node, of some of these, each found by one thread.

        Parameters
        ----------
        starts : (n,) int64
        tolerance, iterations
            A walk ends when the sum of the absolute changes in one iteration is below the one, or after so many.
        visit : function (place, nodes, ranks, rounds, change)
            Called for each start, by its place, by any thread: nodes (m,) uint32 that are reached, in any order, and
            others; ranks (nodes,) float64 of all nodes, of use only in the call; iterations, and the last change.
        """


class Betweenness(Protocol):
    """Betweenness centrality: nodes by level, and what the masters of a level do with sums over their rows."""

    def sweeps(self, part: "Partition", ranks: int, sources: int) -> bool:
        """Whether each rank adds some of that many sources by itself: in a small graph, of which it has a copy."""

    def by_level(self, levels: Array, deepest: int) -> tuple[Array, list[int]]:
        """Proxies with a level of 0 or more, by level, then by local id.

        Returns
        -------
        lids : (reached,) int32
        bounds : list of int
            Those of level l are ``lids[bounds[l] : bounds[l + 1]]``, up to the level ``deepest``.
        """

    def mark(self, first: int, last: int, lids: Array, updated: Array) -> None:
        """Set the bits of ``lids[first:last]``."""

    def give_paths(
        self, first: int, last: int, masters: int, lids: Array, sums: Array, paths: Array, updated: Array
    ) -> None:
        """Masters among ``lids[first:last]``: as many shortest paths lead to one as to its predecessors together.

        ``sums``, which hold that number, are 0 afterwards.
        """

    def give_shares(
        self, first: int, last: int, masters: int, lids: Array, paths: Array, sums: Array, centrality: Array,
        shares: Array, updated: Array,
    ) -> None:  # fmt: skip
        """Masters among ``lids[first:last]`` learn how much depends on them, and the share of each path to them.

        A node's dependency is its ``paths`` times its ``sums``, which add up the shares of its successors. Its own
        share is 1 + its dependency, divided among its paths. ``sums`` are 0 afterwards.
        """


class CpuBetweenness(Betweenness, Protocol):
    """What only the CPU has: many sources in one call."""

    def sweep(
        self, graph: "WholeGraph", sources: Array, centrality: Array, on_edges: Array | None = None
    ) -> tuple[int, int]:
        """Add the dependencies of all nodes on some sources, each found by one thread.

        Parameters
        ----------
        graph : WholeGraph
            Paths go by its weights, int64 or float64, which are above 0, if it has some.
        sources : (n,) int64
        centrality : (nodes,) float64
        on_edges : (edges,) float64, optional
            What depends on each edge.

        Returns
        -------
        levels : int
            The most edges on a shortest path, summed over the sources.
        wrong : int
            The first of the sources that cannot be added, or -1: there are more shortest paths from it than float64 can
            count, or weights that change nothing. The sums are of no use then.
        """
