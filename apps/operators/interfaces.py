"""What operators of several algorithms need from every device."""

import math
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from cusp.partition import Partition, transpose
from cusp.runtime.devices import Array
from gluon.reduction import MIN

if TYPE_CHECKING:
    from cusp.apps.shared.graphs.undirected import RowPieces

SPARSE = 5  # edges per node
SMALL = 1 << 23  # edges of a graph of which each rank may have a copy


def is_sparse(part: Partition) -> bool:
    """Whether a graph is a road map or another lattice, as a rule: searches have many levels, with few nodes each."""
    return part.num_edges < SPARSE * part.num_nodes


_KEPT: dict[tuple[int, Any], Any] = {}


def kept_with(part: Partition, name: Any, make: Callable[[], Any]) -> Any:
    """What ``make()`` returned when this name was first asked for; it is kept as long as the partition."""
    key = id(part), name
    if key not in _KEPT:
        _KEPT[key] = make()
        weakref.finalize(part, _KEPT.pop, key, None)
    return _KEPT[key]


def choose_delta(mean_weight: float, mean_degree: float) -> float:
    """Width of a bucket: the more out-edges nodes have, the closer together are the distances of neighbours."""
    return max(1.7 * mean_weight / max(mean_degree, 1.0), 1e-300)


def width_of_steps(steps: np.ndarray, part: Partition, whole: bool) -> float:
    """Width of a bucket of priorities; of those that are whole numbers at least 1.

    Parameters
    ----------
    steps : (any,) float64
        How much higher priorities are behind some edges. Edges that do not lead to higher ones do not count.
    """
    higher = steps[(steps > 0) & np.isfinite(steps)]
    width = choose_delta(float(np.median(higher)), part.num_edges / part.num_nodes) if higher.size else 1.0
    return max(width, 1.0) if whole else width


def width_in(key: np.dtype, delta: float) -> Any:
    """The width of a bucket as a number of the type of priorities; of whole numbers at least 1."""
    width = min(delta, MIN.identity(key).item())
    return key.type(width if key.kind == "f" else max(round(width), 1))


def bucket_end(key: np.dtype, lowest: Any, delta: float) -> Any:
    """The end of the bucket of a priority; above it even where floats are coarse, the highest for what is left."""
    lowest, delta, far = key.type(lowest).item(), width_in(key, delta).item(), MIN.identity(key).item()
    if delta == math.inf or not -math.inf < lowest < far:
        return key.type(far)
    end = lowest // delta * delta + delta
    if isinstance(far, float):
        end = max(end, math.nextafter(lowest, math.inf))
    return key.type(min(end, far))


class InEdges(NamedTuple):
    """In-edges of every proxy: the rows that a pull walks through.

    Attributes
    ----------
    offsets : (proxies + 1,) int64
    sources : (edges,) int32
        The in-edges of node v come from ``sources[offsets[v] : offsets[v + 1]]``.
    read, write : {'src', 'dst'}
        Ends of the edges, as they are stored, that a pull reads and writes.
    """

    offsets: Any
    sources: Any
    read: str
    write: str


def in_edges_of(part: Partition) -> InEdges | None:
    """The in-edges of this rank's proxies, or None if the partition has none.

    Those of a symmetric graph are its own rows: the reversed edges are the same set. So a pull there writes at the
    source of a stored edge, and reads at its target.
    """
    if part.symmetric:
        return InEdges(part.offsets, part.targets, "dst", "src")
    if part.csc is None:
        return None
    return InEdges(part.csc.offsets, part.csc.sources, "src", "dst")


def own_neighbours(part: Partition) -> tuple[Any, Any]:
    """Of each proxy of an undirected graph, the masters of this rank that are its neighbours: offsets and lids.

    Without mirrors, the rows of masters are what a transposition would make of them.
    """
    if part.num_proxies == part.num_masters:
        return part.offsets, part.targets
    csc = transpose(part)
    return csc.offsets, csc.sources


class Undirected(Protocol):
    """Rows of neighbours, merged and sorted; see apps/shared/graphs/undirected.py."""

    def merge_rows(self, arrived: "list[RowPieces]", num_proxies: int, weighted: bool) -> tuple[Array, Array, Array]:
        """Offsets, targets (int32) and weights (float64 or None) of all proxies.

        Rows ascend, without loops and duplicates. ``arrived`` is emptied.
        """

    def rows_of_edges(self, offsets: Array) -> Array:
        """(edges,) uint32: the row that each edge of a CSR is in."""

    def rows_are_simple(self, offsets: Array, targets: Array) -> bool:
        """Whether the entries of every row ascend, none of them twice, none the row itself."""
