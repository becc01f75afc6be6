"""How nodes move between communities: in sweeps, by turns; and the refinement of Leiden, a sweep inside of communities.

Traag, Waltman and van Eck, From Louvain to Leiden: guaranteeing well-connected communities, Scientific Reports 9, 2019.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cusp import Label
from cusp.apps.operators.structure.interfaces import Communities
from cusp.apps.shared.communities import graph as levels
from cusp.apps.shared.communities.graph import Level, LocalCommunities
from cusp.apps.shared.communities.kept import Moves, go_up
from cusp.apps.shared.splitmix64 import splitmix64
from cusp.kernels.arrays import filled_rows, mapped, total
from cusp.runtime.devices import backend

TURNS = 4  # per sweep: in each, some of the nodes look for a better community while the others stay
TIES = 8  # turns of label propagation: each breaks ties in its own way, or one community would win them all and spread
APART = 1 << 32  # by which seeds of refinements differ from those of sweeps
BY_CHANCE = 2.0**-60  # a resolution at which any edge outweighs chance: there are at most 2^53 units of weight


@dataclass(frozen=True)
class Inside:
    """What nodes see of a level while its communities are refined: the edges inside of these.

    Attributes
    ----------
    level : Level
    weights : (edges,) float64
        Those of the level; 0 between communities.
    within : (masters,) float64
        Of the edges of each node, in all.
    wholes : (masters,) float64
        Strength of the community of each node.
    """

    level: Level
    weights: Any
    within: Any
    wholes: Any

    def restrict(self, current: LocalCommunities, totals: Any, turn: Any) -> tuple[Any, Any]:
        """What may happen in a turn; as in MergeNodesSubset, communities only grow. Collective.

        Nodes move that are still on their own and well connected with the others of the community that is refined:
        by at least the weight that chance would put there. They join what is well connected, too, and does not move in
        the same turn. So the node that a community is named after stays in it, and those that join later have edges
        to it or to others that stay: the community is connected.

        Parameters
        ----------
        current : LocalCommunities
            The refined ones.
        totals : (masters,) float64
            Of the community named after each node.
        turn : (masters,) bool
            Whose turn it is.

        Returns
        -------
        totals : (masters,) float64
            Negative if the community is closed.
        movers : (masters,) bool
        """
        level, ops = self.level, backend(Communities, self.level.graph.device)
        offsets = level.graph.offsets[: totals.size + 1]
        merged = ops.weight_inside(offsets, level.graph.targets, self.weights, current.numbers)
        outward = levels.add_at_owners(
            level, current.names, levels.sum_by_community(level, current, self.within - merged)
        )
        well = outward >= level.resolution / level.total * totals * (self.wholes - totals)
        movers = turn & well & (totals == level.strengths)
        return level.xp.where(well & ~movers, totals, -totals), movers


def sweep_once(level: Level, label: Label, seed: int, gravity: bool, inside: Inside | None = None) -> int:
    """Every node has a turn; returns how many moved. Collective.

    The turn of a node, and the choice among equally good communities, depend on global ids and the seed alone: they are
    the same on any device and number of ranks, since sums of weights are exact: see :func:`round_weights`.
    """
    ops = backend(Communities, level.graph.device)
    xp, own, size = level.xp, level.graph.num_masters, TURNS if gravity else TIES
    turns = mapped(lambda gids: splitmix64(gids, seed) % np.uint64(size), level.graph.gids[:own], dtype=np.uint64)
    busy = filled_rows(level.graph.offsets[: own + 1])
    weights = inside.weights if inside else level.weights
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
            rows, level.graph.offsets, level.graph.targets, weights, current.numbers,
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


def refine(moves: Moves, seed: int) -> tuple[Level, Label]:
    """Put refined communities in the place of the last ones; the level above, and these in there. Collective."""
    level, values = moves.pop()
    inside, refined = look_inside(level, values), levels.new_label(level)
    sweep_once(level, refined, seed + APART, gravity=True, inside=inside)
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
    graph, groups = level.graph, levels.number(level, levels.label_of(level, values))
    weights, ops = level.xp.empty_like(level.weights), backend(Communities, graph.device)
    within = ops.weight_inside(graph.offsets, graph.targets, level.weights, groups.numbers, weights)
    totals = levels.get_from_owners(level, groups.names, levels.totals_of(level, groups))
    own = graph.num_masters
    return Inside(level, weights, within[:own], totals[groups.numbers[:own]])


def take_along(level: Level, values: Any, refined: Any, above: Level) -> Label:
    """The communities of a level as those of the level above, whose nodes are the refined ones. Collective.

    A community is named after the one of its nodes that has the smallest global id.
    """
    own, ranks, size = level.graph.num_masters, level.sync.comm.size, level.graph.num_nodes
    keys = refined[:own] % size * ranks + refined[:own] // size
    least = levels.least_of_members(level, values, keys)
    places = level.graph.lid_map.lids(above.graph.gids[: above.graph.num_masters])
    label = levels.new_label(above)
    label.values[: above.graph.num_masters] = (least % ranks * size + least // ranks)[places]
    levels.broadcast(above, label)
    return label
