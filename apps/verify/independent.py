"""Verifier of maximal independent sets: see apps/verify/check.py."""

from typing import Any

import numpy as np

from cusp import MAX, EdgeOperator, Label, Partition, Sync
from cusp.apps.verify.check import everywhere, require, tell_edge, tell_node
from cusp.kernels.arrays import total

MEET = tuple(EdgeOperator("inside", into=f"{end}.met") for end in ("src", "dst"))


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
