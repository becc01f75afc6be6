"""Prop: the facts about graph and partition that a rule may query (CuSP, IPDPS 2019, section III).

An ordinary Python class that numba also understands, see :mod:`cusp.policies.value_struct`.
"""

import copy
from itertools import accumulate

import numpy as np

from cusp.input.edge_slice import EdgeSlice
from cusp.kernels.bits import popcount
from cusp.policies.value_struct import value_struct
from cusp.runtime.compiled_code import njit

GUESSES = 4096
# What the GPU has of a Prop, see rules.cuh and rules_gpu.py: numbers, in the order of the struct, and methods.
NUMBERS = (
    "num_nodes", "num_edges", "num_parts", "rank", "rows", "columns", "threshold", "slack", "num_places",
    "all_shares", "has_shares", "first_node",
)  # fmt: skip
METHODS = ("reader", "share", "pick", "out_degree", "place", "neighbor_degree", "in_degree", "mapped")


@njit(cache=True, nogil=True)
def _rank_with(starts, number):  # type: ignore[no-untyped-def]
    """The last rank that begins at a number or before it; a function of its own, since loops are seldom inlined."""
    rank = 0
    while number >= starts[rank + 1]:
        rank += 1
    return rank


class Prop:
    """The graph as this rank sees it while it assigns its slice.

    Attributes
    ----------
    num_nodes, num_edges : int
        Of the whole graph.
    num_parts : int
        Number of parts, one per rank.
    rank : int
        The rank that asks the rule.
    rows, columns : int
        The grid of ranks for two-dimensional cuts: ``rows * columns == num_parts``.
    threshold : int
        Degree above which a node counts as a hub.
    slack : int
        Percent of its share of the edges by which a part may be ahead of the others while edges are dealt out.
    all_shares : int
        Sum of :meth:`share` over the parts.
    has_shares : int
        1 if some parts get more than others, else 0.
    num_places : int
        Number of nodes that this rank's slice touches, see :meth:`place`.
    degrees_before : (nodes of the slice,) int64
        Out-edges that a node has besides those of the slice, which are added to a partition; else empty.
    degrees : (num_places,) int64
        :meth:`total_degree` of the node at each place, if a rule asks for that or for :meth:`all_neighbors`.
    """

    __slots__ = (
        *NUMBERS, "shift", "bounds", "guess", "indptr", "targets", "neighbor_index", "neighbor_degrees", "in_degrees",
        "node_map", "share_starts", "all_indptr", "all_targets", "degrees", "degrees_before",
    )  # fmt: skip

    def __init__(
        self, edges: EdgeSlice, num_parts: int, rank: int, grid: tuple[int, int], threshold: int,
        bounds: np.ndarray | None = None, num_neighbors: int = 0, neighbor_index: np.ndarray | None = None,
        neighbor_degrees: np.ndarray | None = None, in_degrees: np.ndarray | None = None,
        node_map: np.ndarray | None = None, shares: tuple[int, ...] = (),
        all_indptr: np.ndarray | None = None, all_targets: np.ndarray | None = None, degrees: np.ndarray | None = None,
        slack: int = 100, degrees_before: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self.num_nodes, self.num_edges = edges.num_nodes, edges.num_edges
        self.num_parts, self.rank, self.threshold, self.slack = num_parts, rank, threshold, slack
        self.rows, self.columns = grid
        self.first_node = edges.first_node
        self.indptr, self.targets = edges.indptr, edges.targets
        self.num_places = edges.indptr.size - 1 + num_neighbors
        self.neighbor_index = np.empty(0, np.uint64) if neighbor_index is None else neighbor_index
        self.neighbor_degrees = np.empty(0, np.int64) if neighbor_degrees is None else neighbor_degrees
        self.in_degrees = np.empty(0, np.int64) if in_degrees is None else in_degrees
        self.node_map = np.empty(0, np.int32) if node_map is None else node_map
        self.all_indptr = np.zeros(1, np.int64) if all_indptr is None else all_indptr
        self.all_targets = np.empty(0, edges.targets.dtype) if all_targets is None else all_targets
        self.degrees = np.empty(0, np.int64) if degrees is None else degrees
        self.degrees_before = np.empty(0, np.int64) if degrees_before is None else degrees_before
        # for share() and pick(): where each rank's share begins, and the last one ends; empty if all are 1
        self.share_starts = np.array([*accumulate(shares, initial=0)] if shares else [], np.int64)
        self.all_shares, self.has_shares = sum(shares) or num_parts, int(bool(shares))
        # for reader(): which rank reads the first node of each block of 2**shift nodes
        self.bounds = edges.bounds if bounds is None else bounds
        self.shift = max(0, (edges.num_nodes - 1).bit_length() - GUESSES.bit_length() + 1)
        blocks = np.arange((edges.num_nodes >> self.shift) + 1) << self.shift
        guess = np.searchsorted(self.bounds, blocks, side="right") - 1
        self.guess = np.minimum(guess, self.bounds.size - 2).astype(np.int32)

    def without_slice(self) -> "Prop":
        """The same facts without the edges of the slice, for rules that do not look at them."""
        other = copy.copy(self)
        other.indptr, other.targets = self.indptr[:1].copy(), self.targets[:0].copy()
        other.all_indptr, other.all_targets = self.all_indptr[:1].copy(), self.all_targets[:0].copy()
        return other

    def with_threshold(self, threshold: int) -> "Prop":
        """The same facts with another threshold."""
        other = copy.copy(self)
        other.threshold = threshold
        return other

    def reader(self, node):  # type: ignore[no-untyped-def]
        """Rank that reads a node: contiguous blocks, equal numbers of edges unless --split or --shares say otherwise.

        -1 for a node that does not exist.

        The blocks are those of the parts if there are not as many as ranks, or if the graph is in memory and parts have
        shares.
        """
        if node < 0 or node >= self.num_nodes:
            return -1
        rank = self.guess[node >> self.shift]
        while node >= self.bounds[rank + 1]:
            rank += 1
        return rank

    def share(self, rank):  # type: ignore[no-untyped-def]
        """What a rank gets in proportion to the others, a whole number: as --shares says in lowest terms, else 1."""
        if rank < 0 or rank >= self.num_parts:
            return 0
        return self.share_starts[rank + 1] - self.share_starts[rank] if self.share_starts.size else 1

    def pick(self, number):  # type: ignore[no-untyped-def]
        """The rank on which a number falls when all whole numbers are dealt out, to each rank as many as its share.

        Where all shares are the same, ``number % num_parts``.
        """
        rest = number % self.all_shares
        if self.share_starts.size:
            return _rank_with(self.share_starts, rest)
        return rest

    def out_degree(self, node):  # type: ignore[no-untyped-def]
        """Number of out-edges of a node of this rank's slice (every ``src`` is one); -1 for any other."""
        row = node - self.first_node
        if row < 0 or row >= self.indptr.size - 1:
            return -1
        before = self.degrees_before[row] if self.degrees_before.size else 0
        return self.indptr[row + 1] - self.indptr[row] + before

    def out_neighbors(self, node):  # type: ignore[no-untyped-def]
        """Targets of the out-edges of a node of this rank's slice, a view; empty for any other."""
        row = node - self.first_node
        if row < 0 or row >= self.indptr.size - 1:
            return self.targets[:0]
        return self.targets[self.indptr[row] : self.indptr[row + 1]]

    def all_neighbors(self, node):  # type: ignore[no-untyped-def]
        """Other ends of the edges of a node of this rank's slice, in both directions, a view; empty for any other.

        One for each edge; in a symmetric graph, where every edge is there twice, one for both.
        """
        row = node - self.first_node
        if row < 0 or row >= self.indptr.size - 1:
            return self.all_targets[:0]
        if row >= self.all_indptr.size - 1:  # the question was overlooked, see cusp.policies.inspect_rules
            raise ValueError("prop.all_neighbors may be called by a rule and by functions that it calls only")
        return self.all_targets[self.all_indptr[row] : self.all_indptr[row + 1]]

    def place(self, node):  # type: ignore[no-untyped-def]
        """Number below ``num_places`` of a node that this slice touches, own or neighbour; -1 for any other.

        For state with one entry for each node that this rank can meet, since no rank holds one for all nodes.
        """
        row = np.int64(node) - self.first_node
        rows = self.indptr.size - 1
        if row >= 0 and row < rows:
            return row
        word = np.int64(node) >> 6
        bit = np.uint64(1) << np.uint64(node & 63)
        if word < 0 or 2 * word >= self.neighbor_index.size or self.neighbor_index[2 * word] & bit == 0:
            return -1
        below = popcount(self.neighbor_index[2 * word] & (bit - np.uint64(1)))
        return rows + np.int64(self.neighbor_index[2 * word + 1] + below)

    def neighbor_degree(self, node):  # type: ignore[no-untyped-def]
        """Number of out-edges of any node that this slice touches, also of a ``dst``; -1 for any other."""
        place = self.place(node)
        rows = self.indptr.size - 1
        if place < rows:
            if place < 0:
                return -1
            before = self.degrees_before[place] if self.degrees_before.size else 0
            return self.indptr[place + 1] - self.indptr[place] + before
        if place - rows >= self.neighbor_degrees.size:  # the question was overlooked, see cusp.policies.inspect_rules
            raise ValueError("prop.neighbor_degree may be called by a rule and by functions that it calls only")
        return self.neighbor_degrees[place - rows]

    def in_degree(self, node):  # type: ignore[no-untyped-def]
        """Number of in-edges of any node that this slice touches, also of a ``dst``; -1 for any other.

        Counted where the graph file has no transpose.
        """
        place = self.place(node)
        if place < 0:
            return -1
        if place >= self.in_degrees.size:  # the question was overlooked, see cusp.policies.inspect_rules
            raise ValueError("prop.in_degree may be called by a rule and by functions that it calls only")
        return self.in_degrees[place]

    def total_degree(self, node):  # type: ignore[no-untyped-def]
        """Number of :meth:`all_neighbors`, of any node that this slice touches, also of a ``dst``; -1 for any other."""
        place = self.place(node)
        if place < 0:
            return -1
        if place >= self.degrees.size:  # the question was overlooked, see cusp.policies.inspect_rules
            raise ValueError("prop.total_degree may be called by a rule and by functions that it calls only")
        return self.degrees[place]

    def mapped(self, node):  # type: ignore[no-untyped-def]
        """Rank that the file given by ``--node-map`` has for a node of this rank's slice; -1 for any other."""
        row = node - self.first_node
        if row < 0 or row >= self.node_map.size:
            return -1
        return self.node_map[row]


_COMPILED = [getattr(Prop, name) for name in (*METHODS, "out_neighbors", "all_neighbors", "total_degree")]
value_struct(Prop, _COMPILED, inlined=(Prop.share, Prop.pick, Prop.place, Prop.all_neighbors))


class MastersView:
    """``masters[n]``: the master of a node of the slice, or of a neighbour, if it is known yet; else -1."""

    __slots__ = ("first_node", "own", "index", "table")

    def __init__(self, first_node: int, own: np.ndarray, index: np.ndarray, table: np.ndarray) -> None:
        self.first_node, self.own, self.index, self.table = first_node, own, index, table

    def __getitem__(self, node):  # type: ignore[no-untyped-def]
        row = np.int64(node) - self.first_node
        if row >= 0 and row < self.own.size:
            return np.int64(self.own[row])
        word = np.int64(node) >> 6
        bit = np.uint64(1) << np.uint64(node & 63)
        if word < 0 or 2 * word >= self.index.size or self.index[2 * word] & bit == 0:
            return np.int64(-1)
        below = popcount(self.index[2 * word] & (bit - np.uint64(1)))
        return np.int64(self.table[self.index[2 * word + 1] + below])


value_struct(MastersView, (MastersView.__getitem__,))
