"""How nodes move between communities: in sweeps, by turns; and the refinement of Leiden, a sweep inside of communities.

Traag, Waltman and van Eck, From Louvain to Leiden: guaranteeing well-connected communities, Scientific Reports 9, 2019.
"""

from dataclasses import replace
from typing import Any

from cusp.apps.cc import cc, prepare
from cusp.apps.shared.communities import graph as levels
from cusp.apps.shared.communities.graph import Level, LocalCommunities
from cusp.apps.shared.communities.kept import Moves, go_up
from cusp.apps.shared.communities.moving import Moving, begin
from cusp.apps.shared.communities.quotient import edges_inside
from cusp.kernels.arrays import take
from cusp.runtime.devices import move

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


def refine(moves: Moves, level: Level, groups: LocalCommunities, seed: int) -> tuple[Level, Any]:
    """Refined communities are the next of the moves; the level above, and the names of these groups there. Collective.

    Nodes merge that an edge inside of a group connects, wherever modularity grows most.
    """
    refined = begin(edges_inside(level, groups), refines=True)
    sweep_once(refined, seed + APART)
    above = go_up(moves, level, refined.groups.of_proxies)
    return above, take_along(level, groups, above)


def take_apart(level: Level, groups: LocalCommunities) -> Any:
    """The names of communities after those that are not connected were taken apart, by which modularity does not fall.

    Collective.
    """
    inner = edges_inside(level, groups).graph
    answer = cc(inner, level.sync, prepare(inner, level.sync))
    return levels.everywhere(level, levels.names_of(level, answer.labels["component"]))


def take_along(level: Level, groups: LocalCommunities, above: Level) -> Any:
    """The names of a level's communities at the level above, where each node is a part of one of them. Collective.

    A community is named after the one of its nodes there that has the smallest global id.
    """
    ranks, size = level.sync.comm.size, level.graph.num_nodes
    copied = above.alone and not level.alone
    gids = levels.of_this_rank(level, above) if copied else above.graph.gids[: above.graph.num_masters]
    gids = move(gids, level.graph.device)
    there = replace(groups, numbers=take(groups.numbers, level.graph.lid_map.lids(gids)))
    least = levels.least_of_members(level, there, gids * ranks + level.graph.rank)
    if copied:
        return levels.of_all_ranks(level, least // ranks)
    return levels.everywhere(above, move(least % ranks * size + least // ranks, above.graph.device))
