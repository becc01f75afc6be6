"""Nodes that move between communities, and what follows from their moves, which costs no more than their edges.

A node is restless, and looks for a better community, once a neighbour has moved to another one than its own: as in
the fast local moves of Traag, Waltman and van Eck (Scientific Reports 9, 2019).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cusp import Label
from cusp.apps.operators.structure.interfaces import MOVED, RESTLESS, Communities
from cusp.apps.shared.communities import graph as levels
from cusp.apps.shared.communities.graph import Level, LocalCommunities
from cusp.apps.shared.splitmix64 import splitmix64
from cusp.kernels.arrays import filled_rows, mapped, put, take
from cusp.runtime.devices import backend


@dataclass
class Inside:
    """What nodes see of a level while its communities are refined: the edges inside of these.

    Attributes
    ----------
    weights : (edges,) float64
        Those of the level; 0 between communities.
    within : (masters,) float64
        Of the edges of each node, in all.
    wholes : (masters,) float64
        Strength of the community of each node.
    outward : (masters,) float64
        Weight from the refined community named after each to the rest of the community that is refined.
    """

    weights: Any
    within: Any
    wholes: Any
    outward: Any


@dataclass
class Moving:
    """The communities of a level, and what is known of them at any time.

    Attributes
    ----------
    level : Level
    label : Label
        Names of the communities of all proxies.
    groups : LocalCommunities
        On one rank, communities are numbered as the nodes that they are named after.
    totals : (masters,) float64
        Strength of the community named after each.
    inside : float
        Weight of the edges inside of communities: that of all ranks is the sum.
    states : (proxies + 1,) uint8
        See interfaces.py: which masters are restless.
    seen : (proxies,) integers
        The names, or on one rank the numbers, as neighbours last saw them.
    spare : list
        See interfaces.py.
    turns : (masters,) uint8
        When each has its turn in this sweep.
    inside_of : Inside, or None
        If communities are refined, which begin as single nodes.
    """

    level: Level
    label: Label
    groups: LocalCommunities
    totals: Any
    inside: float
    states: Any
    seen: Any
    inside_of: Inside | None = None
    spare: list[Any] = field(default_factory=list)
    turns: Any = None

    @property
    def modularity(self) -> float:
        """See :func:`~cusp.apps.shared.communities.graph.modularity`. Collective."""
        return levels.modularity_of(self.level, self.inside, self.totals)

    def draw_turns(self, turns: int, seed: int) -> None:
        """Give each master one of ``turns``, a power of two, by its global id and the seed.

        Which nodes share one is as random as needed by multiply-shift hashing (Dietzfelbinger et al., J. Algorithms 25,
        1997).
        """
        factor = _odd(seed)
        shift, own = np.uint64(65 - turns.bit_length()), self.level.graph.num_masters
        self.turns = mapped(
            lambda gids: gids.astype(np.uint64) * factor >> shift, self.level.graph.gids[:own], dtype=np.uint8
        )

    def take_turn(self, turn: int) -> Any:
        """The restless masters whose turn it is, who are so no longer."""
        rows = self.level.xp.flatnonzero(self.restless.view(np.bool_) & (self.turns == turn))
        self.states[rows] = 0
        return rows

    @property
    def restless(self) -> Any:
        """(masters,) uint8: 1 for those that are, between two turns."""
        return self.states[: self.level.graph.num_masters]

    def move(self, rows: Any, strengths: Any, totals: Any, seed: int, scale: float) -> int:
        """Masters move to the best communities; how many have moved. Collective.

        The arguments are those of ``moves`` in interfaces.py, but the (masters,) totals at owners, and a seed of lots.
        """
        level, graph, names = self.level, self.level.graph, self.groups.names
        ops, gids = backend(Communities, graph.device), names if level.alone else names % graph.num_nodes
        totals = totals if level.alone else levels.get_from_owners(level, names, totals)
        rows, old, new = ops.moves(
            rows, graph.offsets, graph.targets, self._weights, self.groups.numbers, strengths, totals, gids,
            int(_odd(~seed)), scale, self.spare,
        )  # fmt: skip
        put(take(names, new), rows, self.label.values)
        levels.broadcast(level, self.label)
        if level.alone:
            put(new, rows, self.groups.numbers)
        gains = self._settle(rows)
        strengths = take(level.strengths, rows)
        self._add(old, new, strengths, strengths, self.totals)
        if self.inside_of:
            within = take(self.inside_of.within, rows)
            self._add(old, new, within, within - gains, self.inside_of.outward)
        if not level.alone:
            self.groups = levels.number(level, self.label)
        return int(rows.size)

    @property
    def _weights(self) -> Any:
        return self.inside_of.weights if self.inside_of else self.level.weights

    def _settle(self, rows: Any) -> Any:
        """Neighbours see the moves of all ranks; what those of masters add to the weight inside, see interfaces.py."""
        level, graph, ops = self.level, self.level.graph, backend(Communities, self.level.graph.device)
        now, moved = self.groups.numbers if level.alone else self.label.values, rows
        if not level.alone:
            own = graph.num_masters
            mirrors = own + level.xp.flatnonzero(self.seen[own:] != now[own:])
            moved = level.xp.concatenate([rows, mirrors])
        given = self._weights, self.seen, now, self.states
        self.states[moved] = MOVED  # and not restless, as this is their turn
        gains = ops.settle(rows, graph.offsets, graph.targets, *given)
        if not level.alone:
            ops.settle(mirrors, *level.columns, *given)
        self.states[moved] &= RESTLESS
        put(take(now, moved), moved, self.seen)
        self.inside += float(gains.sum())
        return gains

    def _add(self, old: Any, new: Any, lost: Any, won: Any, sums: Any) -> None:
        """Communities with these numbers lose and win; what they do to the (masters,) ``sums``. Collective."""
        level, ops = self.level, backend(Communities, self.level.graph.device)
        parts = sums if level.alone else level.xp.zeros(self.groups.names.size, np.float64)
        ops.add_by_number(old, -lost, parts)
        ops.add_by_number(new, won, parts)
        if not level.alone:
            there = level.xp.flatnonzero(parts)
            sums += levels.add_at_owners(level, self.groups.names[there], parts[there])


def _odd(seed: int) -> np.uint64:
    """A random-looking odd number."""
    return np.uint64(splitmix64(np.zeros(1, np.uint64), seed)[0] | np.uint64(1))


def begin(level: Level, label: Label, restless: Any = None, inside_of: Inside | None = None) -> Moving:
    """Begin to move nodes: all that have neighbours are restless, or those that are said to be. Collective."""
    xp, own = level.xp, level.graph.num_masters
    if level.alone:
        groups = LocalCommunities(level.graph.gids, level.graph.lid_map.lids(label.values))
    else:
        groups = levels.number(level, label)
    states = xp.zeros(label.values.size + 1, np.uint8)
    states[:own] = filled_rows(level.graph.offsets[: own + 1]) if restless is None else restless
    inside, totals = float(levels.weights_inside(level, groups).sum()), levels.totals_of(level, groups)
    seen = (groups.numbers if level.alone else label.values).copy()
    return Moving(level, label, groups, totals, inside, states, seen, inside_of)
