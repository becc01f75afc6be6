"""What community detection needs from every device."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from cusp.runtime.devices import Array

RESTLESS, MOVED = 1, 2  # bits of a node: it has to look for a better community, and it has found one in this turn


@dataclass
class Sweep:
    """What a sweep of the nodes of one rank reads, and what it changes: numbers, totals, states and seen.

    Communities are numbered as the nodes that they are named after.

    Attributes
    ----------
    offsets, targets, weights : CSR
        Weights are float64; none are 1.
    gids : (masters,) int64
    strengths : (masters,) float64
    scale : float
        See :meth:`Communities.moves`.
    numbers : (masters,) int32
        Community of each.
    totals : (masters,) float64
        Strength of each community.
    states : (masters + 1,) uint8
        RESTLESS or 0.
    seen : (masters,) int32
        Equal to the numbers, before and after a sweep.
    refines : bool
        Whether rows move only while they are alone, and join none that looks in the same turn; then nothing settles.
    kept : list
        Memory that a call leaves for the next one; empty at first.
    """

    offsets: Array
    targets: Array
    weights: Array
    gids: Array
    strengths: Array
    scale: float
    numbers: Array
    totals: Array
    states: Array
    seen: Array
    refines: bool = False
    kept: list[Any] = field(default_factory=list)


class Communities(Protocol):
    """The best community for each of some nodes, by the communities of its neighbours."""

    def sweep(self, of: Sweep, factor: int, lots: tuple[int, ...]) -> tuple[int, float]:
        """Turns of all restless nodes of a rank that is alone: in each, rows move and settle as by the methods below.

        Parameters
        ----------
        factor : int
            Odd: the highest bits of the global id of a node times this, modulo 2^64, say which turn it has.
        lots : (turns,) int
            The factor of :meth:`moves` in each turn; as many as a power of two.

        Returns
        -------
        moved, gained
            How many rows have moved, and what that added to the weight of the edges inside of communities.
        """

    def moves(
        self, rows: Array, offsets: Array, targets: Array, weights: Array, numbers: Array, strengths: Array,
        totals: Array, gids: Array, factor: int, scale: float, spare: list[Any],
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Rows move to the community of highest ``scale * weight to it - strength * total of the others in it``.

        Of equals, a node's own is taken, else the one named after the node with the highest lot: its global id times
        an odd factor, modulo 2^64. Candidates are the own community and those of neighbours, unless they are closed.

        Parameters
        ----------
        rows : (n,) int64, ascending
        offsets, targets, weights : CSR
            Weights are float64; none are 1.
        numbers : (proxies,) int32
            Community of each.
        strengths : (masters,) float64
        totals : (communities,) float64
            The negative of a total says that the community is closed.
        gids : (communities,) int64, distinct
            Of the nodes that they are named after.
        spare : list
            Memory that a call leaves for the next one; empty at first.

        Returns
        -------
        rows : (n,) int64
            Those for which it is not their own.
        old, new : (n,) int32
            Their own, and the other one.
        """

    def settle(
        self, rows: Array, offsets: Array, targets: Array, weights: Array, before: Array, after: Array, states: Array
    ) -> Array:
        """(rows,) float64: what each row's move adds to the weight of the edges inside of communities, both directions.

        An edge between two rows that move counts once for each, others twice: so the gains of all ranks add up.

        Parameters
        ----------
        rows : (n,) int64
            Proxies that have moved.
        offsets, targets, weights : CSR
            As above.
        before, after : (proxies,) integers of one type
            Names or numbers of their communities.
        states : (proxies + 1,) uint8
            MOVED or not, and RESTLESS: what neighbours that are not in the new community of a row become. The last one
            is nobody's.
        """

    def join(
        self, offsets: Array, targets: Array, weights: Array, numbers: Array, loops: Array, strengths: Array,
        communities: int,
    ) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
        """Rows of communities instead of nodes: edges from one to another are one edge, if they weigh anything.

        A GPU may leave several where joining them would hardly make them fewer.

        Parameters
        ----------
        loops, strengths : (rows,) float64
        communities : int
            Above all ``numbers``; the other arrays are as above.

        Returns
        -------
        offsets, targets, sums : CSR
            Of the communities; the edges of each are in any order.
        loops, strengths : (communities,) float64
            Sums of these; loops with the weight of the edges inside.
        """

    def weight_inside(self, offsets: Array, targets: Array, weights: Array, numbers: Array) -> Array:
        """(rows,) float64: weight of the edges of each row whose ends have the same number, of a CSR as above."""

    def leads_out(self, offsets: Array, targets: Array, numbers: Array) -> Array:
        """(rows,) bool: whether an edge of each row leads to another number than its own, of a CSR as above."""

    def edges_inside(
        self, offsets: Array, targets: Array, weights: Array, numbers: Array
    ) -> tuple[Array, Array, Array]:
        """Offsets, targets and weights of the edges whose ends have the same number, of a CSR as above."""

    def add_by_number(self, numbers: Array, values: Array, sums: Array) -> None:
        """Add the float64 ``values`` to the ``sums`` by their int32 number."""
