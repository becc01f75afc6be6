"""What algorithms on triangles need from every device."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from cusp.runtime.devices import Array


class Triangles(Protocol):
    """Triangles: rows oriented by degree, and wedges that a third edge closes; common neighbours.

    Attributes
    ----------
    ROWS_AT_ONCE : int
        Entries of rows that a rank gets from others at a time.
    """

    ROWS_AT_ONCE: int

    def split_rows(self, offsets: Array, targets: Array) -> tuple[Array, int, int]:
        """Where the targets above the row itself begin, in each row of an undirected graph, which ascend.

        Returns
        -------
        splits : (rows,) int64
        work, least : int
            The squares of how many targets are below the row, added up; and of about how many are before it by degree,
            then id.
        """

    def lower_rows(self, offsets: Array, splits: Array, targets: Array) -> tuple[Array, Array, Array]:
        """Begins, ends and targets of the rows up to their splits; the targets may be those given."""

    def orient(
        self, rows: Array, begins: Array, ends: Array, targets: Array, places: Array, in_order: bool = False
    ) -> tuple[Array, Array]:
        """Of every row named, the places of the targets that come before it, row after row.

        Parameters
        ----------
        rows : (n,) int
            Row r is ``targets[begins[r] : ends[r]]``.
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
        self, row_begins: Array, row_ends: Array, rows: Array, in_begins: Array, in_ends: Array, sources: Array,
        begins: Array, ends: Array, targets: Array, counts: Array,
    ) -> Callable[[], int]:  # fmt: skip
        """Start to count triangles u > v > w: for each u -> v, how many w < v of u's row are in v's row.

        What is returned waits for their number. A GPU goes on counting until then, beside what is done ``urgent``.

        Row v is ``rows[row_begins[v] : row_ends[v]]``, row u ``targets[begins[u] : ends[u]]``, and the u of v are
        ``sources[in_begins[v] : in_ends[v]]``; all ascend, and the rows name lower nodes. If ``counts`` is not empty,
        each triangle is added to its three nodes there.
        """

    def count_common(
        self, offsets: Array, targets: Array, highs: Array, lows: Array, begins: Array, entries: Array
    ) -> Array:
        """(pairs,) int64: how many entries of row ``lows[i]`` of a table are in row ``highs[i]`` of a CSR.

        Parameters
        ----------
        offsets, targets : CSR
            Rows ascend; no target is in one twice.
        highs, lows : (pairs,) int64
            ``highs`` ascend.
        begins, entries : (rows + 1,) int64, (entries,) int32
            The table: row r is ``entries[begins[r] : begins[r + 1]]``.
        """


class EdgeRows(NamedTuple):
    """Rows of neighbours, and the edge that each entry is.

    Attributes
    ----------
    offsets, targets : CSR
        Local ids of nodes.
    edges : (entries,) int32
    removed : (edges,) int32
        The round in which each is removed; a higher number than that of any round until then.
    support : (edges,) int32
        How many triangles each has that are left.
    updated : bits of edges
        Those whose support has changed.
    """

    offsets: Array
    targets: Array
    edges: Array
    removed: Array
    support: Array
    updated: Array


class Truss(Protocol):
    """Triangles that go with an edge."""

    def remove_triangles(
        self, turn: int, places: Array, highs: Array, lows: Array, rows: Array, own: EdgeRows, table: EdgeRows
    ) -> None:
        """For each edge that is removed in this round, its triangles: their edges that stay lose one each.

        Parameters
        ----------
        turn : int
            The number of the round.
        places : (proxies,) uint32 or uint64
            The edge of a triangle whose opposite node has the lowest place removes it, of those removed in one round.
        highs, lows : (n,) int32
            The ends of the edges, as local ids; ``highs`` ascend.
        rows : (n,) int64
            The row of each low end in the table.
        own, table : EdgeRows
            The rows of this rank, which ascend, where those of the high ends are; and those of the low ends, which may
            be the same.
        """
