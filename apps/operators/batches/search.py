"""Breadth-first searches from up to 64 nodes at once: what one edge brings is a bit for each of them.

A node waits for the bits of the searches that have not reached it, its *open* bits. In each level, the *front*, the
bits of searches that have just reached a node, goes to out-neighbours that are open for them (Then et al., The More
the Merrier, PVLDB 8, 2014). All searches share the edges, and the rounds.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cusp import OR, EdgeOperator, Label, Partition, Sync
from cusp.apps.operators.batches.interfaces import Batches
from cusp.apps.operators.interfaces import in_edges_of
from cusp.runtime.devices import backend, move

WIDTH = 64  # searches in a batch: bits of a word
PULL = 8  # out-edges of a front that are worth a pull: a part of all edges
SPREAD = EdgeOperator("src.front & dst.open", into="dst.arrived", where="dst.open != 0")
GATHER = EdgeOperator("dst.front & src.open", into="src.arrived", where="src.open != 0")  # of a symmetric graph


class Batch:
    """Searches that share the memory of one partition, a batch of them at a time.

    Parameters
    ----------
    part : Partition
        With ``csc`` if levels are to be pulled and the graph is not symmetric.
    sync : Sync
    """

    def __init__(self, part: Partition, sync: Sync) -> None:
        self.part, self.sync = part, sync
        self.ops = backend(Batches, part.device)
        self.front, self.arrived = Label(part, np.int64, 0, OR), Label(part, np.int64, 0, OR)
        self.open: Any = self.front.device.full(part.num_proxies, 0, np.dtype(np.int64))
        self.pull, self.rows = (GATHER if part.symmetric else SPREAD), in_edges_of(part)

    def search(self, sources: Sequence[int], visit: Callable[[int, Label], None]) -> np.ndarray:
        """Search from some nodes along out-edges. Collective.

        Parameters
        ----------
        sources : up to ``WIDTH`` different nodes
        visit : function (hops, front)
            Called after each level with its label: the value of a master has a bit for each source that is so many
            hops away; only updated ones have any. Values of mirrors are of no use.

        Returns
        -------
        (sources,) int64
            The most hops from each source to a node.
        """
        lids = self.part.lid_map.lids(np.array(sources, np.int64))
        here = np.flatnonzero(lids >= 0)
        places = move(lids[here], self.part.device)
        self.open[:] = -1 if len(sources) == WIDTH else (1 << len(sources)) - 1
        self.arrived.values[places] = move(np.left_shift(np.int64(1), here), self.part.device)
        self.arrived.mark(places)
        touched, frontier = self.arrived.swap_updated(), self.front.swap_updated()
        alive: list[int] = []
        while self._end_level(frontier, touched, alive):
            visit(len(alive) - 1, self.front)
            frontier, touched = self._advance()
        return self._deepest(alive, len(sources))

    def _end_level(self, frontier: Any, touched: Any, alive: list[int]) -> int:
        """Masters take what arrived; returns how many got bits, of all ranks. Collective."""
        nodes, edges, bits = self.ops.end_level(frontier, touched, self.front, self.arrived, self.open)
        nodes, self.edges = self.sync.total(nodes, edges)
        alive.append(bits & (1 << WIDTH) - 1)
        return int(nodes)

    def _advance(self) -> tuple[Any, Any]:
        """The next level; returns the bits of its frontier, and of the proxies where something arrived. Collective."""
        pull = self.rows is not None and self.edges > self.part.num_edges // PULL
        operator = self.pull if pull else SPREAD
        self.sync.broadcast(self.front, read=operator.read)
        frontier = self.front.swap_updated()
        given = {"front": self.front, "open": self.open, "arrived": self.arrived}
        operator(self.part, frontier=None if pull else frontier, **given)
        mirrors = self.arrived.updated.copy()  # a reduce clears them
        self.sync.reduce(self.arrived, write=operator.write)
        self.sync.end_round()
        touched = self.arrived.swap_updated()
        touched |= mirrors
        return frontier, touched

    def _deepest(self, alive: list[int], searches: int) -> np.ndarray:
        """The last level in which some rank had the bit of each search. Collective."""
        levels = np.bitwise_or.reduce(self.sync.comm.allgather(np.array(alive, np.uint64)))
        upwards = levels[::-1, None] >> np.arange(searches, dtype=np.uint64) & np.uint64(1)
        return len(levels) - 1 - upwards.argmax(axis=0)
