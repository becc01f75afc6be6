"""Verifiers of components: see apps/verify.py."""

import numpy as np
from numba import njit

from apps.components import largest_component
from apps.verify import everywhere, raise_first, tell_node
from cusp.partition import Partition, transpose
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
    gids = part.gids[: part.num_masters]
    tell_node(part, sync, "component: not a node at or below node", (component < 0) | (component > gids))
    labels = everywhere(part, sync, component, -1).values
    edge = _first_crossing(part.offsets, part.targets, labels)
    _tell_edge(part, sync, edge, labels)
    reached = Label(part, np.uint8, 0, MAX)
    for lid in np.flatnonzero(component == gids):
        reached.values[lid] = 1
        reached.updated[lid >> 6] |= np.uint64(1) << np.uint64(lid & 63)
    csc = part.csc or transpose(part)
    queue = np.empty(part.num_proxies, np.int32)
    while True:
        sync.reduce(reached, write="any")
        sync.broadcast(reached, read="any")
        lids = reached.take_updated()
        if sync.total(lids.size) == (0,):
            break
        queue[: lids.size] = lids
        _walk(queue, lids.size, part.offsets, part.targets, csc.offsets, csc.sources, reached.values, reached.updated)
    unreached = reached.values[: part.num_masters] == 0
    tell_node(part, sync, "component: not connected with the node that names its component is node", unreached)
    verify_figures(sync, component, gids, components, largest)


def verify_figures(sync: Sync, component: np.ndarray, gids: np.ndarray, components: int, largest: int) -> None:
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
def _walk(queue, filled, offsets, targets, in_offsets, sources, reached, updated):  # type: ignore[no-untyped-def]
    """Reach all that edges, taken both ways, connect with the nodes in the queue."""
    while filled > 0:
        filled -= 1
        lid = queue[filled]
        for way in range(2):
            starts, ends = (offsets, targets) if way == 0 else (in_offsets, sources)
            for edge in range(starts[lid], starts[lid + 1]):
                node = ends[edge]
                if reached[node] == 0:
                    reached[node] = 1
                    updated[node >> 6] |= np.uint64(1) << np.uint64(node & 63)
                    queue[filled] = node
                    filled += 1
