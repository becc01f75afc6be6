"""Verifier of core numbers: see apps/verify/check.py."""

import numpy as np
from numba import njit

from apps.verify.check import everywhere, raise_first, tell_node
from cusp.partition import Partition, transpose
from gluon.label import Label
from gluon.reduction import MAX
from gluon.sync import Sync


def verify_cores(
    graph: Partition, sync: Sync, core: np.ndarray, degeneracy: int | None = None, k: int | None = None,
    members: int | None = None,
) -> None:  # fmt: skip
    """Check core numbers, or who is in one k-core. Collective.

    1. A node has at least as many neighbours whose number is not below its own as that number says: so no
    number is too large. 2. The nodes of one number c can be removed one after the other, each when it has at most c
    neighbours of a higher number or of the same that are still there: so none is in a core of more than c. 3. Figures.
    Of one k-core, members are checked by 1, and all others by 2 with c = k - 1.

    Parameters
    ----------
    graph : Partition
        What :func:`~apps.shared.undirected.as_undirected` made.
    core : (masters,) int32
        Core numbers; with ``k``, 1 for members, else 0.
    degeneracy : int, optional
        The highest core number.
    k, members : int, optional
        The core that was asked for, and its size.

    Raises
    ------
    VerificationError
        On every rank.
    """
    numbers = core if k is None else np.where(core == 1, k, k - 1).astype(np.int32)
    claims = everywhere(graph, sync, numbers, -1).values
    support = np.empty(numbers.size, np.int64)
    _count(graph.offsets, graph.targets, claims, support)
    few = (support < numbers) if k is None else (support < numbers) & (numbers == k)
    tell_node(graph, sync, "core: too few neighbours with as high a number has node", few)
    inside = np.zeros(numbers.size, bool) if k is None else numbers == k
    removed = Label(graph, np.uint8, 0, MAX)
    ready = np.flatnonzero((support <= numbers) & ~inside).astype(np.int32)
    in_edges = transpose(graph)
    queue = np.empty(graph.num_proxies + 1, np.int32)
    queue[: ready.size] = ready
    filled = ready.size
    removed.values[ready] = 1
    while True:
        _remove(
            queue, filled, in_edges.offsets, in_edges.sources, claims, support, removed.values, removed.updated, inside
        )
        removed_here = removed.num_updated_masters()
        sync.broadcast(removed, read="dst")
        lids = removed.take_updated()
        if sync.total(removed_here) == (0,):
            break
        news = lids[lids >= graph.num_masters]
        queue[: news.size] = news
        filled = news.size
    left = (removed.values[: graph.num_masters] == 0) & ~inside
    tell_node(graph, sync, "core: the nodes with its number cannot be peeled off, so it is too low, for node", left)
    _verify_figures(sync, core, degeneracy, members)


def _verify_figures(sync: Sync, core: np.ndarray, degeneracy: int | None, members: int | None) -> None:
    highest = -sync.lowest(-int(core.max(initial=0)))
    (found,) = sync.total(int(np.count_nonzero(core)))
    if degeneracy is not None:
        raise_first(sync, None if highest == degeneracy else f"the highest core number is {highest}, not {degeneracy}")
    if members is not None:
        raise_first(sync, None if found == members else f"the core has {found} members, not {members}")


@njit(cache=True, nogil=True)
def _count(offsets, targets, claims, support):  # type: ignore[no-untyped-def]
    """``support`` of every master: its neighbours whose number is not lower."""
    for lid in range(support.size):
        count = 0
        for edge in range(offsets[lid], offsets[lid + 1]):
            if claims[targets[edge]] >= claims[lid]:
                count += 1
        support[lid] = count


@njit(cache=True, nogil=True)
def _remove(queue, filled, in_offsets, sources, claims, support, removed, updated, inside):  # type: ignore[no-untyped-def]
    """Take the nodes in the queue from their neighbours of the same number, and remove those that can spare it."""
    while filled > 0:
        filled -= 1
        lid = queue[filled]
        if lid < inside.size:
            updated[lid >> 6] |= np.uint64(1) << np.uint64(lid & 63)
        for edge in range(in_offsets[lid], in_offsets[lid + 1]):
            node = sources[edge]
            if claims[node] == claims[lid] and removed[node] == 0 and not inside[node]:
                support[node] -= 1
                if support[node] <= claims[node]:
                    removed[node] = 1
                    queue[filled] = node
                    filled += 1
