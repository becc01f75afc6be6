"""Partition: the part of the graph on one rank, frozen."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from cusp.errors import OptionError
from cusp.input.checksum import as_bits
from cusp.kernels.arrays import add_up, filled_rows, mapped
from cusp.kernels.interfaces import Build
from cusp.lid_map import LidMap
from cusp.runtime.devices import backend, move
from cusp.runtime.storage import IN_MEMORY, Storage, memory_of

RUN_BYTES = 32  # for each proxy: labels of a run and its answer
OF_NODES, OF_EDGES = ("gids", "offsets", "has_in", "degrees"), ("targets", "weights")


@dataclass(frozen=True)
class Csc:
    """In-edges of proxy v: ``sources[offsets[v] : offsets[v + 1]]`` (int32), and the same of ``weights``, or None."""

    offsets: np.ndarray
    sources: np.ndarray
    weights: np.ndarray | None


@dataclass(frozen=True)
class Partition:
    """The local graph of one rank.

    ::

        lid   0 ......... num_masters | mirrors of rank 0 | mirrors of rank 1 | ...   gids[lid]: global id
        out-edges of v: targets[offsets[v] : offsets[v + 1]], and the same of weights

    With hubs first (``order="degree"``), the target with the lowest lid comes first in its row, so a search for
    a parent mostly ends there. In the CSC it always does: sources ascend within a row.

    Attributes
    ----------
    rank, num_ranks : int
    num_nodes, num_edges : int
        Of the whole graph.
    symmetric : bool
        The whole graph has every edge in both directions.
    num_masters : int
        The proxies 0 to num_masters - 1 are masters; those without out-edges in the graph come last.
    mirror_starts : (ranks + 1,) int64
        Mirrors whose master is on rank r: ``mirror_starts[r] : mirror_starts[r + 1]``, by their local ids there.
    gids : (proxies,) int64
    offsets : (proxies + 1,) int64
    targets : (edges,) int32
    weights : (edges,) any number type, or None
    has_in : (proxies,) bool
        The proxy has in-edges on this rank.
    degrees : (masters,) int64
        Out-degree of each master in the whole graph.
    lid_map : LidMap
    csc : Csc or None
        In-edges of each proxy, if they were requested.
    storage : Storage
        Where ``targets``, ``weights`` and the like live.
    device : {'cpu', 'gpu'}
        Where the arrays are, except ``mirror_starts``.

    Examples
    --------
    The out-edges of node 0, by global ids:

    >>> from mpi4py import MPI
    >>> from cusp.partitioner import partition_graph
    >>> part = partition_graph(([0, 0, 2], [1, 2, 0]), "oec", MPI.COMM_SELF)
    >>> lid = part.lid(0)
    >>> sorted(part.gids[part.targets[part.offsets[lid] : part.offsets[lid + 1]]].tolist())
    [1, 2]
    >>> part.num_proxies, int(part.degrees[lid])
    (3, 2)
    """

    rank: int
    num_ranks: int
    num_nodes: int
    num_edges: int
    symmetric: bool
    num_masters: int
    mirror_starts: np.ndarray
    gids: np.ndarray
    offsets: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    has_in: np.ndarray
    degrees: np.ndarray
    lid_map: LidMap
    csc: Csc | None = None
    storage: Storage = IN_MEMORY
    device: str = "cpu"

    def on(self, device: str) -> "Partition":
        """The same partition with its arrays on another device."""
        if device == self.device:
            return self
        storage = memory_of(device)
        moved = {name: move(getattr(self, name), device) for name in OF_NODES}
        moved |= {name: storage.take(getattr(self, name)) for name in OF_EDGES}
        lid_map = LidMap(move(self.lid_map.index, device), move(self.lid_map.table, device))
        csc = self.csc and Csc(
            move(self.csc.offsets, device), storage.take(self.csc.sources), storage.take(self.csc.weights)
        )
        return replace(self, **moved, lid_map=lid_map, csc=csc, storage=storage, device=device).kept()

    def without_weights(self) -> "Partition":
        """The same graph without weights."""
        return replace(self, weights=None, csc=self.csc and replace(self.csc, weights=None))

    def kept(self) -> "Partition":
        """The same partition with its arrays where they are read fastest, if memory is short: see :class:`.Storage`."""
        aside = {name: self.storage.aside(getattr(self, name)) for name in ("gids", "degrees")}
        lid_map = LidMap(self.lid_map.index, self.storage.aside(self.lid_map.table))
        edges = [self.targets, self.weights, self.csc and self.csc.sources, self.csc and self.csc.weights]
        self.storage.prefer([array for array in edges if array is not None], RUN_BYTES * self.num_proxies)
        return replace(self, **aside, lid_map=lid_map)

    @property
    def num_proxies(self) -> int:
        """Masters and mirrors of this rank."""
        return self.gids.size

    @property
    def num_local_edges(self) -> int:
        """Edges that this rank owns."""
        return self.targets.size

    @functools.cached_property
    def num_linked(self) -> int:
        """Masters from here on have neither edges nor mirrors, as far as degrees tell, where they are known."""
        if not self.symmetric or self.degrees.size < self.num_masters:
            return self.num_masters
        (linked,) = (self.degrees > 0).nonzero()  # in a graph made symmetric, others may be among them
        return int(linked[-1]) + 1 if linked.size else 0

    @property
    def has_out(self) -> np.ndarray:
        """(proxies,) bool: the proxy has out-edges on this rank."""
        return filled_rows(self.offsets)

    def lid(self, gid: int) -> int:
        """Local id of a node, or -1 if it has no proxy here.

        Raises
        ------
        OptionError
            The graph has no such node.
        """
        self.check_node(gid)
        return int(self.lid_map.lids(np.array([gid], np.int64))[0])

    def masters_among(self, gids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of the nodes whose masters are here in an array of global ids, and their local ids."""
        lids = self.lid_map.lids(gids)
        here = np.flatnonzero((lids >= 0) & (lids < self.num_masters))
        return here, lids[here]

    def check_node(self, gid: int, name: str = "node") -> None:
        """Raise OptionError if the graph has no node of this global id, which the user knows by ``name``."""
        if not 0 <= gid < self.num_nodes:
            raise OptionError(f"{name} {gid}: the graph has the nodes 0 to {self.num_nodes - 1}")

    def with_csc(self) -> "Partition":
        """The same partition with the local CSC, the transpose of the local CSR."""
        return replace(self, csc=transpose(self))


def transpose(part: Partition) -> Csc:
    """Local CSC from the local CSR; weights move with their edges.

    Each chunk of the result takes a walk through all edges, because in-edges come in no order.
    """
    build = backend(Build, part.device)
    storage, offsets = part.storage, build.xp.zeros(part.num_proxies + 1, np.int64)
    walk = storage if part.device == "cpu" else IN_MEMORY  # a GPU's kernels sort piece by piece themselves
    for edges in walk.parts(part.targets.size):
        build.count_in_edges(part.targets[edges], offsets)
    add_up(offsets)
    sources = storage.empty(part.targets.size, part.targets.dtype)
    weights = build.xp.empty(0, np.uint8) if part.weights is None else part.weights
    in_weights = storage.empty(weights.size, weights.dtype)
    place = mapped(build.xp.copy, offsets[:-1])
    for first, last in walk.rows(offsets):
        for row, end in walk.rows(part.offsets):
            build.transpose(
                row, part.offsets[row : end + 1], part.targets, as_bits(weights), first, last, place, sources,
                as_bits(in_weights),
            )  # fmt: skip
    return Csc(offsets, sources, None if part.weights is None else in_weights)
