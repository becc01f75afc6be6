"""What traversals need from every device.

``plan`` is what the searches of a partition share, ``updated`` the bits of a label.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cusp.runtime.devices import Array

if TYPE_CHECKING:
    from cusp.partition import Partition
    from gluon.label import Label
    from gluon.sync import Sync


ALPHA, BETA = 15, 18  # when to pull and when to push again (Beamer, Asanovic, Patterson, SC 2012)


class Bfs(Protocol):
    """Breadth-first search: one level along the edges of a frontier, or to it.

    A frontier is bits of proxies. A value is ``level | (gids[v] & gid_mask)``, int32 or int64: the level of a node
    above its parent v, if that is wanted.
    """

    def frontier_size(self, updated: Array, degrees: Array) -> tuple[int, int]:
        """Updated masters, and the out-edges that they have in the whole graph.

        Parameters
        ----------
        updated : bits
        degrees : (masters,) int64
        """

    def bfs_push(
        self, label: "Label", frontier: Array, offsets: Array, targets: Array, gid_mask: int, level: Any, plan: Any
    ) -> None:
        """Every frontier node v gives ``level | (gids[v] & gid_mask)`` to its out-neighbours with larger values."""

    def bfs_pull(
        self, label: "Label", frontier: Array, offsets: Array, sources: Array, gid_mask: int, level: Any, plan: Any
    ) -> None:
        """Every node without a value looks for an in-neighbour in the frontier and stops at the first."""

    def plan_bfs(self, part: "Partition", in_edges: tuple[Array, Array] | None, sync: "Sync", way: str) -> Any:
        """What the searches of one partition share; ``in_edges`` are offsets and sources. Collective.

        ``way`` is ``whole`` or ``peers``, for :meth:`bfs_drain`; or ``rounds``, for the others.
        """

    def bfs_drain(
        self, part: "Partition", plan: Any, source: int, direction: str, alpha: int, beta: int, with_parents: bool
    ) -> tuple[Array, Array, Any]:
        """A whole search, of a rank that shares no node with others, or of ranks that are peers.

        Returns
        -------
        hops : (masters,) int32
        parents : (masters,) int64
            If wanted. Both are -1 where there is no path.
        levels : number
        """


class Sssp(Protocol):
    """What shortest paths ask about lengths; they are an edge operator, but for what only GPUs have."""

    def bucket_scale(self, part: "Partition", way: str) -> float:
        """How many times wider than usual buckets should be."""

    def most_hops(self, part: "Partition", sync: "Sync") -> int:
        """A number of hops that is enough between any two nodes with a path between them. Collective.

        Only where a whole search by hops is one call on each rank.
        """

    def settled_paths(
        self, part: "Partition", sync: "Sync", way: str, weights: Array, dtype: np.dtype
    ) -> "Settled | None":
        """Searches that settle distances of a type bucket by bucket; None where that does not pay. Collective."""

    def find_parents(
        self, offsets: Array, sources: Array, weights: Array, gids: Array, values: Array, far: Any, known: Array,
        nobody: int, parents: Array, updated: Array,
    ) -> None:  # fmt: skip
        """Every reached node without a parent takes the first in-neighbour that is closer by the length of the edge.

        One at the same distance is taken only if it is ``known`` to have a parent. Without ``weights``, all are 1 long.
        """


class Settled(Protocol):
    """Searches on GPUs where edges weigh as much as their reverses, so that rows sorted by weight can be pulled from.

    Attributes
    ----------
    BUCKET_SCALE : float
        How many times wider than usual buckets should be.
    """

    BUCKET_SCALE: float

    def run(self, sync: "Sync", source: int, lengths: Any, drain: Callable[..., Any]) -> tuple[Array, Any]:
        """Distances of all proxies, ``lengths.far`` where there is no path, and the number of buckets. Collective.

        ``drain`` is that of the operator which relaxes edges. Distances are whole numbers; those of mirrors may be
        stale, and all of them may be in memory that the next search uses.
        """
