"""How nodes move between communities: in sweeps, by turns; and the refinement of Leiden, a sweep inside of communities.

Traag, Waltman and van Eck, From Louvain to Leiden: guaranteeing well-connected communities, Scientific Reports 9, 2019.
"""

from typing import Any

import numpy as np

from cusp.apps.cc import cc, prepare
from cusp.apps.shared.communities import graph as levels
from cusp.apps.shared.communities.graph import Level
from cusp.apps.shared.communities.kept import Moves, go_up
from cusp.apps.shared.communities.moving import Moving, begin

TURNS = 4  # per sweep: in each, some of the nodes look for a better community while the others stay
TIES = 8  # turns of label propagation: each breaks ties in its own way, or one community would win them all and spread
APART = 1 << 32  # by which seeds of refinements differ from those of sweeps


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
    refined = begin(*look_inside(level, values), refines=True)
    sweep_once(refined, seed + APART)
    names = refined.groups.of_proxies
    moves.append((level, names))
    above = go_up(level, names)
    return above, take_along(level, values, names, above)


def take_apart(level: Level, values: Any) -> Any:
    """The names of communities after those that are not connected were taken apart, by which modularity does not fall.

    Collective.
    """
    inner = levels.edges_inside(level, levels.number(level, values)).graph
    answer = cc(inner, level.sync, prepare(inner, level.sync))
    return levels.everywhere(level, levels.names_of(level, answer.labels["component"]))


def look_inside(level: Level, values: Any) -> tuple[Level, None, Any]:
    """What nodes see of a level while the communities with these names are refined. Collective.

    Returns
    -------
    inner : Level
        With the edges inside of communities alone.
    names : None
        Nodes begin on their own.
    restless : (masters,) bool
        Those that are well connected with the others of their community: by at least the weight that chance would put
        there.
    """
    groups, own = levels.number(level, values), level.graph.num_masters
    inner = levels.edges_inside(level, groups)
    wholes = levels.get_from_owners(level, groups.names, levels.totals_of(level, groups))[groups.numbers[:own]]
    within = levels.sums_of_rows(inner.graph.offsets[: own + 1], inner.weights)
    share = level.resolution / level.total if level.total else 0.0
    well = within >= share * level.strengths * (wholes - level.strengths)
    return inner, None, well & (within > 0)


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
