"""How nodes move between communities: in sweeps, by turns; and the refinement of Leiden, a sweep inside of communities.

Traag, Waltman and van Eck, From Louvain to Leiden: guaranteeing well-connected communities, Scientific Reports 9, 2019.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from cusp.apps.shared.communities import graph as levels
from cusp.apps.shared.communities.graph import Level
from cusp.apps.shared.communities.kept import Moves, go_up
from cusp.apps.shared.communities.moving import Inside, Moving, begin
from cusp.apps.shared.graphs.undirected import nodes_of

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


def refine(moves: Moves, seed: int) -> tuple[Level, Any]:
    """Put refined communities in the place of the last ones; the level above, and these in there. Collective."""
    level, values = moves.pop()
    refined = begin(level, inside_of=look_inside(level, values))
    sweep_once(refined, seed + APART)
    names = refined.groups.of_proxies
    moves.append((level, names))
    above = go_up(level, names)
    return above, take_along(level, values, names, above)


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
        level, values = refine(moves, seed)
    moves.append((level, nodes_of(level.graph)))


def look_inside(level: Level, values: Any) -> Inside:
    """The inside of the communities with these names. Collective."""
    groups = levels.number(level, values)
    weights = level.xp.empty_like(level.graph.targets, np.float64)
    within = levels.weights_inside(level, groups, weights)
    totals = levels.get_from_owners(level, groups.names, levels.totals_of(level, groups))
    return Inside(weights, within, totals[groups.numbers[: level.graph.num_masters]], within.copy())


def take_along(level: Level, values: Any, refined: Any, above: Level) -> Any:
    """The names of a level's communities at the level above, whose nodes are the refined ones. Collective.

    A community is named after the one of its nodes that has the smallest global id.
    """
    own, ranks, size = level.graph.num_masters, level.sync.comm.size, level.graph.num_nodes
    keys = refined[:own] % size * ranks + refined[:own] // size
    least = levels.least_of_members(level, levels.number(level, values), keys)
    if above.alone and not level.alone:
        places = level.graph.lid_map.lids(levels.of_this_rank(level, above))
        return levels.of_all_ranks(level, (least // ranks)[places])
    places = level.graph.lid_map.lids(above.graph.gids[: above.graph.num_masters])
    return levels.everywhere(above, (least % ranks * size + least // ranks)[places])
