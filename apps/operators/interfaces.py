"""What operators of several algorithms need from every device."""

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cusp.runtime.devices import Array

if TYPE_CHECKING:
    from cusp.apps.shared.undirected import RowPieces
    from cusp.partition import Partition
    from gluon.sync import Sync

SPARSE = 5  # edges per node


def is_sparse(part: "Partition") -> bool:
    """Whether a graph is a road map or another lattice, as a rule: searches have many levels, with few nodes each."""
    return part.num_edges < SPARSE * part.num_nodes


def without_rounds(part: "Partition", sync: "Sync") -> bool:
    """Whether a search runs without rounds: that was asked for, and there would be many of them.

    In graphs with many edges per node there are few, and what a rank does before it knows what others have found is
    mostly done again: kron20, shortest paths on 2 CPU ranks, 200 ms in 14 rounds, 240 without.
    """
    return sync.asynchronous and is_sparse(part)


def choose_delta(mean_weight: float, mean_degree: float) -> float:
    """Width of a bucket: the more out-edges nodes have, the closer together are the distances of neighbours."""
    return max(1.7 * mean_weight / max(mean_degree, 1.0), 1e-300)


def width_of_steps(steps: np.ndarray, part: "Partition", whole: bool) -> float:
    """Width of a bucket of priorities; of those that are whole numbers at least 1.

    Parameters
    ----------
    steps : (any,) float64
        How much higher priorities are behind some edges. Edges that do not lead to higher ones do not count.
    """
    higher = steps[(steps > 0) & np.isfinite(steps)]
    width = choose_delta(float(np.median(higher)), part.num_edges / part.num_nodes) if higher.size else 1.0
    return max(width, 1.0) if whole else width


def bucket_end(lowest: Any, delta: Any, far: Any) -> Any:
    """The end of the bucket of a distance; above it even where floats are coarse, ``far`` for what is left."""
    number = far.dtype.type
    lowest, delta, far = lowest.item(), delta.item(), far.item()
    if delta == math.inf or not -math.inf < lowest < far:
        return number(far)
    end = lowest // delta * delta + delta
    if isinstance(far, float):
        end = max(end, math.nextafter(lowest, math.inf))
    return number(min(end, far))


class Frontier(Protocol):
    """Frontiers: bits of a label."""

    def drains(self, sync: "Sync") -> bool:
        """Whether a whole traversal is one call: no other rank takes part, or all do, in one kernel on each GPU."""

    def runs_ahead(self, part: "Partition", sync: "Sync") -> bool:
        """Whether ranks should not wait for each other after each level of a search."""

    def make_queue(self, part: "Partition") -> Any:
        """Memory that an operator needs while it runs, made once per partition."""

    def frontier_size(self, updated: Array, degrees: Array) -> tuple[int, int]:
        """Updated masters, and the out-edges that they have in the whole graph.

        Parameters
        ----------
        updated : bits
        degrees : (masters,) int64
        """


class Undirected(Protocol):
    """Rows of neighbours, merged and sorted; see apps/shared/undirected.py."""

    def merge_rows(
        self, arrived: "list[RowPieces]", num_masters: int, num_proxies: int, weighted: bool
    ) -> tuple[Array, Array, Array]:
        """Offsets, targets (int32) and weights (float64 or None) of all proxies.

        Rows ascend, without loops and duplicates. ``arrived`` is emptied.
        """

    def rows_of_edges(self, offsets: Array) -> Array:
        """(edges,) uint32: the row that each edge of a CSR is in."""

    def rows_are_simple(self, offsets: Array, targets: Array) -> bool:
        """Whether the entries of every row ascend, none of them twice, none the row itself."""


if TYPE_CHECKING:
    from cusp.apps.operators import frontier_cpu, frontier_gpu, undirected_cpu, undirected_gpu

    _frontier_cpu: Frontier = frontier_cpu
    _frontier_gpu: Frontier = frontier_gpu
    _undirected_cpu: Undirected = undirected_cpu
    _undirected_gpu: Undirected = undirected_gpu
