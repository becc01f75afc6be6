"""Personalized PageRank from each of many nodes: which others a random walk is at most often, if it starts anew there.

``mpirun -n 4 python -m apps.ppr graph.h5 --seeds users.txt --top 20 --verify --output near.csv``

>>> from cusp import partition_graph, ppr
>>> graph = partition_graph(([0, 1, 2, 2], [1, 2, 0, 3]))
>>> found = ppr(graph, seeds=[0, 3], top=3)
>>> found.node, found.pagerank.round(3)
(array([[ 0,  1,  2],
       [ 3, -1, -1]]), array([[0.347, 0.295, 0.251],
       [1.   , 0.   , 0.   ]]))
"""

import argparse
from functools import partial
from typing import NamedTuple

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.operators.sums.interfaces import CpuPagerank, Steps
from cusp.apps.pagerank import FEW, LEAST, check_sums, pagerank
from cusp.apps.shared.graphs.whole_graph import copy_for
from cusp.apps.shared.walk import Walk, add_walk_options, check_tolerance, make_walk, starts_at
from cusp.apps.verify.centrality import verify_best
from cusp.program.cli import one_node, positive
from cusp.program.warm_up import FAR_NODE
from cusp.runtime import progress
from cusp.runtime.devices import backend, to_host
from cusp.runtime.mpi import MPI

AT_ONCE = 64  # walks in one call
Limits = tuple[float, float, int | None]  # damping, tolerance, iterations


class Wanted(NamedTuple):
    """Where to walk.

    Attributes
    ----------
    part : Partition
        The graph; without weights, unless they count.
    walked : Partition
        The same; or a copy of all of it, in which each rank walks from some of the seeds by itself.
    sync : Sync
        Of ``walked``.
    walk : Walk
    """

    part: Partition
    walked: Partition
    sync: Sync
    walk: Walk


class Best(NamedTuple):
    """Of each seed, the nodes of the highest ranks that this rank knows, -1 behind them, their ranks, and of all ranks
    that it knows the sum; then the most iterations and the largest last change."""

    node: np.ndarray
    ranks: np.ndarray
    sums: np.ndarray
    last: list[float]

    def add(self, place: int, gids: np.ndarray, ranks: np.ndarray, rounds: int, change: float) -> None:
        """What a walk from the seed in this place has found."""
        top = self.node.shape[1]
        least = np.partition(ranks, -top)[-top] if ranks.size > top else 0
        some = np.flatnonzero((ranks >= least) & (ranks > 0))
        some = some[np.lexsort((gids[some], -ranks[some]))[:top]]
        self.node[place, : some.size], self.ranks[place, : some.size] = gids[some], ranks[some]
        self.sums[place] = ranks.sum()
        self.last[:] = max(self.last[0], rounds), max(self.last[1], change)

    def joined(self, comm: MPI.Intracomm) -> tuple[np.ndarray, np.ndarray]:
        """The nodes and ranks of all ranks. Collective."""
        node, ranks = (np.concatenate(comm.allgather(each), axis=1) for each in self[:2])
        order = np.lexsort((node, -ranks), axis=1)[:, : self.node.shape[1]]
        return np.take_along_axis(node, order, 1), np.take_along_axis(ranks, order, 1)


def ppr(sync: Sync, wanted: Wanted, seeds: list[int], top: int, damping: float, tolerance: float,
        iterations: int | None = None) -> Answer:  # fmt: skip
    """The nodes of the highest ranks for walks that start at each seed (Haveliwala, WWW 2002). Collective.

    On CPUs that have the whole graph, each walk is that of one thread, and only looks at nodes that it has reached, as
    long as they are few. Elsewhere one walk follows the other.

    Returns
    -------
    Answer
        The table has ``seed`` and, (seeds, top), by descending rank, ``node`` (int64) and ``pagerank`` (float64); -1
        and 0 where no more nodes have a rank above 0. Figures: the number of ``seeds``; ``l1_change``, of all walks the
        largest change in the last iteration, all nodes added up.
    """
    distinct, places = np.unique(seeds, return_inverse=True)
    size, alone = (distinct.size, min(top, wanted.part.num_nodes)), wanted.sync.comm.size < sync.comm.size
    best = Best(np.full(size, -1), np.zeros(size), np.zeros(size[0]), [0, 0.0])
    own = np.arange(size[0])[slice(sync.comm.rank, None, sync.comm.size) if alone else slice(None)]
    limits = damping, tolerance, iterations
    if wanted.walked.device == "cpu" and wanted.walked.num_ranks == 1:
        _walk_alone(wanted, distinct, own, limits, best)
    else:
        _walk_together(wanted, distinct, own, limits, best)
    sums = sync.comm.allreduce(best.sums)
    check_sums(sync, sums)
    node, ranks = best.joined(sync.comm)
    table = {"seed": np.array(seeds)[:, None], "node": node[places], "pagerank": ranks[places]}
    rounds, change = (sync.highest(value) for value in best.last)
    return Answer({}, None, rounds, {"seeds": size[0], "l1_change": change}, table=table)


def _walk_alone(wanted: Wanted, seeds: np.ndarray, own: np.ndarray, limits: Limits, best: Best) -> None:
    """Walk from the seeds in these places, each on one thread."""
    part, walk, damping = wanted.walked, wanted.walk, limits[0]
    assert walk.neighbours is not None
    into, factors = walk.neighbours.edges, np.zeros(part.num_nodes)
    factors[: walk.strengths.size] = damping / walk.strengths
    steps = Steps(part.offsets, part.targets, into.offsets, into.sources, walk.neighbours.weights, factors)
    ops, starts = backend(CpuPagerank, "cpu"), part.lid_map.lids(seeds).astype(np.int64)

    def visit(first: int, place: int, nodes: np.ndarray, ranks: np.ndarray, rounds: int, change: float) -> None:
        best.add(own[first + place], part.gids[nodes], ranks[nodes], rounds, change)

    for first in range(0, own.size, AT_ONCE):
        ops.ranks_from(steps, starts[own[first : first + AT_ONCE]], *limits, partial(visit, first))
        progress.update(min(first + AT_ONCE, own.size), own.size, "seed")


def _walk_together(wanted: Wanted, seeds: np.ndarray, own: np.ndarray, limits: Limits, best: Best) -> None:
    """Walk from one seed after the other. Collective, of those who walk together."""
    part, sync = wanted.walked, wanted.sync
    gids = to_host(part.gids[: part.num_masters])
    for number, place in enumerate(own.tolist()):
        walk = wanted.walk._replace(teleport=starts_at(part, sync, {int(seeds[place]): 1.0}))
        answer = pagerank(part, sync, walk, *limits)
        ranks = to_host(answer.labels["pagerank"])
        best.add(place, gids, ranks, int(answer.rounds), answer.figures["l1_change"])
        progress.update(number + 1, own.size, "seed")


def prepare(part: Partition, sync: Sync, options: argparse.Namespace) -> Wanted:
    """Choose where to walk. Collective.

    Raises
    ------
    OptionError
        On every rank: a seed is not a node; or a tolerance that is not reached.
    GraphFileError
        On every rank: a weight is negative or infinite.
    """
    for seed in options.seeds:
        part.check_node(seed, "--seeds")
    check_tolerance(options, LEAST["float64"], "ranks")
    weighted = not options.unweighted and sync.total(int(part.weights is None)) == (0,)
    part = part if weighted else part.without_weights()
    walked, alone = copy_for(part, sync, len(set(options.seeds))) or (part, sync)
    return Wanted(part, walked, alone, make_walk(walked, alone, None, pull=True, weighted=weighted))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument(
        "--seeds", nargs="+", type=one_node, required=True, metavar="NODE",
        help="where walks start, each at one: nodes by name or number, or a file with one a line",
    )  # fmt: skip
    parser.add_argument(
        "--top", type=positive, default=10, metavar="K", help="how many nodes of the highest ranks (default: 10)"
    )
    add_walk_options(parser)


APP = App(
    name="ppr",
    summary="personalized PageRank: the highest ranks for walks from each of many nodes",
    prepare=prepare,
    run=lambda part, sync, source, wanted, options: ppr(
        sync, wanted, options.seeds, options.top, options.damping, options.tolerance, options.iterations
    ),
    verify=lambda part, sync, source, answer, wanted, options: verify_best(wanted.part, sync, answer, options),
    nodes=("seed", "node"),
    add_options=add_options,
    needs_csc=lambda options, symmetric: not symmetric,
    needs_source=False,
    weighted=True,
    rehearsed={"seeds": [FAR_NODE], "iterations": lambda given: given and min(given, FEW)},
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
