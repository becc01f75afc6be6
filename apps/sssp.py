"""Single-source shortest paths by delta-stepping, with buckets that all ranks agree on.

``mpirun -n 4 python -m apps.sssp graph.h5 --source 17 --delta 8 --verify --output distance.h5``
"""

import argparse
from dataclasses import dataclass

import numpy as np

from apps import operators_cpu as ops
from apps.harness import Answer, App, main
from apps.verify import verify_distances
from cusp.errors import GraphFileError, OptionError, raise_together
from cusp.launch import run_main
from cusp.partition import Partition
from gluon.label import Label
from gluon.reduction import MIN
from gluon.sync import Sync


@dataclass(frozen=True)
class Lengths:
    """What does not depend on the source.

    Attributes
    ----------
    weights : (edges,) any number type
        None negative; 1 on every edge of a graph without weights.
    dtype : numpy type
        Of the distances: int32 where no path can be too long for it, else int64; float64 for floats.
    delta : number
        Width of a bucket.
    """

    weights: np.ndarray
    dtype: np.dtype
    delta: float


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
    far = lengths.dtype.type(np.inf if lengths.dtype.kind == "f" else np.iinfo(lengths.dtype).max)
    distances = Label(part, lengths.dtype, far, MIN)
    distances.write(source, 0)
    relaxed_at = np.full_like(distances.values, far)
    pending = np.zeros_like(distances.updated)
    queue = np.empty(part.num_proxies + 1, np.int32)
    rounds = 0
    while True:
        ops.mark_lowered(distances.take_updated(), distances.values, relaxed_at, pending)
        lowest = sync.lowest(ops.lowest_pending(pending, distances.values, far))
        if lowest == far:
            break
        if lowest < 0:  # a sum that wraps is negative, and MIN keeps it
            raise GraphFileError(f"a distance from node {source:,} does not fit into 64 bits; use smaller weights")
        limit = lengths.dtype.type(min(lowest // lengths.delta * lengths.delta + lengths.delta, far))
        ops.relax_below(limit, part.offsets, part.targets, lengths.weights, distances.values, relaxed_at, pending,
                        distances.updated, queue)  # fmt: skip
        sync(distances)
        rounds += 1
    values = distances.values[: part.num_masters]
    reached = values != far
    answer = values if lengths.dtype.kind == "f" else np.where(reached, values, -1).astype(np.int64)
    return Answer({"distance": answer}, reached, rounds)


def measure(part: Partition, sync: Sync, delta: float | None = None) -> Lengths:
    """Check the weights, and choose what fits them. Collective.

    Raises
    ------
    GraphFileError
        A weight is negative.
    OptionError
        ``delta`` is not above 0.
    """
    weights = np.ones(part.num_local_edges, np.uint8) if part.weights is None else part.weights
    _refuse_negative(part, sync, weights)
    largest = -sync.lowest(-float(weights.max()) if weights.size else 0.0)
    mean = sync.total(weights.sum(dtype=np.float64))[0] / max(part.num_edges, 1)
    fits = largest * part.num_nodes < 2**31 - 1  # a shortest path has fewer edges than the graph has nodes
    dtype = np.dtype("f8" if weights.dtype.kind == "f" else "i4" if fits else "i8")
    if delta is None:
        delta = choose_delta(mean, part.num_edges / part.num_nodes)
        delta = delta if dtype.kind == "f" else max(1, round(delta))
    elif not delta > 0:
        raise OptionError(f"--delta {delta:g}: the width of a bucket must be above 0")
    return Lengths(weights, dtype, delta if dtype.kind == "f" else max(1, int(delta)))


def choose_delta(mean_weight: float, mean_degree: float) -> float:
    """Width of a bucket: the more out-edges a node has, the closer lie the distances of its neighbours."""
    return max(2 * mean_weight / max(mean_degree, 1.0), np.finfo(np.float64).tiny)


def _refuse_negative(part: Partition, sync: Sync, weights: np.ndarray) -> None:
    error = None
    if weights.dtype.kind != "u" and weights.size and weights.min() < 0:
        edge = int(np.argmin(weights))
        source = part.gids[np.searchsorted(part.offsets, edge, side="right") - 1]
        error = GraphFileError(
            f"the edge {source:,} -> {part.gids[part.targets[edge]]:,} has the weight {weights[edge]}; "
            "shortest paths need weights of 0 or more"
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
