"""Verifier of core numbers: see apps/verify/check.py."""

from typing import Any

import numpy as np

from cusp import ADD, EdgeOperator, Label, Partition, Sync
from cusp.apps.verify.check import everywhere, require, tell_node
from cusp.runtime.compiled_code import njit
from cusp.runtime.devices import move, xp_of

SUPPORT = EdgeOperator("1", into="src.support", where="dst.claim >= src.claim")
REMOVE = EdgeOperator("-1", into="dst.support", where="src.claim == dst.claim")


def verify_cores(
    graph: Partition, sync: Sync, core: Any, *, degeneracy: int | None = None, k: int | None = None,
    members: int | None = None,
) -> None:  # fmt: skip
    """Check core numbers, or who is in one k-core. Collective.

    1. A node of number c has at least c neighbours whose number is c or higher; so no number is too large. 2. The nodes
    of number c can be removed one after the other, each when at most c of its neighbours are left that have a higher
    number, or the same and are still there; so none is in a core above c. 3. The figures follow from the numbers. For
    one k-core, 1 holds for its members, and 2 for all others with c = k - 1.

    Parameters
    ----------
    graph : Partition
        What :func:`~cusp.apps.shared.graphs.undirected.as_undirected` made.
    core : (masters,) integers
        Core numbers; with ``k``, 1 for members, else 0.
    degeneracy : int, optional
        The highest core number.
    k, members : int, optional
        The core that was asked for, and its size.
    """
    core = move(core, graph.device)
    xp = xp_of(graph.device)
    numbers = core if k is None else xp.where(core == 1, k, k - 1).astype(np.int32)
    inside = xp.zeros(numbers.size, bool) if k is None else numbers == k
    claim = everywhere(graph, sync, numbers, -1)
    support = Label(graph, np.int32, 0, ADD)
    SUPPORT(graph, support=support, claim=claim)  # whole neighbourhoods are in the rows of masters
    few = support.masters() < numbers
    few = few if k is None else few & inside
    tell_node(graph, sync, "core: too few neighbours with a core number at least as high as that of node", few)
    left = _peel(graph, sync, claim, support, ~inside)
    tell_node(graph, sync, "core: the core number is too low for node", left)
    highest = sync.highest(int(core.max()) if core.size else 0)
    (size,) = sync.total(int((core != 0).sum()))
    require(sync, degeneracy in (None, highest), f"the highest core number is {highest}, not {degeneracy}")
    require(sync, members in (None, size), f"the core has {size} members, not {members}")


def _peel(graph: Partition, sync: Sync, claim: Label, support: Label, left: Any) -> Any:
    """Remove nodes that have no more neighbours left than their number; returns the masters that remain. Collective.

    On a CPU, a rank goes on with nodes of its own that others leave alone before it tells other ranks.

    Parameters
    ----------
    support : Label
        Neighbours of a master that are still there and whose number is not below its own.
    left : (masters,) bool
        Those to be removed. Changed.
    """
    numbers = claim.masters()
    ready = support.device.xp.flatnonzero(left & (support.masters() <= numbers))
    support.swap_updated()
    claim.swap_updated()  # its bits are those of the nodes that go in one round
    while sync.total(int(ready.size)) != (0,):
        left[ready] = False
        if graph.device == "cpu":
            support.mark(_remove(ready, graph.offsets, graph.targets, claim.values, support.values, left))
        else:
            claim.mark(ready)
            REMOVE(graph, frontier=claim.swap_updated(), support=support, claim=claim)
        sync.reduce(support, write="dst")
        fewer = support.take_updated()
        fewer = fewer[fewer < graph.num_masters]
        ready = fewer[left[fewer] & (support.values[fewer] <= numbers[fewer])]
    return left


@njit(cache=True, nogil=True)
def _remove(ready, offsets, targets, claim, support, left):  # type: ignore[no-untyped-def]
    """Remove these masters and those that have no more neighbours left then; returns the mirrors beside them."""
    queue, count = np.empty(left.size, np.int64), ready.size
    for place in range(count):
        queue[place] = ready[place]
    touched, place = np.zeros(claim.size, np.bool_), 0
    while place < count:
        node = queue[place]
        place += 1
        for edge in range(offsets[node], offsets[node + 1]):
            other = targets[edge]
            if claim[other] == claim[node]:
                support[other] -= 1
                if other >= left.size:
                    touched[other] = True
                elif left[other] and support[other] <= claim[other]:
                    left[other] = False
                    queue[count] = other
                    count += 1
    return np.flatnonzero(touched)
