"""The lengths of edges: weights checked, and the number type and bucket width that fit them."""

import sys
from typing import Any, NamedTuple

import numpy as np

from cusp import MAX, MIN, EdgeOperator, Label, Partition, Sync
from cusp.apps.operators.expressions.relaxing import BY_PRIORITY
from cusp.apps.operators.interfaces import choose_delta
from cusp.apps.operators.traversal.interfaces import Settled, Sssp
from cusp.apps.operators.ways import way_of
from cusp.errors import GraphFileError, OptionError, together
from cusp.kernels.arrays import extremes, total
from cusp.runtime.devices import backend, to_host

MARK_TOO_FAR = EdgeOperator("1", into="dst.mark", where="src.distance < far <= src.distance + weight")
NARROW = 2**31 - 1  # distances below it have 32 bits
LONGEST = 2**63 - 1


class Lengths(NamedTuple):
    """The edge lengths of a partition, with what does not depend on the source.

    Attributes
    ----------
    weights : (edges,) any number type
        None negative; 1 on every edge of a graph without weights.
    dtype : numpy type
        Of the distances: int32 if no path can be too long for it, else int64; float64 for floats.
    far : number
        Distance of unreached nodes: infinity, or the largest integer of ``dtype``.
    delta : number
        Width of a bucket.
    may_overflow : bool
        Whether a path could be too long for the type.
    unit : bool
        Every edge is 1 long.
    settled : Settled or None
        Where distances are settled by rows that are sorted by weight.
    """

    weights: Any
    dtype: np.dtype
    far: Any
    delta: float
    may_overflow: bool
    unit: bool
    settled: Settled | None


def measure(part: Partition, sync: Sync, delta: float | None = None) -> Lengths:
    """Check the weights, and choose number type and bucket width for them. Collective.

    Raises
    ------
    GraphFileError
        A weight is negative or infinite.
    OptionError
        ``delta`` is not above 0.
    """
    ops, way = backend(Sssp, part.device), BY_PRIORITY.way(part, sync)
    weights, unit = part.weights, part.weights is None
    if weights is None:
        weights = part.storage.empty(part.num_local_edges, np.uint8)
        weights.fill(1)
    largest = refuse_unfit(part, sync, weights, "shortest paths")
    if weights.dtype == np.uint64:  # what int64 cannot hold is too long for any path
        weights = weights.clip(None, np.uint64(LONGEST)).astype(np.int64)
        largest = min(largest, LONGEST)
    largest = sync.highest(largest)
    small = weights.dtype.kind != "f" and weights.dtype.itemsize <= 4
    with np.errstate(over="ignore"):  # an infinite mean makes one bucket
        added = total(weights) if small else weights.sum(dtype=np.float64)
    mean = sync.total(float(added))[0] / max(part.num_edges, 1)
    longest = largest * part.num_nodes  # a shortest path has fewer edges than the graph has nodes
    if longest >= NARROW and weights.dtype.kind != "f":  # and is no longer than that with the fewest edges
        in_one_call = way_of(("whole", "peers"), part, sync, gpus_only=("whole", "peers"))
        longest = largest * (ops.most_hops(part, sync) if in_one_call else part.num_nodes)
    dtype = np.dtype("f8" if weights.dtype.kind == "f" else "i4" if longest < NARROW else "i8")
    far: Any = MIN.identity(dtype)
    if delta is not None and not delta > 0:
        raise OptionError(f"--delta {delta:g}: the width of a bucket must be above 0")
    settling = way_of(("whole", "peers", "rounds"), part, sync, gpus_only=("peers", "rounds"))
    settled = ops.settled_paths(part, sync, settling, weights, dtype) if settling else None
    scale = settled.BUCKET_SCALE if settled else ops.bucket_scale(part, way)
    scale = sync.highest(scale)  # in a mixed job ranks may differ
    delta = delta or scale * choose_delta(mean, part.num_edges / part.num_nodes)
    if dtype.kind != "f":
        delta = max(1, round(min(delta, far)))
    may_overflow = longest >= (sys.float_info.max if dtype.kind == "f" else LONGEST)
    return Lengths(weights, dtype, far, delta, may_overflow, unit, settled)


def refuse_unfit(part: Partition, sync: Sync, weights: np.ndarray, what: str) -> Any:
    """Raise if one of the weights, which ``what`` needs, is below 0 or infinite; their highest or 0. Collective."""
    lowest, highest = extremes(weights) if weights.size else (0, 0)
    with together(sync.comm):
        if lowest < 0 or highest == np.inf:
            edge = int(weights.argmin() if lowest < 0 else weights.argmax())
            part = part.on("cpu")
            source = part.gids[np.searchsorted(part.offsets, edge, side="right") - 1]
            raise GraphFileError(
                f"the edge {source:,} -> {part.gids[part.targets[edge]]:,} has the weight {weights[edge]}; "
                f"{what} need finite weights of 0 or more"
            )
    return highest


def refuse_overflow(part: Partition, sync: Sync, source: int, distances: Any, far: Any) -> None:
    """Raise if a node was not reached from ``source`` only because its distance does not fit. Collective.

    ``distances`` are those of all proxies, ``far`` where there is no path, the largest number of their type.
    """
    marks, own = Label(part, np.int32, 0, MAX), slice(0, part.num_masters)
    MARK_TOO_FAR(part, mark=marks, distance=distances, far=far.item())
    sync.reduce(marks, write="dst")
    lost = np.flatnonzero(to_host((marks.values[own] == 1) & (distances[own] == far)))
    limit, advice = ("1.8e308", "") if distances.dtype.kind == "f" else ("2^63 - 2", " or floats")
    with together(sync.comm):
        if lost.size:
            raise GraphFileError(
                f"the distance from node {source:,} to node {part.gids[lost[0]]:,} is above {limit}, "
                f"the largest that fits into 64 bits; use smaller weights{advice}"
            )
