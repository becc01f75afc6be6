"""Katz centrality: how many walks end at each node, where each further edge makes a walk count less.

``mpirun -n 4 python -m apps.katz graph.h5 --alpha 0.01 --verify --output katz.h5``

>>> from cusp import katz, partition_graph
>>> graph = partition_graph(([0, 1, 2, 0], [1, 2, 3, 3]))
>>> katz(graph, alpha=0.5, unnormalized=True).katz
array([1.   , 1.5  , 1.75 , 2.375])
"""

import argparse

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.shared.neighbour_sums import ITERATED, Neighbours, Sums, add_options, prepare_sums, repeat
from cusp.apps.verify.centrality import verify_katz
from cusp.kernels.arrays import extremes, mapped, total_of_floats
from cusp.program.cli import between
from cusp.runtime.devices import xp_of


def katz(
    part: Partition, sync: Sync, neighbours: Neighbours, alpha: float | None = None, beta: float = 1.0,
    unnormalized: bool = False, tolerance: float = 1e-6, iterations: int = 1000,
) -> Answer:  # fmt: skip
    """What each node has of its own, ``beta``, and ``alpha`` times what its in-neighbours have together. Collective.

    Katz, Psychometrika 18 (1953). ``alpha`` has to be below 1 / the largest eigenvalue; the default is.

    Returns
    -------
    Answer
        ``katz`` (float64) of this rank's masters, whose squares add up to 1 over all ranks unless ``unnormalized``;
        figures: ``alpha``; ``l1_change``, by one more iteration, at a node on average, as a multiple of ``beta``.

    Raises
    ------
    ConvergenceError
        On every rank: ``alpha`` is too large, or ``iterations`` too few.
    """
    sums, own = Sums(part, sync, neighbours), 1 / part.num_nodes  # the sum of all own values is 1
    if alpha is None:  # no eigenvalue is above the largest of these sums
        ones = sums.of(1.0)
        alpha = 0.85 / (sync.highest(extremes(ones)[1] if ones.size else 0.0) or 1.0)
    values, rounds, change = repeat(
        sync, lambda values: mapped(lambda got: own + alpha * got, sums.of(values)),
        xp_of(part.device).full(part.num_masters, own), tolerance, iterations, f"--alpha {alpha:g}",
    )  # fmt: skip
    (squares,) = sync.total(total_of_floats(mapped(np.square, values)))
    scale = beta / own if unnormalized else squares**-0.5
    return Answer({"katz": values * scale}, None, rounds, {"alpha": alpha, "l1_change": change})


def add_katz_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    number, node = between(1e-300, 1e100), "worth of a node itself, if --unnormalized (default: 1)"
    edge = "worth of an edge, below 1 / the largest eigenvalue (default: 0.85 / the largest weight into a node in all)"
    parser.add_argument("--alpha", type=number, metavar="A", help=edge)
    parser.add_argument("--beta", type=number, default=1.0, metavar="B", help=node)
    parser.add_argument("--unnormalized", action="store_true", help="do not make the squares add up to 1")
    add_options(parser, 1e-6, "the mean, in units of --beta,")


APP = App(
    name="katz",
    summary="Katz centrality of every node",
    prepare=prepare_sums,
    run=lambda part, sync, source, neighbours, options: katz(
        part, sync, neighbours, options.alpha, options.beta, options.unnormalized, options.tolerance, options.iterations
    ),
    verify=lambda part, sync, source, answer, neighbours, options: verify_katz(
        part, sync, answer, neighbours.weights is not None, options
    ),
    add_options=add_katz_options,
    **ITERATED,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
