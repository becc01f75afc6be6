"""Widest paths: the width of the widest path from a source to every node. A path is as wide as its narrowest edge.

``mpirun -n 4 python -m apps.widest graph.h5 --source 17 --verify --output width.h5``

>>> from cusp import partition_graph, widest
>>> graph = partition_graph(([0, 0, 1], [1, 2, 2], [2, 9, 3]))  # sources, targets, weights
>>> widest(graph, source=0).width[1:]
array([2, 9])
"""

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.search import WIDTHS
from cusp.apps.verify.paths import verify_widths


def widest(part: Partition, sync: Sync, source: int) -> Answer:
    """Width of the widest path from ``source`` to every node along out-edges. Collective.

    Weights of any sign are widths of edges; without weights every edge has the width 1.

    Returns
    -------
    Answer
        ``width`` of this rank's masters, int64, or float64 if the weights are floats: the lowest number of the type
        (-inf) where there is no path, the largest (inf) at the source. A uint64 weight above all int64 counts as the
        largest int64.
    """
    real = part.weights is not None and part.weights.dtype.kind == "f"
    lowest, largest = (-np.inf, np.inf) if real else (-(2**63), 2**63 - 1)
    width, rounds = WIDTHS.run(part, sync, {source: largest}, np.float64 if real else np.int64)
    return Answer({"width": width.masters()}, lowest, rounds)


APP = App(
    name="widest",
    summary="widest paths from a source: the largest possible minimum of the weights on a path",
    run=lambda part, sync, source, prepared, options: widest(part, sync, source),
    verify=lambda part, sync, source, answer, *rest: verify_widths(part, sync, source, **answer.labels),
    weighted=True,
    needs_rounds=lambda options: "",
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
