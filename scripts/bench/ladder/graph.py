"""The input of every rung of the ladder: a graph on the GPU, memory for its searches, and the loop over the levels."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from cusp.kernels.cuda import Kernels, load, many_threads, pinned, struct, threads_for_edges
from cusp.partition import Partition
from cusp.runtime.mpi import MPI
from gluon.plan import make_plan
from gluon.sync import Sync

PLACES = 4096  # of the tally, as in shared.cuh


class Source(NamedTuple):
    """A node, by both of its numbers."""

    gid: int
    lid: int


class Found(NamedTuple):
    """(nodes,) int32 hops by local id, -1 where there is no path, and the levels, the last of which finds nothing."""

    hops: Any
    levels: int


@dataclass(frozen=True)
class Graph:
    """A symmetric graph in the memory of one GPU.

    Attributes
    ----------
    part : Partition
        All of the graph, with nodes numbered by degree, those with the most edges first.
    sources : (edges,) int32
        The source of each edge of ``part``: with its targets, the graph as a list of pairs.
    kept : dict
        Memory and other things that all searches share, by name.
    tally : (2 PLACES,) uint64, or None
        What a counting run adds up, in pairs: edges inspected, and bytes read or written.
    """

    part: Partition
    sync: Sync
    sources: Any
    kept: dict[str, Any] = field(default_factory=dict)
    tally: Any = None

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.part.num_nodes

    @cached_property
    def struct(self) -> Any:
        """The graph as kernels get it."""
        part = self.part
        return struct(part.num_nodes, part.num_edges, part.offsets, part.targets, self.sources, self.tally)

    def kernels(self, name: str) -> Kernels:
        """Kernels of a file of this folder; those of a counting run count."""
        counting = {"COUNT": "1"} if self.tally is not None else {}
        return load(f"scripts/bench/ladder/{name}.cuh", **counting)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What ``make()`` returned when it was first asked for by this name."""
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def array(self, name: str, size: int, dtype: Any) -> Any:
        """(size,) memory with a name, which keeps what the last search left there."""
        return self.once(name, lambda: cp.empty(size, dtype))

    def pair(self, name: str, size: int, dtype: Any) -> tuple[Any, Any]:
        """Memory twice, for even levels and for odd ones."""
        return self.array(f"{name} of even levels", size, dtype), self.array(f"{name} of odd levels", size, dtype)

    @property
    def hops(self) -> Any:
        """(nodes,) int32: where a search leaves its answer."""
        return self.array("hops", self.nodes, np.int32)

    @property
    def queues(self) -> tuple[Any, Any]:
        """(nodes,) int32 twice."""
        return self.pair("queues", self.nodes, np.int32)

    @property
    def counters(self) -> Any:
        """(12,) uint64: three counters of each of three levels in turn, then three for a kernel of several levels."""
        return self.array("counters", 12, np.uint64)

    def begin(self, source: Source) -> None:
        """Make everything ready for the first level."""
        arguments = source.lid, self.hops, self.queues[0], self.counters
        self.kernels("shared").begin(many_threads(), self.struct, *arguments)

    def read(self) -> list[int]:
        """The counters, brought to the host: about 10 us, in which the GPU has nothing to do."""
        host = self.once("host", lambda: pinned(12, np.uint64))
        self.counters.get(out=host)
        return host.tolist()

    def found(self, level: int) -> list[int]:
        """The counters of a level."""
        return self.read()[level % 3 * 3 :][:3]

    def search(self, advance: Callable[[int], int]) -> Found:
        """``advance(level)`` for level after level, until it returns that it found nothing."""
        level = 1
        while advance(level):
            level += 1
        return Found(self.hops, level)


def graph_of(part: Partition) -> Graph:
    """A graph of one rank with the sources of its edges, for all rungs."""
    sources = cp.empty(part.num_edges, np.uint32)
    build = load("cusp/kernels/build.cuh", GID="unsigned")
    build.list_sources(threads_for_edges(part.num_edges), part.offsets, 0, part.num_nodes, sources)
    return Graph(part, Sync(make_plan(part, MPI.COMM_SELF), MPI.COMM_SELF), sources.view(np.int32))
