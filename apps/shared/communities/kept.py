"""How far community detection has come, and what a checkpoint holds of that: names of communities as global ids."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cusp.apps.run.checkpoint import Checkpoint
from cusp.apps.shared.communities.graph import (
    Level,
    LocalCommunities,
    everywhere,
    get_from_owners,
    names_of,
    number,
    weights_inside,
)
from cusp.apps.shared.communities.moving import Moving
from cusp.apps.shared.communities.moving import begin as begin_to_move
from cusp.apps.shared.communities.quotient import quotient
from cusp.kernels.arrays import take, total
from cusp.runtime.devices import move

Moves = list[tuple[Level, LocalCommunities]]  # levels that are done, and the communities that their proxies are in
NOBODY = -1  # the community of a node that has joined another one in a level before
REALS, WHOLE = ("start", "reached"), ("down", "sweeps")  # of a Climb


@dataclass
class Climb:
    """How far the sweeps of a level have come.

    Attributes
    ----------
    moving : Moving
        The communities now.
    best : LocalCommunities
        The best ones so far.
    inside : float
        Weight of the edges inside of the best: that of all ranks is the sum.
    start, reached : float
        Modularity before the level, and that of the best.
    down : int
        1 once the top was reached: nodes of the graph move between the communities that were found there.
    sweeps : int
        How many there were.
    """

    moving: Moving
    best: LocalCommunities
    inside: float
    start: float
    reached: float
    down: int = 0
    sweeps: int = 0


def begin(level: Level, values: Any = None, before: Climb | None = None, down: int = 0) -> Climb:
    """From single nodes, or communities with these names, the best of a level before. Collective."""
    inside = None
    if before:
        below = before.moving.level
        (within,) = below.sync.total(before.inside + below.within)
        inside = (within if level.graph.rank == 0 else 0.0) - level.within
    moving = begin_to_move(level, values, inside=inside)
    reached = moving.modularity
    return Climb(moving, moving.now, moving.inside, reached, reached, down)


def go_up(moves: Moves, level: Level, values: Any) -> Level:
    """The level whose nodes are the communities with these names, which are the next of the moves. Collective."""
    moves.append((level, number(level, values)))
    return quotient(*moves[-1])


def come_down(moves: Moves, level: Level, groups: LocalCommunities) -> Any:
    """(proxies,) names of the communities that nodes of the first level have come to, by these moves. Collective."""
    moves = [*moves, (level, groups)]
    return everywhere(moves[0][0], compose(moves))


def compose(moves: Moves) -> Any:
    """(masters,) names of the communities that the nodes of the first level have come to. Collective."""
    above, groups = moves[-1]
    names = groups.of_proxies[: above.graph.num_masters]
    for below, groups in reversed(moves[:-1]):
        nodes = move(groups.names, above.graph.device)
        if above.alone and not below.alone:
            nodes, names = nodes % below.graph.num_nodes, take(above.names, above.graph.lid_map.lids(names))
        found = move(get_from_owners(above, nodes, names), below.graph.device)
        names = take(found, groups.numbers[: below.graph.num_masters])
        above = below
    return names


def climb_to_keep(first: Level, level: Level, moves: Moves, climb: Climb) -> tuple[dict[str, Any], dict[str, float]]:
    """What a checkpoint holds of Louvain: labels, and facts. Collective."""
    now, best = climb.moving.groups.of_proxies, climb.best.of_proxies
    kept = {"now": now, "best": best, "restless": climb.moving.restless}
    labels = {name: to_keep(first, level, values) for name, values in kept.items()}
    labels |= {"joined": to_keep(first, first, compose(moves))} if moves else {}
    return labels, {"joined": len(moves)} | {name: getattr(climb, name) for name in (*REALS, *WHOLE)}


def take_up_climb(checkpoint: Checkpoint, first: Level) -> tuple[Level, Moves, Climb]:
    """The level that was worked on, what came before it as a single move, and how far it has come. Collective.

    Raises
    ------
    CheckpointError
        On every rank.
    """
    level, moves = first, list[tuple[Level, LocalCommunities]]()
    if checkpoint.fact("joined", int):
        level = go_up(moves, first, take_up(checkpoint, first, first, "joined"))
    now, best = (take_up(checkpoint, first, level, name) for name in ("now", "best"))
    reals, whole = (checkpoint.fact(name) for name in REALS), (checkpoint.fact(name, int) for name in WHOLE)
    moving = begin_to_move(level, now, flags(checkpoint, first, level))
    groups = number(level, best)
    inside = float(weights_inside(level, groups).sum())
    return level, moves, Climb(moving, groups, inside, *reals, *whole)


def to_keep(first: Level, level: Level, names: Any) -> Any:
    """(masters of the first level,) int64: global ids that name the communities of the nodes of a level, or flags."""
    kept = first.xp.full(first.graph.num_masters, NOBODY, np.int64)
    kept[_lids(first, level)] = names[: level.graph.num_masters].astype(np.int64) % first.graph.num_nodes
    return kept


def take_up(checkpoint: Checkpoint, first: Level, level: Level, what: str) -> Any:
    """(proxies,) names of communities of a level, as :func:`to_keep` has kept them on any number of ranks. Collective.

    Raises
    ------
    CheckpointError
        On every rank: a node has no community.
    """
    gids = checkpoint.label(what, np.int64)[_lids(first, level)]
    wrong = total((gids < 0) | (gids >= first.graph.num_nodes))
    if first.sync.total(wrong)[0]:
        raise checkpoint.damaged(f"/{what} does not say of each node in which community it is")
    return everywhere(level, names_of(first, gids))


def flags(checkpoint: Checkpoint, first: Level, level: Level) -> Any:
    """(masters,) bool: the restless nodes of a level, as :func:`to_keep` has kept them."""
    return checkpoint.label("restless", np.int64)[_lids(first, level)] > 0


def _lids(first: Level, level: Level) -> Any:
    """Local ids, at the first level, of this rank's nodes of a level."""
    return first.graph.lid_map.lids(level.graph.gids[: level.graph.num_masters])
