"""Single-source shortest paths by delta-stepping, with buckets that all ranks agree on.

``mpirun -n 4 python -m apps.sssp graph.h5 --source 17 --delta 8 --verify --output distance.h5``

>>> from cusp import partition_graph, sssp
>>> graph = partition_graph(([0, 0, 1], [1, 2, 2], [2, 9, 3]))  # sources, targets, weights
>>> sssp(graph, source=0).distance
array([0, 2, 5])
"""

import argparse

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.run.former import REHEARSED, Former, add_from_option
from cusp.apps.search import distances_from
from cusp.apps.shared.lengths import Lengths, measure, refuse_overflow
from cusp.apps.verify.paths import verify_distances
from cusp.runtime.devices import backend
from gluon.interfaces import Device


def sssp(part: Partition, sync: Sync, source: int, lengths: Lengths, former: Former | None = None) -> Answer:
    """Distance from ``source`` to every node along out-edges. Collective.

    Delta-stepping (Meyer and Sanders, J. Algorithms 2003), bulk-asynchronous: all ranks agree on the lowest bucket that
    is not empty, each drains its part of it without waiting for the others, then the distances are synchronised.

    Parameters
    ----------
    lengths : Lengths
        What :func:`~cusp.apps.shared.lengths.measure` returned for this partition.
    former : Former, optional
        The distances in the graph before it grew, from which to go on: then only edges that shorten paths are followed.

    Returns
    -------
    Answer
        ``distance`` of this rank's masters: int64 with -1, or float64 with inf, where there is no path.

    Raises
    ------
    GraphFileError
        A distance is above 2^63 - 2, or infinite: the largest int64, and infinity, stand for no path.
    """
    distances, rounds = distances_from(part, sync, source, lengths, former)
    if lengths.may_overflow:
        refuse_overflow(part, sync, source, distances, lengths.far)
    values, unreached = distances[: part.num_masters], lengths.far
    if lengths.dtype.kind != "f":
        values, unreached = backend(Device, part.device).signed(values, lengths.far, np.dtype(np.int64)), -1
    return Answer({"distance": values}, unreached, rounds)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument("--delta", type=float, help="width of a bucket (default: chosen from weights and degrees)")
    add_from_option(parser)


APP = App(
    name="sssp",
    summary="single-source shortest paths by delta-stepping",
    prepare=lambda part, sync, options: measure(part, sync, options.delta),
    run=lambda part, sync, source, lengths, options: sssp(part, sync, source, lengths, options.start),
    verify=lambda part, sync, source, answer, *rest: verify_distances(part, sync, source, answer.labels["distance"]),
    add_options=add_options,
    rehearsed=REHEARSED,
    weighted=True,
    needs_rounds=lambda options: "",
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
