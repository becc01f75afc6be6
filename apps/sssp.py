"""Single-source shortest paths by delta-stepping, with buckets that all ranks agree on.

``mpirun -n 4 python -m apps.sssp graph.h5 --source 17 --delta 8 --verify --output distance.h5``

>>> from cusp import partition_graph, sssp
>>> graph = partition_graph(([0, 0, 1], [1, 2, 2], [2, 9, 3]))  # sources, targets, weights
>>> sssp(graph, source=0).distance
array([0, 2, 5])
"""

import argparse
import functools
import sys
from typing import Any

import numpy as np

from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.harness import Answer, App, main
from cusp.apps.shared.lengths import Lengths, measure
from cusp.apps.verify.paths import verify_distances
from cusp.errors import GraphFileError, together
from cusp.launch import run_main
from cusp.partition import Partition
from cusp.runtime.devices import to_host, xp_of
from gluon.label import Label
from gluon.reduction import MAX, MIN
from gluon.sync import Sync

MARK_TOO_FAR = EdgeOperator("1", into="dst.mark", where="src.distance < far and weight >= far - src.distance")


def sssp(part: Partition, sync: Sync, source: int, lengths: Lengths) -> Answer:
    """Distance from ``source`` to every node along out-edges. Collective.

    Delta-stepping (Meyer and Sanders, J. Algorithms 2003), bulk-asynchronous: all ranks agree on the lowest bucket that
    is not empty, each drains its part of it without waiting for the others, then the distances are synchronised.

    Parameters
    ----------
    lengths : Lengths
        What :func:`~cusp.apps.shared.lengths.measure` returned for this partition.

    Returns
    -------
    Answer
        ``distance`` of this rank's masters: int64 with -1, or float64 with inf, where there is no path.

    Raises
    ------
    GraphFileError
        A distance is above 2^63 - 2: the largest int64 stands for no path.
    """
    return _answer(part, sync, source, lengths, *distances_from(part, sync, source, lengths))


def distances_from(part: Partition, sync: Sync, source: int, lengths: Lengths) -> tuple[Any, Any]:
    """Distances of all proxies, ``lengths.far`` where there is no path, and rounds. Collective.

    Those of mirrors may be stale.
    """
    relax = _operator(lengths.unit, min(lengths.delta, sys.float_info.max))
    if lengths.settled is not None:
        return lengths.settled.run(sync, source, lengths, relax.drain)  # type: ignore[no-any-return]
    distances = Label(part, lengths.dtype, lengths.far, MIN)
    distances.write(source, 0)
    return distances.values, relax.until_quiet(part, sync, distance=distances)


@functools.cache
def _operator(unit: bool, delta: float) -> EdgeOperator:
    """The operator that shortest paths are."""
    expression = "src.distance + 1" if unit else "src.distance + weight"
    return EdgeOperator(expression, "dst.distance", priority="distance", delta=delta)


def _answer(part: Partition, sync: Sync, source: int, lengths: Lengths, distances: Any, rounds: Any) -> Answer:
    """Distances of this rank's masters, if all fit. Collective."""
    if lengths.may_overflow:
        _refuse_overflow(part, sync, source, lengths, distances)
    values, unreached = distances[: part.num_masters], lengths.far
    if lengths.dtype.kind != "f":
        values, unreached = xp_of(part.device).where(values == lengths.far, np.int64(-1), values), -1
    return Answer({"distance": values}, unreached, rounds)


def _refuse_overflow(part: Partition, sync: Sync, source: int, lengths: Lengths, distances: Any) -> None:
    """Raise if a node was not reached only because its distance does not fit. Collective."""
    marks, far = Label(part, np.int32, 0, MAX), int(lengths.far)
    MARK_TOO_FAR(part, mark=marks, distance=distances, far=far)
    sync.reduce(marks, write="dst")
    own = slice(0, part.num_masters)
    lost = np.flatnonzero(to_host((marks.values[own] == 1) & (distances[own] == lengths.far)))
    with together(sync.comm):
        if lost.size:
            raise GraphFileError(
                f"the distance from node {source:,} to node {part.gids[lost[0]]:,} is above 2^63 - 2, "
                "the largest that fits into 64 bits; use smaller weights or floats"
            )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument("--delta", type=float, help="width of a bucket (default: chosen from weights and degrees)")


APP = App(
    name="sssp",
    summary="single-source shortest paths by delta-stepping",
    prepare=lambda part, sync, options: measure(part, sync, options.delta),
    run=lambda part, sync, source, lengths, options: sssp(part, sync, source, lengths),
    verify=lambda part, sync, source, answer, lengths, options: verify_distances(part, sync, source, **answer.labels),
    add_options=add_options,
    weighted=True,
    needs_rounds=lambda options: "",
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
