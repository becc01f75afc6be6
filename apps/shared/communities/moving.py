"""Nodes that move between communities, and what follows from their moves, which costs no more than their edges.

A node is restless, and looks for a better community, once a neighbour has moved to another one than its own: as in
the fast local moves of Traag, Waltman and van Eck (Scientific Reports 9, 2019).
"""

import functools
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cusp.apps.operators.communities.interfaces import MOVED, RESTLESS, Communities, Sweep
from cusp.apps.shared.communities import graph as levels
from cusp.apps.shared.communities.graph import Level, LocalCommunities
from cusp.apps.shared.graphs.undirected import nodes_of
from cusp.apps.shared.splitmix64 import splitmix64
from cusp.kernels.arrays import mapped, put, take, total_of_floats
from cusp.runtime.devices import backend


@dataclass
class Moving:
    """The communities of a level, and what is known of them at any time.

    Attributes
    ----------
    level : Level
    groups : LocalCommunities
        On one rank, communities are numbered as the nodes that they are named after.
    label : Label, or None
        On several ranks, the names of the communities of all proxies.
    gravity : bool
        Whether chance counts, as it does not in label propagation.
    totals : (masters,) float64
        Strength of the community named after each, as far as chance counts.
    inside : float
        Weight of the edges inside of communities: that of all ranks is the sum.
    states : (proxies + 1,) uint8
        See interfaces.py: which masters are restless.
    seen : (proxies,) integers
        The names, or on one rank the numbers, as neighbours last saw them.
    refines : bool
        Whether the edges are those inside of communities that are refined, see :meth:`_restrict`.
    spare : list
        See interfaces.py.
    """

    level: Level
    groups: LocalCommunities
    label: Any
    gravity: bool
    totals: Any
    inside: float
    states: Any
    seen: Any
    refines: bool = False
    spare: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        level = self.level
        self.strengths = level.strengths if self.gravity else level.xp.zeros_like(level.strengths)
        self._scale = level.total / level.resolution if self.gravity else 1.0
        self._ops: Communities = backend(Communities, level.graph.device)

    @property
    def modularity(self) -> float:
        """See :func:`~cusp.apps.shared.communities.graph.modularity`. Collective."""
        return levels.modularity_of(self.level, self.inside, self.totals)

    @property
    def now(self) -> LocalCommunities:
        """The communities as they are now, whatever moves later."""
        return replace(self.groups, numbers=self.groups.numbers.copy()) if self.level.alone else self.groups

    @property
    def restless(self) -> Any:
        """(masters,) uint8: 1 for those that are, between two turns."""
        return self.states[: self.level.graph.num_masters]

    def sweep(self, turns: int, seed: int) -> int:
        """All restless nodes have one of ``turns``, a power of two; how many of this rank have moved. Collective.

        A node's turn follows from its global id and the seed. Which nodes share one is as random as needed by
        multiply-shift hashing (Dietzfelbinger et al., J. Algorithms 25, 1997). Where chance counts for nothing, each
        turn draws lots of its own.
        """
        factor, level = _odd(seed), self.level
        draws = 1 if self.gravity else turns
        lots = tuple(int(_odd(~(seed + (draw << 32)))) for draw in range(draws)) * (turns // draws)
        if level.alone:
            moved, gained = self._ops.sweep(self._alone, int(factor), lots)
            self.inside += gained
            return moved
        shift, moved = np.uint64(65 - turns.bit_length()), 0
        turn_of = mapped(
            lambda gids: gids.astype(np.uint64) * factor >> shift,
            level.graph.gids[: self.restless.size],
            dtype=np.uint8,
        )
        for turn, lot in enumerate(lots):
            rows = level.xp.flatnonzero(self.restless.view(np.bool_) & (turn_of == turn))
            self.states[rows] = 0
            moved += self._move(rows, lot)
        return moved

    @functools.cached_property
    def _alone(self) -> Sweep:
        """The level on one rank; what changes are its arrays."""
        graph = self.level.graph
        given = graph.offsets, graph.targets, self.level.weights, graph.gids, self.strengths, self._scale
        return Sweep(*given, self.groups.numbers, self.totals, self.states, self.seen, self.refines)

    def _restrict(self, rows: Any) -> tuple[Any, Any]:
        """What may happen in a turn of refinement; as in MergeNodesSubset, communities only grow.

        Nodes move that are still on their own, and join what does not move in the same turn. So the node that a
        community is named after stays in it, and those that join later have edges to it or to others that stay: the
        community is connected.

        Returns
        -------
        rows : (n,) int64
            Those that move.
        totals : (masters,) float64
            Of the communities named after each; negative if closed.
        """
        totals = self.totals.copy()
        rows = rows[totals[rows] == self.strengths[rows]]
        totals[rows] = -totals[rows]
        return rows, totals

    def _move(self, rows: Any, lot: int) -> int:
        """Masters whose turn it is move to the best communities; how many have moved. Collective."""
        level, graph, names, totals = self.level, self.level.graph, self.groups.names, self.totals
        if self.refines:
            rows, totals = self._restrict(rows)
        rows, old, new = self._ops.moves(
            rows, graph.offsets, graph.targets, level.weights, self.groups.numbers, self.strengths,
            levels.get_from_owners(level, names, totals), names % graph.num_nodes, lot, self._scale, self.spare,
        )  # fmt: skip
        put(take(names, new), rows, self.label.values)
        levels.broadcast(level, self.label)
        if not self.refines:
            self._settle(rows, self.label.values)
        self._add(old, new, take(self.strengths, rows))
        self.groups = levels.number(level, self.label.values)
        return int(rows.size)

    def _settle(self, rows: Any, now: Any) -> None:
        """Neighbours see the moves of all ranks, of which those of masters add to the weight inside."""
        level, graph = self.level, self.level.graph
        own = graph.num_masters
        mirrors = own + level.xp.flatnonzero(self.seen[own:] != now[own:])
        moved = level.xp.concatenate([rows, mirrors])
        given = level.weights, self.seen, now, self.states
        self.states[moved] = MOVED  # and not restless, as this is their turn
        gains = self._ops.settle(rows, graph.offsets, graph.targets, *given)
        self._ops.settle(mirrors, *level.columns, *given)
        self.states[moved] &= RESTLESS
        put(take(now, moved), moved, self.seen)
        self.inside += float(gains.sum())

    def _add(self, old: Any, new: Any, strengths: Any) -> None:
        """Communities with these numbers lose and win strengths. Collective."""
        level, names = self.level, self.groups.names
        parts = level.xp.zeros(names.size, np.float64)
        self._ops.add_by_number(old, -strengths, parts)
        self._ops.add_by_number(new, strengths, parts)
        there = level.xp.flatnonzero(parts)
        self.totals += levels.add_at_owners(level, names[there], parts[there])


def _odd(seed: int) -> np.uint64:
    """A random-looking odd number."""
    return np.uint64(splitmix64(np.zeros(1, np.uint64), seed)[0] | np.uint64(1))


def begin(
    level: Level, values: Any = None, restless: Any = None, gravity: bool = True, refines: bool = False,
    inside: float | None = None,
) -> Moving:  # fmt: skip
    """Begin to move nodes. Collective.

    Parameters
    ----------
    values : (proxies,) int64, optional
        Names of the communities that they are in; without them, each is on its own.
    restless : (masters,) bool, optional
        By default, those with neighbours in other communities.
    inside : float, optional
        If it is known already.
    """
    graph, xp, own, single = level.graph, level.xp, level.graph.num_masters, values is None
    values = nodes_of(graph) if single else values
    if level.alone:
        groups, label = LocalCommunities(graph.gids, graph.lid_map.lids(values)), None
    else:
        groups, label = levels.number(level, values), levels.new_label(level)
        label.values[...] = values
    states = xp.zeros(values.size + 1, np.uint8)
    if restless is None:
        ops: Communities = backend(Communities, graph.device)
        restless = ops.leads_out(graph.offsets[: own + 1], graph.targets, groups.numbers)
    states[:own] = restless
    if not gravity:
        totals = xp.zeros(own, np.float64)
    elif single:
        totals = level.strengths.copy()
    elif level.alone:
        totals = levels.sum_by_community(level, groups, level.strengths)
    else:
        totals = levels.totals_of(level, groups)
    if inside is None:
        inside = 0.0 if single else total_of_floats(levels.weights_inside(level, groups))
    seen = (groups.numbers if level.alone else values).copy()
    return Moving(level, groups, label, gravity, totals, inside, states, seen, refines)
