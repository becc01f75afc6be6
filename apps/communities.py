"""Communities: groups of nodes with more edges among themselves than to others, by Louvain, Leiden or label propagation.

``mpirun -n 4 python -m apps.communities graph.h5 --algorithm louvain --verify --output communities.h5``

>>> from cusp import communities, partition_graph
>>> graph = partition_graph(([0, 1, 2, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5, 3]))
>>> communities(graph).community
array([0, 0, 0, 3, 3, 3])
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cusp import Answer, App, Checkpoint, Label, Partition, Sync, main, run_main
from cusp.apps.operators.structure import interfaces
from cusp.apps.run.cli import add_checkpoint_options
from cusp.apps.shared import community_graph as levels
from cusp.apps.shared import kept_communities as kept
from cusp.apps.shared import refined_communities as refinement
from cusp.apps.shared.splitmix64 import key_of, splitmix64
from cusp.apps.shared.undirected import as_undirected
from cusp.apps.verify.communities import verify_communities
from cusp.errors import GraphFileError, together
from cusp.kernels.arrays import filled_rows, mapped, total
from cusp.program.cli import between
from cusp.runtime.devices import backend, xp_of

TURNS = 4  # per sweep: in each, some of the nodes look for a better community while the others stay
TIES = 8  # turns of label propagation: each breaks ties in its own way, or one community would win them all and spread
LEAST_GAIN = 1e-4  # of modularity, in the sweeps of a level, and in a level
LEAST_SHARE = 1e-2  # of what a level has gained, in a sweep: levels above do the rest on smaller graphs
PATIENCE = 2  # sweeps that gain less, until a level ends
MOST_SWEEPS = 100
LOWEST, HIGHEST = 1e-9, 1e9  # resolutions
BY_CHANCE = 2.0**-60  # a resolution at which any edge outweighs all that chance would do: weights are up to 2^53 of a unit
STILL = 100_000  # label propagation ends when no more than one in this many nodes has moved


def label_propagation(level: levels.Level, seed: int = 1, checkpoint: Checkpoint | None = None) -> tuple[Label, int]:
    """Nodes join the community that most of their neighbours, by weight, are in, until hardly any moves. Collective.

    Raghavan, Albert and Kumara, Phys. Rev. E 76, 2007. Nodes move in turns: all at once, neighbours would swap
    communities for ever (Cordasco and Gargano, BASNA 2010).

    Returns
    -------
    label, sweeps
        Names of communities, see :mod:`cusp.apps.shared.community_graph`.
    """
    label, sweep = levels.new_label(level), 0
    if checkpoint and checkpoint.goes_on:
        sweep = checkpoint.rounds
        kept.take_up(checkpoint, level, level, "now", label)
    while sweep < MOST_SWEEPS:
        moved = sweep_once(level, label, seed + sweep, gravity=False)
        sweep += 1
        if moved * STILL <= level.graph.num_nodes:
            break
        if checkpoint and checkpoint.is_due(level.sync):
            checkpoint.write(sweep, {"now": kept.to_keep(level, level, label.values)})
    return label, sweep


def louvain(
    level: levels.Level, seed: int = 1, checkpoint: Checkpoint | None = None, refines: bool = False
) -> tuple[Label, int]:
    """Nodes move to where modularity grows most, then communities move as nodes, until it stops growing. Collective.

    Blondel et al., J. Stat. Mech. 2008; on several ranks, Ghosh et al. (Vite, IPDPS 2018). A node knows the strengths
    of communities as they were before its turn, so modularity may fall in a sweep: the best one seen counts. Unlike
    with Leiden, a community may fall apart when the node that connected it leaves.
    """
    first, sweeps = level, 0
    moves: list[tuple[levels.Level, Any]] = []  # of the levels before
    alone = levels.new_label(level)
    climb = kept.begin(alone, levels.modularity(level, levels.number(level, alone)))
    if checkpoint and checkpoint.goes_on:
        level, moves, climb = kept.take_up_climb(checkpoint, first)
        sweeps = checkpoint.rounds - climb.sweeps

    def keep() -> None:
        if checkpoint and checkpoint.is_due(first.sync):
            labels, facts = kept.climb_to_keep(first, level, moves, climb)
            checkpoint.write(sweeps + climb.sweeps, labels, **facts)

    while True:
        _move(level, climb, seed + sweeps, keep)
        sweeps += climb.sweeps
        climb.label.values[...] = climb.best
        if not climb.reached >= climb.start + LEAST_GAIN:
            break
        refined = _refine(level, climb.label, seed + sweeps) if refines else climb.label
        moves.append((level, refined.values))
        above = levels.quotient(level, levels.number(level, refined))
        start = refinement.take_up(level, climb.label, refined, above) if refines else levels.new_label(above)
        level, climb = above, kept.begin(start, climb.reached)
    if refines:
        level, climb.label = _split(level, climb.label, seed + sweeps, moves)
    label = levels.new_label(first)
    label.values[: first.graph.num_masters] = kept.compose([*moves, (level, climb.label.values)])
    levels.broadcast(first, label)
    return label, sweeps


def leiden(level: levels.Level, seed: int = 1, checkpoint: Checkpoint | None = None) -> tuple[Label, int]:
    """Louvain whose communities are connected: what moves as a node was refined before. Collective.

    Traag, Waltman and van Eck, Scientific Reports 9, 2019. Nodes are merged where modularity grows most, not at random.
    """
    return louvain(level, seed, checkpoint, refines=True)


def _refine(level: levels.Level, label: Label, seed: int) -> Label:
    """Communities inside of those in the label, each connected. Collective."""
    inside, refined = refinement.look_inside(level, label), levels.new_label(level)
    sweep_once(inside.level, refined, seed, gravity=True, inside=inside)
    return refined


def _split(level: levels.Level, label: Label, seed: int, moves: kept.Moves) -> tuple[levels.Level, Label]:
    """Take communities apart that are not connected, which modularity gains by. Collective.

    Where chance counts for nothing, refined communities grow as long as there are edges inside: in each step at least
    a fair share of the nodes is joined with others, until each connected part is a single one. ``moves`` are added to.
    """
    level = replace(level, resolution=BY_CHANCE)
    while True:
        inside = refinement.look_inside(level, label)
        if level.sync.total(float(inside.weights.sum()))[0] == 0:
            return level, levels.new_label(level)
        seed += 1
        refined = levels.new_label(level)
        sweep_once(inside.level, refined, seed, gravity=True, inside=inside)
        moves.append((level, refined.values))
        above = levels.quotient(level, levels.number(level, refined))
        level, label = above, refinement.take_up(level, label, refined, above)


def _move(level: levels.Level, climb: kept.Climb, seed: int, keep: Callable[[], None]) -> None:
    """Sweep until modularity hardly grows; ``keep`` is called between two sweeps. Collective."""
    while climb.sweeps < MOST_SWEEPS:
        moved = sweep_once(level, climb.label, seed + climb.sweeps, gravity=True)
        climb.sweeps += 1
        reached = levels.modularity(level, levels.number(level, climb.label))
        if reached >= climb.reached + max(LEAST_GAIN, LEAST_SHARE * (climb.reached - climb.start)):
            climb.grown = climb.sweeps
        if reached > climb.reached:
            climb.best, climb.reached = climb.label.values.copy(), reached
        if moved == 0 or climb.sweeps - climb.grown >= PATIENCE:
            break
        keep()


def sweep_once(
    level: levels.Level, label: Label, seed: int, gravity: bool, inside: refinement.Inside | None = None
) -> int:
    """Every node has a turn; returns how many moved. Collective.

    The turn of a node, and the choice among equally good communities, depend on global ids and the seed alone: they are
    the same on any device and number of ranks, since sums of weights are exact: see :func:`round_weights`.
    """
    ops = backend(interfaces.Communities, level.graph.device)
    xp, own, size = level.xp, level.graph.num_masters, TURNS if gravity else TIES
    turns = mapped(lambda gids: splitmix64(gids, seed) % np.uint64(size), level.graph.gids[:own], dtype=np.uint64)
    busy = filled_rows(level.graph.offsets[: own + 1])
    moved = 0
    for turn in range(size):
        current = levels.number(level, label)
        totals = xp.zeros(current.names.size, np.float64)
        movers = busy & (turns == turn)
        if gravity:
            owned = levels.totals_of(level, current)
            if inside:
                owned, movers = inside.restrict(current, owned, movers)
            totals = levels.get_from_owners(level, current.names, owned)
        rows = xp.flatnonzero(movers)
        best = ops.best_communities(
            rows, level.graph.offsets, level.graph.targets, level.weights, current.numbers,
            level.strengths if gravity else xp.zeros(own, np.float64), totals,
            splitmix64(current.names % level.graph.num_nodes, seed if gravity else seed + (turn << 32)),
            level.total / level.resolution if gravity else 1.0,
        )  # fmt: skip
        moved += total(best != current.numbers[rows])
        label.values[rows] = current.names[best]
        levels.broadcast(level, label)
    moved = int(level.sync.total(moved)[0])
    level.sync.end_round(moved=moved)
    return moved


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
        What :func:`~cusp.apps.shared.undirected.as_undirected` makes of ``part``, if that has been done.
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
    xp = xp_of(graph.device)
    level = levels.make_level(graph, xp.zeros(graph.num_masters, np.float64), sync, resolution)
    label, sweeps = ALGORITHMS[algorithm](level, key_of(seed), checkpoint)
    figures = {
        "modularity": levels.modularity(level, levels.number(level, label)),
        "communities": levels.count_communities(level, label),
    }
    return Answer({"community": levels.smallest_members(level, label)}, None, sweeps, figures)


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
    verify=lambda part, sync, _, answer, graph, options: verify_communities(
        graph, sync, answer.labels["community"], **answer.figures, least=options.algorithm == "louvain"
    ),
    add_options=add_options,
    needs_source=False,
    weighted=True,
    seeded=True,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
