"""Single-source shortest paths by delta-stepping, with buckets that all ranks agree on.

``mpirun -n 4 python -m apps.sssp graph.h5 --source 17 --delta 8 --verify --output distance.h5``
"""

import argparse
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from apps.harness import Answer, App, main
from apps.operators.interfaces import Frontier
from apps.operators.traversal.interfaces import GpuSssp, Sssp
from apps.verify.paths import verify_distances
from cusp.errors import GraphFileError, OptionError, raise_together
from cusp.launch import run_main
from cusp.partition import Partition
from cusp.runtime.devices import backend, to_host
from gluon.interfaces import Device
from gluon.label import Label
from gluon.reduction import MAX, MIN
from gluon.sync import Sync

LONGEST = 2**63 - 1


@dataclass(frozen=True)
class Lengths:
    """What does not depend on the source.

    Attributes
    ----------
    weights : (edges,) any number type
        None negative; 1 on every edge of a graph without weights.
    dtype : numpy type
        Of the distances: int32 where no path can be too long for it, else int64; float64 for floats.
    far : number
        Distance of what is not reached: infinity, or the largest integer of ``dtype``.
    delta : number
        Width of a bucket.
    may_overflow : bool
        A path could be too long for 64 bits.
    queue : Any
        Memory of the operators.
    """

    weights: Any
    dtype: np.dtype
    far: Any
    delta: float
    may_overflow: bool
    queue: Any

    def bucket_end(self, distance: float) -> float:
        """First distance that is not in the bucket of another one; above it even where floats are coarse."""
        if self.delta == np.inf:
            return self.far.item()
        end = distance // self.delta * self.delta + self.delta
        if self.dtype.kind == "f":
            return max(end, math.nextafter(distance, math.inf))
        return min(end, self.far.item())


def sssp(part: Partition, sync: Sync, source: int, lengths: Lengths) -> Answer:
    """Distance from ``source`` to every node along out-edges. Collective.

    Delta-stepping (Meyer and Sanders, J. Algorithms 2003), bulk-asynchronous: all ranks agree on the
    lowest bucket that is not empty, each drains its part of it without asking the others, then the
    distances are synchronised. A node is pending while its distance has fallen since its edges were
    last relaxed; the loop ends when no rank has any.

    Returns
    -------
    Answer
        ``distance`` of this rank's masters: int64 with -1, or float64 with inf, where there is no path.

    Raises
    ------
    GraphFileError
        A distance does not fit into 64 bits.
    """
    ops = backend(Sssp, part.device)
    far = lengths.far
    if backend(Frontier, part.device).drains(sync.comm.size):
        whole = backend(GpuSssp, part.device).shortest_paths(part, source, lengths)
        return _answer(part, sync, source, lengths, *whole)
    distances = Label(part, lengths.dtype, far, MIN)
    distances.write(source, 0)
    rounds = 0
    relaxed_at = distances.device.full(part.num_proxies, far, lengths.dtype)
    pending = distances.device.no_bits(part.num_proxies)
    if ops.settles(lengths.queue):
        rounds = _settle_and_pull(part, sync, lengths, distances, relaxed_at, pending)
        return _answer(part, sync, source, lengths, distances.values, rounds)
    while True:
        lowest = _lowest_pending(sync, lengths, distances, relaxed_at, pending)
        if lowest == far:
            break
        limit = lengths.dtype.type(lengths.bucket_end(lowest))
        ops.relax_below(limit, far, part.offsets, part.targets, lengths.weights, distances.values, relaxed_at,
                        pending, distances.updated, lengths.queue)  # fmt: skip
        sync(distances)
        rounds += 1
    return _answer(part, sync, source, lengths, distances.values, rounds)


def _settle_and_pull(
    part: Partition, sync: Sync, lengths: Lengths, distances: Label, relaxed_at: Any, pending: Any
) -> int:
    """Settle distances bucket by bucket until most edges belong to settled nodes; the others pull. Collective.

    A bucket relaxes, of every node that is settled, just the edges that lead into it, and of every node that falls into
    it, those that stay inside. So nothing travels but distances of its nodes. Returns the number of rounds.
    """
    ops, queue = backend(GpuSssp, part.device), lengths.queue
    far, values, rounds = lengths.far.item(), distances.values, 0

    def settle(high: Any) -> None:
        """Until nobody has anything left to do below ``high``."""
        nonlocal rounds
        while True:
            ops.settle_bucket(part, high, far, values, relaxed_at, pending, distances.updated, queue)
            sync(distances)
            rounds += 1
            if _lowest_pending(sync, lengths, distances, relaxed_at, pending) == far:
                return

    distances.swap_updated()  # each proxy of the source knows its distance
    low = 0
    for _ in range(ops.MOST_BUCKETS):
        high = low + lengths.delta if far - low > lengths.delta else far
        settled, lowest = ops.open_bucket(part, low, high, far, values, queue)
        (settled,), lowest = sync.total(settled), sync.lowest(lowest, lengths.dtype)
        if lowest == far:
            return rounds
        if settled >= ops.ENOUGH * part.num_edges:
            break
        if lowest < high:
            settle(high)
        low = max(high, lowest)
    ops.mark_reached(part, far, values, distances.updated)
    sync.broadcast(distances, read="dst")
    distances.swap_updated()  # what stands there is settled
    ops.pull(part, low, far, values, distances.updated, queue)
    sync.reduce(distances, write="src")
    sync.broadcast(distances, read="any")
    if _lowest_pending(sync, lengths, distances, relaxed_at, pending) != far:
        settle(far)
    return rounds


def _lowest_pending(sync: Sync, lengths: Lengths, distances: Label, relaxed_at: Any, pending: Any) -> Any:
    """Lowest distance of a pending node of any rank, ``lengths.far`` if there is none. Collective."""
    ops = backend(Sssp, distances.part.device)
    lowest = ops.find_pending(distances.swap_updated(), distances.values, relaxed_at, pending, lengths.far)
    return sync.lowest(lowest, lengths.dtype)


def _answer(part: Partition, sync: Sync, source: int, lengths: Lengths, distances: Any, rounds: Any) -> Answer:
    """Distances of this rank's masters, if all fit. Collective."""
    far = lengths.far
    if lengths.may_overflow:
        _refuse_overflow(part, sync, source, lengths, distances)
    values = distances[: part.num_masters]
    reached = values != far
    answer = values
    if lengths.dtype.kind != "f":
        answer = values.astype(np.int64)
        answer[~reached] = -1
    return Answer({"distance": answer}, reached, rounds)


def measure(part: Partition, sync: Sync, delta: float | None = None) -> Lengths:
    """Check the weights, and choose what fits them. Collective.

    Raises
    ------
    GraphFileError
        A weight is negative or infinite.
    OptionError
        ``delta`` is not above 0.
    """
    ops, device = backend(Sssp, part.device), backend(Device, part.device)
    weights = device.full(part.num_local_edges, 1, np.dtype(np.uint8)) if part.weights is None else part.weights
    _refuse_unfit(part, sync, weights)
    if weights.dtype == np.uint64:  # what int64 cannot hold is too long for any path
        weights = weights.clip(None, np.uint64(LONGEST)).astype(np.int64)
    largest = -sync.lowest(-weights.max().item() if weights.size else 0)
    with np.errstate(over="ignore"):  # an infinite mean makes one bucket
        total = float(weights.sum(dtype=np.float64))
    mean = sync.total(total)[0] / max(part.num_edges, 1)
    longest = largest * part.num_nodes  # a shortest path has fewer edges than the graph has nodes
    dtype = np.dtype("f8" if weights.dtype.kind == "f" else "i4" if longest < 2**31 - 1 else "i8")
    far = dtype.type(np.inf if dtype.kind == "f" else np.iinfo(dtype).max)
    if delta is not None and not delta > 0:
        raise OptionError(f"--delta {delta:g}: the width of a bucket must be above 0")
    queue = ops.plan_relaxing(part, sync, weights, dtype)
    delta = delta or ops.bucket_scale(queue, sync.comm.size) * choose_delta(mean, part.num_edges / part.num_nodes)
    if dtype.kind != "f":
        delta = max(1, round(min(delta, far)))
    may_overflow = dtype.kind != "f" and longest >= LONGEST
    return Lengths(weights, dtype, far, delta, may_overflow, queue)


def choose_delta(mean_weight: float, mean_degree: float) -> float:
    """Width of a bucket: the more out-edges a node has, the closer lie the distances of its neighbours."""
    return max(1.7 * mean_weight / max(mean_degree, 1.0), 1e-300)


def _refuse_unfit(part: Partition, sync: Sync, weights: np.ndarray) -> None:
    """Raise if a weight is below 0 or infinite. Collective."""
    error = None
    lowest, highest = (weights.min().item(), weights.max().item()) if weights.size else (0, 0)
    if lowest < 0 or highest == np.inf:
        edge = int(weights.argmin() if lowest < 0 else weights.argmax())
        part = part.on("cpu")
        source = part.gids[np.searchsorted(part.offsets, edge, side="right") - 1]
        error = GraphFileError(
            f"the edge {source:,} -> {part.gids[part.targets[edge]]:,} has the weight {weights[edge]}; "
            "shortest paths need finite weights of 0 or more"
        )
    raise_together(sync.comm, error)


def _refuse_overflow(part: Partition, sync: Sync, source: int, lengths: Lengths, distances: Any) -> None:
    """Raise if a node was not reached only because its distance does not fit. Collective."""
    ops = backend(Sssp, part.device)
    marks = Label(part, np.uint8, 0, MAX)
    ops.mark_too_far(part.offsets, part.targets, lengths.weights, distances, lengths.far, marks.values,
                     marks.updated)  # fmt: skip
    sync.reduce(marks, write="dst")
    own = slice(0, part.num_masters)
    lost = np.flatnonzero(to_host((marks.values[own] == 1) & (distances[own] == lengths.far)))
    error = None
    if lost.size:
        error = GraphFileError(
            f"the distance from node {source:,} to node {part.gids[lost[0]]:,} does not fit into 64 bits; "
            "use smaller weights or floats"
        )
    raise_together(sync.comm, error)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument("--delta", type=float, help="width of a bucket (default: chosen from weights and degrees)")


APP = App(
    name="sssp",
    summary="single-source shortest paths by delta-stepping",
    prepare=lambda part, sync, options: measure(part, sync, options.delta),
    run=lambda part, sync, source, lengths, options: sssp(part, sync, source, lengths),
    verify=lambda part, sync, source, answer, lengths, options: verify_distances(
        part, sync, source, answer.labels["distance"], lengths.weights
    ),
    add_options=add_options,
    weighted=True,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
