"""Communities: groups of nodes with more edges among themselves than to others, by Louvain, Leiden, label propagation.

``mpirun -n 4 python -m apps.communities graph.h5 --algorithm louvain --verify --output communities.h5``

>>> from cusp import communities, partition_graph
>>> graph = partition_graph(([0, 1, 2, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5, 3]))
>>> communities(graph).community
array([0, 0, 0, 3, 3, 3])
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from cusp import Answer, App, Checkpoint, Partition, Sync, main, run_main
from cusp.apps.operators.interfaces import SMALL
from cusp.apps.operators.ways import way_of
from cusp.apps.run.cli import add_checkpoint_options
from cusp.apps.shared.communities import graph as levels
from cusp.apps.shared.communities import kept
from cusp.apps.shared.communities.moving import begin
from cusp.apps.shared.communities.sweeps import refine, sweep_once, take_apart
from cusp.apps.shared.graphs.undirected import as_undirected
from cusp.apps.shared.splitmix64 import key_of
from cusp.apps.verify.communities import verify_communities
from cusp.errors import GraphFileError, together
from cusp.program.cli import between

LEAST_GAIN = 1e-4  # of modularity, in the sweeps of a level, and in a level
LEAST_SHARE = 0.05  # of what a level has gained, in a sweep: levels above do the rest on smaller graphs
MOST_SWEEPS = 100
LOWEST, HIGHEST = 1e-9, 1e9  # resolutions
STILL = 100_000  # label propagation ends when no more than one in this many nodes has moved


def label_propagation(level: levels.Level, seed: int = 1, checkpoint: Checkpoint | None = None) -> tuple[Any, int]:
    """Nodes join the community that most of their neighbours, by weight, are in, until hardly any moves. Collective.

    Raghavan, Albert and Kumara, Phys. Rev. E 76, 2007. Nodes move in turns: all at once, neighbours would swap
    communities for ever (Cordasco and Gargano, BASNA 2010).

    Returns
    -------
    names, sweeps
        (proxies,) names of communities, see :mod:`cusp.apps.shared.communities.graph`.
    """
    names, sweep, restless = None, 0, None
    if checkpoint and checkpoint.goes_on:
        sweep = checkpoint.rounds
        names, restless = kept.take_up(checkpoint, level, level, "now"), kept.flags(checkpoint, level, level)
    moving = begin(level, names, restless, gravity=False)
    while sweep < MOST_SWEEPS:
        moved = sweep_once(moving, seed + sweep)
        sweep += 1
        if moved * STILL <= level.graph.num_nodes:
            break
        if checkpoint and checkpoint.is_due(level.sync):
            labels = {"now": moving.groups.of_proxies, "restless": moving.restless}
            checkpoint.write(sweep, {name: kept.to_keep(level, level, values) for name, values in labels.items()})
    return moving.groups.of_proxies, sweep


def louvain(
    level: levels.Level, seed: int = 1, checkpoint: Checkpoint | None = None, refines: bool = False
) -> tuple[Any, int]:
    """Nodes move to where modularity grows most, then communities move as nodes, until it stops growing. Collective.

    Blondel et al., J. Stat. Mech. 2008; on several ranks, Ghosh et al. (Vite, IPDPS 2018). A node knows the strengths
    of communities as they were before its turn, so modularity may fall in a sweep: the best one seen counts. Unlike
    with Leiden, a community may fall apart when the node that connected it leaves.

    Parameters
    ----------
    refines : bool
        See :func:`leiden`.
    """
    first, sweeps = level, 0
    moves: kept.Moves = []  # of the levels before
    if checkpoint and checkpoint.goes_on:
        level, moves, climb = kept.take_up_climb(checkpoint, first)
        sweeps = checkpoint.rounds - climb.sweeps
    else:
        climb = kept.begin(level)

    def keep() -> None:
        if checkpoint and checkpoint.is_due(first.sync):
            labels, facts = kept.climb_to_keep(first, level, moves, climb)
            checkpoint.write(sweeps + climb.sweeps, labels, **facts)

    while True:
        _move(climb, seed + sweeps, keep)
        sweeps += climb.sweeps
        at_top = climb.reached < climb.start + LEAST_GAIN
        if climb.down or (at_top and not refines):
            break
        if at_top:
            level, names, moves = first, kept.come_down(moves, level, climb.best), []
        elif refines:
            level, names = refine(moves, level, climb.best, seed + sweeps)
        else:
            level, names = kept.go_up(moves, level, climb.best.of_proxies), None
        climb = kept.begin(level, names, climb, int(at_top))
    return take_apart(level, climb.best) if refines else kept.come_down(moves, level, climb.best), sweeps


def leiden(level: levels.Level, seed: int = 1, checkpoint: Checkpoint | None = None) -> tuple[Any, int]:
    """Louvain in which refined communities move as nodes, and in the end those of the graph once more. Collective.

    Traag, Waltman and van Eck, Scientific Reports 9, 2019. Nodes merge where modularity grows most, not at random; that
    the weight between them is not below chance follows, so nothing else is asked of them. There is one climb: moves of
    single nodes after it gain most of what a second one does. What is not connected then is taken apart.
    """
    return louvain(level, seed, checkpoint, refines=True)


def _move(climb: kept.Climb, seed: int, keep: Callable[[], None]) -> None:
    """Sweep until modularity hardly grows; ``keep`` is called between two sweeps. Collective.

    The first sweep may lose: single nodes know least of where their neighbours go.
    """
    while climb.sweeps < MOST_SWEEPS:
        moved = sweep_once(climb.moving, seed + climb.sweeps)
        climb.sweeps += 1
        reached = climb.moving.modularity
        enough = climb.reached + max(LEAST_GAIN, LEAST_SHARE * (climb.reached - climb.start))
        if reached > climb.reached:
            climb.best, climb.inside, climb.reached = climb.moving.now, climb.moving.inside, reached
        if moved == 0 or (climb.sweeps > 1 and reached < enough):
            break
        keep()


ALGORITHMS = {"louvain": louvain, "leiden": leiden, "label-propagation": label_propagation}


def communities(
    part: Partition, sync: Sync, algorithm: str = "louvain", graph: Partition | None = None, seed: int = 1,
    resolution: float = 1.0, checkpoint: Checkpoint | None = None,
) -> Answer:  # fmt: skip
    """Communities of the graph without directions and loops; weights, if there are any, are summed. Collective.

    Parameters
    ----------
    algorithm : {'louvain', 'leiden', 'label-propagation'}
    graph : Partition, optional
        What :func:`~cusp.apps.shared.graphs.undirected.as_undirected` makes of ``part``, if that has been done.
    seed : int
        Of the turns of nodes, and of choices among equals.
    resolution : float
        Of modularity: above 1 for more and smaller communities, below for fewer.
    checkpoint : Checkpoint, optional
        Where to go on from, and to write to.

    Returns
    -------
    Answer
        ``community`` (int64) of this rank's masters: the smallest global id in it. figures: ``modularity``,
        ``communities``, their number.

    Raises
    ------
    GraphFileError
        A weight is negative or infinite.
    """
    graph = graph or as_undirected(part, sync.comm)
    _refuse_unfit(graph, sync)
    graph = levels.round_weights(graph, sync)
    most = SMALL if checkpoint is None and way_of(("copies",), graph, sync) else 0
    level = levels.make_level(graph, sync, resolution, most)
    names, sweeps = ALGORITHMS[algorithm](level, key_of(seed), checkpoint)
    groups = levels.number(level, names)
    figures = {"modularity": levels.modularity(level, groups), "communities": levels.count_communities(level, groups)}
    found = levels.smallest_members(level, groups)
    if level.names is not None:
        found = found[level.graph.lid_map.lids(graph.gids[: graph.num_masters])]
    return Answer({"community": found}, None, sweeps, figures)


def _refuse_unfit(graph: Partition, sync: Sync) -> None:
    """Raise if a weight is below 0 or infinite. Collective."""
    weights = graph.weights if graph.weights is not None and graph.weights.size else np.zeros(1)
    lowest, highest = float(weights.min()), float(weights.max())
    with together(sync.comm):
        if not (lowest >= 0 and highest < np.inf):
            raise GraphFileError(
                f"weights of both directions between two nodes are between {lowest} and {highest}; communities need "
                "0 to 1.8e308"
            )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument(
        "--algorithm", choices=tuple(ALGORITHMS), default="louvain",
        help="louvain seeks a high modularity, leiden also connected communities, label-propagation is quick "
        "(default: louvain)",
    )  # fmt: skip
    parser.add_argument(
        "--resolution", type=between(LOWEST, HIGHEST), default=1.0, metavar="G",
        help="of modularity: above 1 for more and smaller communities, below for fewer (default: 1)",
    )  # fmt: skip
    add_checkpoint_options(parser)


APP = App(
    name="communities",
    summary="communities by Louvain, Leiden or label propagation, and their modularity",
    prepare=lambda part, sync, options: as_undirected(part, sync.comm),
    run=lambda part, sync, _, graph, options: communities(
        part, sync, options.algorithm, graph, options.seed, options.resolution, options.checkpoint
    ),
    nodes=("community",),
    verify=lambda part, sync, _, answer, graph, options: verify_communities(graph, sync, answer, options),
    add_options=add_options,
    needs_source=False,
    weighted=True,
    seeded=True,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
