"""What algorithms on the structure of a graph need from every device."""

from typing import TYPE_CHECKING, Any, Protocol

from cusp.runtime.devices import Array


class Cc(Protocol):
    """Connected components: a forest of lids, in which every node leads to a lower one of its component."""

    def link_first(self, edges: int, offsets: Array, targets: Array, parents: Array) -> None:
        """Unite every node with the targets of its first few edges."""

    def link_others(
        self, values: Array, skipped: Any, offsets: Array, targets: Array, parents: Array, queue: Any
    ) -> None:
        """Unite every node whose value is not ``skipped`` with all its out-neighbours."""

    def flatten(self, parents: Array) -> None:
        """Make the root of every node its parent."""

    def lower_roots(self, parents: Array, values: Array, updated: Array) -> None:
        """Value of a root = minimum over its tree; its bit is set if that lowers it."""

    def spread_roots(self, parents: Array, values: Array, updated: Array) -> None:
        """Every node takes the value of its root, which is not higher; its bit is set if that lowers it."""

    def count_members(self, parents: Array, size: int) -> Array:
        """(proxies,) int32: how many of the first ``size`` nodes are in the tree of a root."""


class Kcore(Protocol):
    """k-core: nodes are peeled off, and so are those that this leaves with too few neighbours."""

    def find_left(self, end: int, core: Array, degrees: Array) -> tuple[int, int]:
        """Lowest degree among the masters below ``end`` that are left, and the last of them + 1; 0, 0 if none is."""

    def peel(
        self, level: int, end: int, masters: int, offsets: Array, targets: Array, core: Array, degrees: Array,
        updated: Array, queue: Any,
    ) -> None:  # fmt: skip
        """Peel masters that have at most ``level`` neighbours until all that are left have more; a drain.

        Their core number is ``level``. A mirror counts the neighbours that it loses below 0, for its master.
        """


class Triangles(Protocol):
    """Triangles: rows oriented by degree, and wedges that a third edge closes.

    Attributes
    ----------
    ROWS_AT_ONCE : int
        Entries of rows that a rank gets from others at a time.
    """

    ROWS_AT_ONCE: int

    def orient(
        self, rows: Array, offsets: Array, targets: Array, places: Array, in_order: bool = False
    ) -> tuple[Array, Array]:
        """Of every row named, the places of the targets that come before it, row after row.

        Parameters
        ----------
        rows : (n,) int
            Rows of the CSR ``offsets``, ``targets``.
        places : (nodes,) uint32 or uint64
            Place of each node in an order of all.
        in_order : bool
            The order of the targets within each row must be kept.

        Returns
        -------
        begins : (n + 1,) int64
        entries : (begins[n],) of the type of ``places``
        """

    def count_triangles(
        self, middles: Array, row_offsets: Array, rows: Array, in_offsets: Array, sources: Array, offsets: Array,
        targets: Array, counts: Array,
    ) -> int:  # fmt: skip
        """Triangles u > v > w with v among ``middles``: for each u -> v, how many w < v of u's row are in v's row.

        Row i of ``row_offsets`` and ``rows`` is that of ``middles[i]``; all rows ascend and name lower nodes. If
        ``counts`` is not empty, each triangle is added to its three nodes there.
        """


class Communities(Protocol):
    """The best community for each of some nodes, by the communities of its neighbours."""

    def best_communities(
        self, rows: Array, offsets: Array, sources: Array, targets: Array, weights: Array, numbers: Array,
        strengths: Array, totals: Array, priorities: Array, scale: float,
    ) -> Array:  # fmt: skip
        """(rows,) int64: the community of highest ``scale * weight to it - strength * total of the others in it``.

        Of equals, a node's own is taken, else the one of the highest priority. Candidates are the own community and
        those of neighbours.

        Parameters
        ----------
        rows : (n,) int64, ascending
        offsets, targets, weights : CSR
        sources : (edges,) uint32
            Row of each edge.
        numbers : (proxies,) int64
            Community of each.
        strengths : (masters,) float64
        totals, priorities : (communities,) float64
        """


if TYPE_CHECKING:
    from apps.operators.structure import (
        cc_cpu,
        cc_gpu,
        communities_cpu,
        communities_gpu,
        kcore_cpu,
        kcore_gpu,
        triangles_cpu,
        triangles_gpu,
    )

    _cc_cpu: Cc = cc_cpu
    _cc_gpu: Cc = cc_gpu
    _kcore_cpu: Kcore = kcore_cpu
    _kcore_gpu: Kcore = kcore_gpu
    _triangles_cpu: Triangles = triangles_cpu
    _triangles_gpu: Triangles = triangles_gpu
    _communities_cpu: Communities = communities_cpu
    _communities_gpu: Communities = communities_gpu
