"""What traversals need from every device.

``queue`` is memory that an operator needs while it runs, ``updated`` the bits of a label, ``far`` the value of nodes
that are not reached.
"""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cusp.runtime.devices import Array

if TYPE_CHECKING:
    from cusp.partition import Partition
    from gluon.sync import Sync


ALPHA, BETA = 15, 18  # when to pull and when to push again (Beamer, Asanovic, Patterson, SC 2012)


class Bfs(Protocol):
    """Breadth-first search: one level along the edges of a frontier, or to it.

    A frontier is bits of proxies. A value is ``level | (gids[v] & gid_mask)``, int32 or int64: the level of a node
    above its parent v, if that is wanted.
    """

    def bfs_push(
        self, frontier: Array, offsets: Array, targets: Array, gids: Array, gid_mask: int, level: Any, unreached: Any,
        values: Array, updated: Array, queue: Any,
    ) -> None:  # fmt: skip
        """Every frontier node v gives ``level | (gids[v] & gid_mask)`` to its out-neighbours with larger values."""

    def bfs_pull(
        self, frontier: Array, offsets: Array, sources: Array, gids: Array, gid_mask: int, level: Any, unreached: Any,
        values: Array, updated: Array, queue: Any,
    ) -> None:  # fmt: skip
        """Every node without a value looks for an in-neighbour in the frontier and stops at the first."""

    def plan_bfs(self, part: "Partition", in_edges: tuple[Array, Array] | None, sync: "Sync") -> Any:
        """What the searches of one partition share; ``in_edges`` are offsets and sources. Collective."""

    def bfs_drain(
        self, part: "Partition", plan: Any, source: int, direction: str, alpha: int, beta: int, with_parents: bool
    ) -> tuple[Array, Array, Any]:
        """A whole search, where ``Frontier.drains`` says so, or on ranks that are peers.

        Returns
        -------
        hops : (masters,) int32
        parents : (masters,) int64
            If wanted. Both are -1 where there is no path.
        levels : number
        """


class Sssp(Protocol):
    """What shortest paths ask about lengths; they are an edge operator, but for what only GPUs have."""

    def bucket_scale(self, queue: Any, sync: "Sync") -> float:
        """How many times wider than usual buckets should be."""

    def most_hops(self, part: "Partition", sync: "Sync") -> int:
        """A number of hops that is enough between any two nodes with a path between them. Collective."""

    def plan_relaxing(self, part: "Partition", sync: "Sync", weights: Array, dtype: np.dtype) -> Any:
        """The ``queue`` of the operators here, for distances of a type. Collective."""

    def drains(self, queue: Any, sync: "Sync") -> bool:
        """Whether there is a kernel for a whole search, :meth:`GpuSssp.shortest_paths`."""

    def settles(self, queue: Any) -> bool:
        """Whether distances can be settled bucket by bucket, by methods of :class:`GpuSssp`."""


class GpuSssp(Sssp, Protocol):
    """What only the GPU offers: a kernel for a whole search, and buckets that are settled, where edges weigh as much as
    their reverses. A node is pending if its value fell since its edges were last relaxed.

    Attributes
    ----------
    MOST_BUCKETS : int
        Buckets before nodes begin to pull, at most.
    ENOUGH : float
        Share of the edges that belong to settled nodes when the others begin to pull.
    """

    MOST_BUCKETS: int
    ENOUGH: float

    def find_pending(self, lowered: Array, values: Array, relaxed_at: Array, pending: Array, far: Any) -> Any:
        """Lowest value of a pending node, or ``far``; pending ones among the ``lowered`` get their bits."""

    def relax_below(
        self, limit: Any, delta: Any, far: Any, offsets: Array, targets: Array, weights: Array, values: Array,
        relaxed_at: Array, pending: Array, updated: Array, queue: Any,
    ) -> None:  # fmt: skip
        """Relax the out-edges of pending nodes below ``limit`` until none is left; a drain of one bucket.

        Sums that do not stay below ``far`` are not distances.
        """

    def shortest_paths(self, part: "Partition", sync: "Sync", source: int, lengths: Any) -> tuple[Array, Any]:
        """Distances of all proxies, ``lengths.far`` where there is no path, and the number of buckets.

        A whole search, where :meth:`drains` says so. Collective.
        """

    def open_bucket(
        self, part: "Partition", low: Any, high: Any, far: Any, values: Array, queue: Any
    ) -> tuple[int, Any]:
        """Find the edges that lead from nodes below ``low`` into the bucket from there to ``high``.

        Returns how many edges those nodes have, and the lowest distance from ``low`` on that they offer, or ``far``.
        """

    def settle_bucket(
        self, part: "Partition", high: Any, far: Any, values: Array, relaxed_at: Array, pending: Array,
        updated: Array, queue: Any,
    ) -> None:  # fmt: skip
        """Relax what :meth:`open_bucket` has found, and the edges of pending nodes that lead below ``high``."""

    def mark_reached(self, part: "Partition", far: Any, values: Array, updated: Array) -> None:
        """Give the masters that are reached their bits, as if they had just been updated."""

    def pull(self, part: "Partition", low: Any, far: Any, values: Array, updated: Array, queue: Any) -> None:
        """Every node that is not below ``low`` looks through its own row for a shorter path."""


class Tree(Protocol):
    """Parents in a tree of shortest paths."""

    def find_parents(
        self, offsets: Array, sources: Array, weights: Array, gids: Array, values: Array, far: Any, known: Array,
        nobody: int, parents: Array, updated: Array,
    ) -> None:  # fmt: skip
        """Every reached node without a parent takes the first in-neighbour that is closer by the length of the edge.

        One at the same distance is taken only if it is ``known`` to have a parent. Without ``weights``, all are 1 long.
        """


if TYPE_CHECKING:
    from cusp.apps.operators.traversal import bfs_cpu, bfs_gpu, sssp_cpu, sssp_gpu, tree_cpu, tree_gpu

    _bfs_cpu: Bfs = bfs_cpu
    _bfs_gpu: Bfs = bfs_gpu
    _sssp_cpu: Sssp = sssp_cpu
    _sssp_gpu: GpuSssp = sssp_gpu
    _tree_cpu: Tree = tree_cpu
    _tree_gpu: Tree = tree_gpu
