"""What samples of neighbours and random walks need from every device.

A random number is ``mix(key + counter * GOLDEN)`` (Steele, Lea and Flood, OOPSLA 2014): what is drawn depends on the
key of a node or walker, and on how many numbers it has drawn, not on who draws it. Its upper 53 bits are a share of 1;
times a bound, and rounded down, that is a number below the bound: the same on every device.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from cusp.runtime.devices import Array

ROUND = 16  # steps of a walk on one rank before ranks exchange walkers
Hop = tuple[Array, np.ndarray]  # what several batches have, and where each one begins
WALKER = 6  # numbers that describe one: see Samples.walk
BITS = 52  # of the running sums of a row's weights


class Rows(NamedTuple):
    """Whole rows of this rank's masters: see :class:`cusp.apps.shared.graphs.whole_rows.WholeRows`.

    Attributes
    ----------
    offsets : (masters + 1,) int64
    ends : (edges,) int64
        Addresses of the other ends.
    marks : (edges,) int64, or (0,)
        Ascending in each row: running sums of weights as whole numbers, or times.
    """

    offsets: Array
    ends: Array
    marks: Array


class Walks(NamedTuple):
    """What walkers have in common.

    Attributes
    ----------
    length : int
        Steps of each.
    key : int
        What random numbers of all walkers count up from, below 2^64.
    back, far : float
        How much more likely a step to the node before is, and one to a node that is no out-neighbour of that, than
        one to a node that is: 1 / p and 1 / q of node2vec.
    bits : int
        Of a global id in an address.
    rank : int
    """

    length: int
    key: int
    back: float
    far: float
    bits: int
    rank: int


class Samples(Protocol):
    """Draw edges, number nodes, and take steps of walks."""

    def draw(
        self, rows: Rows, lids: Array, keys: Array, fan_out: int, replace: bool, until: Array | None
    ) -> tuple[Array, Array, Array]:
        """Draw edges of some rows: how many of each, (n,) int64; where they are in ``rows.ends``; and these ends.

        Of a row with no more than ``fan_out`` edges, all; but with ``replace`` always so many, unless it has none.
        Without ``replace`` they ascend.

        Parameters
        ----------
        lids : (n,) int32
            Of masters.
        keys : (n,) uint64
            What their random numbers count up from.
        fan_out : int
            -1: all edges.
        until : (n,) int64, or None
            Marks are times: only edges up to this one count, which are as likely as each other. None: marks are
            running sums, or there are none.
        """

    def number(self, hops: list[Hop], ends: Array, bounds: np.ndarray, bits: int) -> tuple[Hop, Array]:
        """The nodes that are new in ``ends``, as they first occur, and the place of each end among all of its batch.

        Parameters
        ----------
        hops : list of (nodes, bounds)
            Addresses of the nodes that are known, those of each batch one after the other, and where these begin and
            the last one ends. In each batch they have their places in the order of the hops, and none is there twice.
        ends : (n,) int64
        bounds : (batches + 1,) int64, on the host
            The same of the ends.
        bits : int
            Of a global id in an address.

        Returns
        -------
        (new, bounds), places
            A hop, and (n,) int64.
        """

    def walk(self, rows: Rows, lid_map: Any, walkers: Array, walks: Walks, own: Array, first: int, log: Array) -> None:
        """Let walkers go on until they leave this rank, have made some steps, or are at their end.

        Parameters
        ----------
        walkers : (n, WALKER) int64
            Of each its number; its steps so far; the node before this one, or -1; this one; -1, or the next one,
            which was drawn, but may be taken only if the rank of the node before finds an edge to it; and how many were
            drawn in this step before. Nodes are addresses. At a node without out-edges, the steps become
            ``walks.length``.
        own : (walkers of this rank, length + 1) int64
            The global ids of walks from number ``first`` on: those of the other walkers are written here.
        log : (away, ROUND) int64
            The global ids that the first walkers, whose walks are of other ranks, have come to, or -1.
        """
