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


def sweep_once(moving: Moving, seed: int) -> int:
    """Every restless node has a turn; returns how many moved. Collective.

    The turn of a node, and the choice among equally good communities, depend on global ids and the seed alone: they are
    the same on any device and number of ranks, since sums of weights are exact: see :func:`round_weights`.
    """
    sync = moving.level.sync
    moved = int(sync.total(moving.sweep(TURNS if moving.gravity else TIES, seed))[0])
    sync.end_round(moved=moved)
    return moved


def refine(moves: Moves, seed: int) -> tuple[Level, Label]:
    """Put refined communities in the place of the last ones; the level above, and these in there. Collective."""
    level, values = moves.pop()
    refined = levels.new_label(level)
    sweep_once(begin(level, refined, inside_of=look_inside(level, values)), seed + APART)
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
