"""Verifiers of components: see apps/verify/check.py."""

import numpy as np
from numba import njit

from apps.shared.components import largest_component
from apps.verify.check import everywhere, raise_first, tell_node
from cusp.partition import Partition, transpose
from cusp.runtime.exchange import all_to_all
from gluon.label import Label
from gluon.reduction import MAX
from gluon.sync import Sync


def verify_components(part: Partition, sync: Sync, component: np.ndarray, components: int, largest: int) -> None:
    """Check connected components, edges taken both ways. Collective.

    1. A node and its neighbours have the same component. 2. It is a node with a global id at or below their own.
    3. Walks from the nodes that are their own component reach all nodes. By 1 and 2 a component is connected to no
    other and named by a node that is not above its smallest; by 3 all that have one name are connected with the node of
    that name, which is then the smallest. 4. The figures are those of these components.

    Parameters
    ----------
    component : (masters,) int64
    components, largest : int
        How many there are, and nodes in the largest.

    Raises
    ------
    VerificationError
        On every rank.
    """
    labels = _named(part, sync, component)
    edge = _first_crossing(part.offsets, part.targets, labels)
    _tell_edge(part, sync, edge, labels)
    csc = part.csc or transpose(part)
    _reach_all(part, sync, labels, (part.offsets, part.targets), (csc.offsets, csc.sources))
    _verify_figures(sync, component, part.gids[: part.num_masters], components, largest)


def verify_strong_components(part: Partition, sync: Sync, component: np.ndarray, components: int, largest: int) -> None:
    """Check strongly connected components. Collective.

    1. A component is named by a node with a global id at or below those of its members. 2. Inside of each, walks
    along edges from that node reach all members, and so do walks against them: so they are strongly connected, and
    that node is one of them. 3. Components from which no others lead can be taken away until none is left: so no two
    are strongly connected with each other. 4. The figures are those of these components.

    Parameters
    ----------
    component : (masters,) int64
    components, largest : int
        How many there are, and nodes in the largest.

    Raises
    ------
    VerificationError
        On every rank.
    """
    labels = _named(part, sync, component)
    csc = part.csc or transpose(part)
    none = (np.zeros(part.num_proxies + 1, np.int64), np.empty(0, np.int32))
    _reach_all(part, sync, labels, (part.offsets, part.targets), none)
    _reach_all(part, sync, labels, (csc.offsets, csc.sources), none)
    _take_away(part, sync, labels)
    _verify_figures(sync, component, part.gids[: part.num_masters], components, largest)


def _named(part: Partition, sync: Sync, component: np.ndarray) -> np.ndarray:
    """Names of the components of all proxies, if none is above its node. Collective."""
    above = (component < 0) | (component > part.gids[: part.num_masters])
    tell_node(part, sync, "component: not a node at or below node", above)
    return everywhere(part, sync, component, -1).values


def _reach_all(
    part: Partition, sync: Sync, labels: np.ndarray, one: tuple[np.ndarray, np.ndarray],
    other: tuple[np.ndarray, np.ndarray],
) -> None:  # fmt: skip
    """Raise if walks inside of components, from the nodes that name them, do not reach all. Collective."""
    reached = Label(part, np.uint8, 0, MAX)
    for lid in np.flatnonzero(labels == part.gids):
        reached.values[lid] = 1
        reached.updated[lid >> 6] |= np.uint64(1) << np.uint64(lid & 63)
    queue = np.empty(part.num_proxies, np.int32)
    while True:
        sync.reduce(reached, write="any")
        sync.broadcast(reached, read="any")
        lids = reached.take_updated()
        if sync.total(lids.size) == (0,):
            break
        queue[: lids.size] = lids
        _walk(queue, lids.size, *one, *other, labels, reached.values, reached.updated)
    unreached = reached.values[: part.num_masters] == 0
    tell_node(part, sync, "component: not connected with the node that names its component is node", unreached)


def _take_away(part: Partition, sync: Sync, labels: np.ndarray) -> None:
    """Raise if edges between components make a cycle (Kahn, CACM 1962). Collective.

    Rank c modulo the ranks knows how many edges still lead to component c.
    """
    sources, targets = np.repeat(labels, np.diff(part.offsets)), labels[part.targets]
    between = sources != targets
    order = np.argsort(sources[between], kind="stable")
    sources, targets = sources[between][order], targets[between][order]
    names = np.unique(_send(sync, np.unique(labels[: part.num_masters])))
    waiting = np.bincount(np.searchsorted(names, _send(sync, targets)), minlength=names.size)
    ready, left = names[waiting == 0], names.size
    while sync.total(ready.size) != (0,):
        left -= ready.size
        gone = np.concatenate(sync.comm.allgather(ready))
        first, last = np.searchsorted(sources, gone), np.searchsorted(sources, gone, side="right")
        edges = np.repeat(last - np.cumsum(last - first), last - first) + np.arange((last - first).sum())
        places = np.searchsorted(names, _send(sync, targets[edges]))
        lost = np.bincount(places, minlength=names.size)
        waiting -= lost
        ready = names[(waiting == 0) & (lost > 0)]
    (left,) = sync.total(int(left))
    raise_first(sync, f"{left} components lead to each other in circles, so they are too small" if left else None)


def _send(sync: Sync, names: np.ndarray) -> np.ndarray:
    """Names of components, sent to the ranks that know them. Collective."""
    rank = names % sync.comm.size
    return np.concatenate(all_to_all(sync.comm, [names[rank == other] for other in range(sync.comm.size)]))


def _verify_figures(sync: Sync, component: np.ndarray, gids: np.ndarray, components: int, largest: int) -> None:
    """Check how many components there are, and the nodes in the largest. Collective."""
    found = sync.total(int(np.count_nonzero(component == gids))) + (
        largest_component(sync, *np.unique(component, return_counts=True)),
    )
    told = None if found == (components, largest) else f"{components}, {largest}"
    raise_first(sync, told and f"the number of components and the size of the largest are {found}, not {told}")


def _tell_edge(part: Partition, sync: Sync, edge: tuple[int, int], labels: np.ndarray) -> None:
    message = None
    if edge[0] >= 0:
        (source, target), (one, other) = part.gids[list(edge)], labels[list(edge)]
        message = f"the edge {source} -> {target} connects the components {one} and {other}"
    raise_first(sync, message)


@njit(cache=True, nogil=True)
def _first_crossing(offsets, targets, labels):  # type: ignore[no-untyped-def]
    """Ends of the first edge between two components, or -1, -1."""
    for source in range(offsets.size - 1):
        for edge in range(offsets[source], offsets[source + 1]):
            if labels[targets[edge]] != labels[source]:
                return source, np.int64(targets[edge])
    return -1, -1


@njit(cache=True, nogil=True)
def _walk(queue, filled, offsets, targets, in_offsets, sources, labels, reached, updated):  # type: ignore[no-untyped-def]
    """Reach all that edges of either kind, inside of components, connect with the nodes in the queue."""
    while filled > 0:
        filled -= 1
        lid = queue[filled]
        for way in range(2):
            starts, ends = (offsets, targets) if way == 0 else (in_offsets, sources)
            for edge in range(starts[lid], starts[lid + 1]):
                node = ends[edge]
                if reached[node] == 0 and labels[node] == labels[lid]:
                    reached[node] = 1
                    updated[node >> 6] |= np.uint64(1) << np.uint64(node & 63)
                    queue[filled] = node
                    filled += 1
