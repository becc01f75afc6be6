"""How nodes move between communities: in sweeps, by turns; and the refinement of Leiden, a sweep inside of communities.

Traag, Waltman and van Eck, From Louvain to Leiden: guaranteeing well-connected communities, Scientific Reports 9, 2019.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from cusp import Label
from cusp.apps.shared.communities import graph as levels
from cusp.apps.shared.communities.graph import Level
from cusp.apps.shared.communities.kept import Moves, go_up
from cusp.apps.shared.communities.moving import Inside, Moving, begin

TURNS = 4  # per sweep: in each, some of the nodes look for a better community while the others stay
TIES = 8  # turns of label propagation: each breaks ties in its own way, or one community would win them all and spread
APART = 1 << 32  # by which seeds of refinements differ from those of sweeps
BY_CHANCE = 2.0**-60  # a resolution at which any edge outweighs chance: there are at most 2^53 units of weight


def sweep_once(moving: Moving, seed: int, gravity: bool) -> int:
    """Every restless node has a turn; returns how many moved. Collective.

    The turn of a node, and the choice among equally good communities, depend on global ids and the seed alone: they are
    the same on any device and number of ranks, since sums of weights are exact: see :func:`round_weights`.
    """
    level, xp, turns = moving.level, moving.level.xp, TURNS if gravity else TIES
    nothing, moved = xp.zeros(level.graph.num_masters, np.float64), 0
    moving.draw_turns(turns, seed)
    for turn in range(turns):
        rows = moving.take_turn(turn)
        if gravity:
            totals, rows = _restrict(moving, moving.inside_of, rows) if moving.inside_of else (moving.totals, rows)
            moved += moving.move(rows, level.strengths, totals, seed, level.total / level.resolution)
        else:
            moved += moving.move(rows, nothing, nothing, seed + (turn << 32), 1.0)
    moved = int(level.sync.total(moved)[0])
    level.sync.end_round(moved=moved)
    return moved


def _restrict(moving: Moving, inside: Inside, rows: Any) -> tuple[Any, Any]:
    """What may happen in a turn of refinement; as in MergeNodesSubset, communities only grow.

    Nodes move that are still on their own and well connected with the others of the community that is refined: by at
    least the weight that chance would put there. They join what is well connected, too, and does not move in the same
    turn. So the node that a community is named after stays in it, and those that join later have edges to it or to
    others that stay: the community is connected.

    Returns
    -------
    totals : (masters,) float64
        Of the communities named after each; negative if closed.
    rows : (n,) int64
        Those that move.
    """
    level, totals = moving.level, moving.totals
    well = inside.outward >= level.resolution / level.total * totals * (inside.wholes - totals)
    rows = rows[well[rows] & (totals[rows] == level.strengths[rows])]
    closed = ~well
    closed[rows] = True
    return level.xp.where(closed, -totals, totals), rows


def refine(moves: Moves, seed: int) -> tuple[Level, Label]:
    """Put refined communities in the place of the last ones; the level above, and these in there. Collective."""
    level, values = moves.pop()
    refined = levels.new_label(level)
    sweep_once(begin(level, refined, inside_of=look_inside(level, values)), seed + APART, gravity=True)
    moves.append((level, refined.values))
    above, _ = go_up(level, refined.values)
    return above, take_along(level, values, refined.values, above)


def take_apart(moves: Moves, seed: int) -> None:
    """Take communities apart that are not connected, by which modularity does not fall. Collective.

    Where chance counts for nothing, nodes merge as long as there are edges inside: again and again a fair share of all
    that have some, until each connected part is a single node.
    """
    level, values = moves.pop()
    level = replace(level, resolution=BY_CHANCE)
    while level.sync.total(float(look_inside(level, values).within.sum()))[0] > 0:
        moves.append((level, values))
        seed += 1
        level, label = refine(moves, seed)
        values = label.values
    moves.append((level, levels.new_label(level).values))


def look_inside(level: Level, values: Any) -> Inside:
    """The inside of the communities with these names. Collective."""
    groups = levels.number(level, levels.label_of(level, values))
    weights = level.xp.empty_like(level.graph.targets, np.float64)
    within = levels.weights_inside(level, groups, weights)
    totals = levels.get_from_owners(level, groups.names, levels.totals_of(level, groups))
    return Inside(weights, within, totals[groups.numbers[: level.graph.num_masters]], within.copy())


def take_along(level: Level, values: Any, refined: Any, above: Level) -> Label:
    """The communities of a level as those of the level above, whose nodes are the refined ones. Collective.

    A community is named after the one of its nodes that has the smallest global id.
    """
    own, ranks, size = level.graph.num_masters, level.sync.comm.size, level.graph.num_nodes
    keys = refined[:own] % size * ranks + refined[:own] // size
    least = levels.least_of_members(level, levels.label_of(level, values), keys)
    places = level.graph.lid_map.lids(above.graph.gids[: above.graph.num_masters])
    label = levels.new_label(above)
    label.values[: above.graph.num_masters] = (least % ranks * size + least // ranks)[places]
    levels.broadcast(above, label)
    return label
