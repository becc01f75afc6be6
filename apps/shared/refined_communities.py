"""Refinement, a phase of Leiden: what communities are taken apart into, and how they go up to the next level.

Traag, Waltman and van Eck, From Louvain to Leiden: guaranteeing well-connected communities, Scientific Reports 9, 2019;
the names of functions there are those of its supplement, section A.
"""

from dataclasses import dataclass, replace
from typing import Any

from cusp import Label
from cusp.apps.operators.structure.interfaces import Communities
from cusp.apps.shared import community_graph as levels
from cusp.apps.shared.community_graph import Level, LocalCommunities
from cusp.runtime.devices import backend


@dataclass(frozen=True)
class Inside:
    """What nodes see while communities are refined: the edges inside of these.

    Attributes
    ----------
    level : Level
        All other edges have the weight 0.
    weights : (masters,) float64
        Of the edges of each node that are left.
    wholes : (masters,) float64
        Strength of the community of each node.
    """

    level: Level
    weights: Any
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
        within = ops.weight_inside(offsets, level.graph.targets, level.weights, current.numbers)
        outward = levels.sum_by_community(level, current, self.weights - within)
        by_chance = level.resolution / level.total * totals * (self.wholes - totals)
        well = levels.add_at_owners(level, current.names, outward) >= by_chance
        movers = turn & well & (totals == level.strengths)
        return level.xp.where(well & ~movers, totals, -totals), movers


def look_inside(level: Level, label: Label) -> Inside:
    """The inside of the communities in a label. Collective."""
    graph, groups = level.graph, levels.number(level, label)
    kept, ops = level.xp.empty_like(level.weights), backend(Communities, graph.device)
    weights = ops.weight_inside(graph.offsets, graph.targets, level.weights, groups.numbers, kept)
    totals = levels.get_from_owners(level, groups.names, levels.totals_of(level, groups))
    own = graph.num_masters
    return Inside(replace(level, weights=kept), weights[:own], totals[groups.numbers[:own]])


def take_up(level: Level, label: Label, refined: Label, above: Level) -> Label:
    """The communities of a level as those of the level above, whose nodes are the refined ones. Collective.

    A community is named after the one of its nodes that has the smallest global id.
    """
    own, ranks, size = level.graph.num_masters, level.sync.comm.size, level.graph.num_nodes
    keys = refined.values[:own] % size * ranks + refined.values[:own] // size
    least = levels.least_of_members(level, label, keys)
    places = level.graph.lid_map.lids(above.graph.gids[: above.graph.num_masters])
    start = levels.new_label(above)
    start.values[: above.graph.num_masters] = (least % ranks * size + least // ranks)[places]
    levels.broadcast(above, start)
    return start
