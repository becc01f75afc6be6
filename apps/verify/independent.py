"""Verifiers of maximal independent sets and of greedy colorings: see apps/verify/check.py."""

from typing import Any

import numpy as np

from cusp import MAX, EdgeOperator, Label, Partition, Sync
from cusp.apps.verify.check import everywhere, require, tell_edge, tell_node
from cusp.kernels.arrays import total
from cusp.runtime.devices import move
from gluon.reduction import OR

WIDTH = 62  # colors whose bits are looked at together
MEET = tuple(EdgeOperator("inside", into=f"{end}.met") for end in ("src", "dst"))
SEE = tuple(EdgeOperator("bit", into=f"{end}.seen") for end in ("src", "dst"))


def verify_independent(part: Partition, sync: Sync, in_set: Any, members: int) -> None:
    """Check that no edge joins two members, and that every other node has a member as its neighbour. Collective.

    Parameters
    ----------
    in_set : (masters,) uint8
    members : int
        Their number.
    """
    inside = everywhere(part, sync, in_set.astype(np.int32), 0)
    where = "src.inside == 1 and dst.inside == 1 and src.gid != dst.gid"
    tell_edge(part, sync, where, lambda source, target, _: (
        f"nodes {part.gids[source]} and {part.gids[target]} are neighbours, and both in the set"
    ), inside=inside)  # fmt: skip
    met = Label(part, np.int32, 0, MAX)
    for meet in MEET:
        meet(part, inside=inside, met=met)
    sync.reduce(met, write="any")
    own = inside.masters()
    tell_node(
        part, sync, "neither in the set, nor a neighbour of one that is, is node", (own == 0) & (met.masters() == 0)
    )
    tell_node(part, sync, "in_set: neither 0 nor 1 at node", (own != 0) & (own != 1))
    (right,) = sync.total(total(own == 1))
    require(sync, right == members, f"there are {right} members, not {members}")


def verify_coloring(part: Partition, sync: Sync, color: Any, colors: int) -> None:
    """Check that neighbours have different colors, and each node neighbours of all lower ones. Collective.

    Parameters
    ----------
    color : (masters,) int32
    colors : int
        Their number.
    """
    color = move(color, part.device)
    tell_node(part, sync, "color: below 0 at node", color < 0)
    shown = everywhere(part, sync, color, -1)
    tell_edge(part, sync, "src.color == dst.color and src.gid != dst.gid", lambda source, target, _: (
        f"nodes {part.gids[source]} and {part.gids[target]} are neighbours, and both have color {shown.values[source]}"
    ), color=shown)  # fmt: skip
    right = sync.highest(int(color.max()) if color.size else -1) + 1
    require(sync, right == colors, f"there are {right} colors, not {colors}")
    for first in range(0, colors, WIDTH):
        place = shown.values.astype(np.int64) - first
        inside = (place >= 0) & (place < WIDTH)
        seen = Label(part, np.int64, 0, OR)
        for see in SEE:
            see(part, bit=inside << place * inside, seen=seen)
        sync.reduce(seen, write="any")
        below = (np.int64(1) << place[: part.num_masters].clip(0, WIDTH)) - 1
        tell_node(part, sync, "a lower color is free at node", below & ~seen.masters() != 0)
