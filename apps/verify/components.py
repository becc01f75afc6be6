"""Verifiers of connected and of strongly connected components: see apps/verify/check.py."""

from typing import Any

import numpy as np

from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.verify.check import everywhere, require, sum_by_name, tell_edge, tell_node
from cusp.partition import Partition
from cusp.runtime.devices import move, to_host
from gluon.label import Label
from gluon.reduction import ADD, MAX
from gluon.sync import Sync

ALONG = EdgeOperator("reached", into="dst.reached")
AGAINST = EdgeOperator("reached", into="src.reached")
INSIDE = "src.component == dst.component"
ALONG_INSIDE = EdgeOperator("reached", into="dst.reached", where=INSIDE)
AGAINST_INSIDE = EdgeOperator("reached", into="src.reached", where=INSIDE)
COUNT_BETWEEN = EdgeOperator("1", into="dst.arriving", where="src.component != dst.component")


def verify_components(part: Partition, sync: Sync, component: Any, components: int, largest: int) -> None:
    """Check connected components, edges taken both ways. Collective.

    1. A node and its neighbours have the same component. 2. It is named by a node with a global id at or below their
    own. 3. Walks from the nodes that are their own component reach all nodes. By 1 and 2 a component is connected to no
    other and its name is at or below its smallest node; by 3 all nodes of one name are connected with the node of
    that name, which is then the smallest. 4. The figures are those of these components.

    Parameters
    ----------
    component : (masters,) int64
    components, largest : int
        The number of components, and of nodes in the largest.

    Raises
    ------
    VerificationError
        On every rank, with the first node or edge that is wrong.
    """
    part = part if part.symmetric or part.csc else part.with_csc()
    label = _named(part, sync, component)

    def describe(source: int, target: int, weights: np.ndarray) -> str:
        edge = f"{int(part.gids[source])} -> {int(part.gids[target])}"
        return f"the edge {edge} connects the components {label.values[source]} and {label.values[target]}"

    tell_edge(part, sync, "src.component != dst.component", describe, component=label)
    _reach_all(part, sync, label, [ALONG] if part.symmetric else [ALONG, AGAINST])
    _verify_figures(sync, label, components, largest)


def verify_strong_components(part: Partition, sync: Sync, component: Any, components: int, largest: int) -> None:
    """Check strongly connected components. Collective.

    1. A component is named by a node with a global id at or below those of its members. 2. Inside of each, walks
    along edges from that node reach all members, and so do walks against them: so they are strongly connected, and
    that node is one of them. 3. Components that no others lead to can be taken away until none is left: so no two
    are strongly connected with each other. 4. The figures are those of these components. In a symmetric graph all
    components are strong.

    Parameters and errors are those of :func:`verify_components`.
    """
    if part.symmetric:
        return verify_components(part, sync, component, components, largest)
    part = part if part.csc else part.with_csc()
    label = _named(part, sync, component)
    _reach_all(part, sync, label, [ALONG_INSIDE], component=label)
    _reach_all(part, sync, label, [AGAINST_INSIDE], component=label)
    _take_away(part, sync, label)
    _verify_figures(sync, label, components, largest)


def _named(part: Partition, sync: Sync, component: Any) -> Label:
    """Names of the components of all proxies, if none is above its node. Collective."""
    component = move(component, part.device)
    above = (component < 0) | (component > part.gids[: part.num_masters])
    tell_node(part, sync, "component: not between 0 and the id of node", above)
    return everywhere(part, sync, component, -1)


def _reach_all(part: Partition, sync: Sync, label: Label, steps: list[EdgeOperator], **given: Any) -> None:
    """Raise if walks from the nodes that name components do not reach all nodes. Collective."""
    reached = Label(part, np.int32, 0, MAX)
    names = label.values == part.gids
    reached.values[names] = 1
    reached.mark(reached.device.xp.flatnonzero(names))
    while sync.total(reached.num_updated_masters()) != (0,):
        frontier = reached.swap_updated()
        for step in steps:
            step(part, frontier=frontier, reached=reached, **given)
        sync.reduce(reached, write="any")
        sync.broadcast(reached, read="any")
    message = "component: not connected with the smallest node of its component is node"
    tell_node(part, sync, message, reached.masters() == 0)


def _take_away(part: Partition, sync: Sync, component: Label) -> None:
    """Raise if edges between components make a cycle (Kahn, CACM 1962). Collective.

    The rank that keeps a name knows how many edges still lead to the component.
    """
    comm, names = sync.comm, to_host(component.values)
    by_name = np.argsort(names, kind="stable")
    arriving = Label(part, np.int64, 0, ADD)

    def edges_from(frontier: Any) -> tuple[np.ndarray, np.ndarray]:
        """Components that edges from these proxies lead to, and the number of those edges. Collective."""
        COUNT_BETWEEN(part, frontier=frontier, arriving=arriving, component=component)
        lids = arriving.take_updated()
        counts = to_host(arriving.values[lids])
        arriving.values[lids] = 0
        return sum_by_name(comm, names[to_host(lids)], counts)

    own = np.unique(names[: part.num_masters])
    kept, _ = sum_by_name(comm, own, np.ones(own.size))
    waiting = np.zeros(kept.size)
    entered, edges = edges_from(None)
    waiting[np.searchsorted(kept, entered)] = edges
    ready, left = kept[waiting == 0], kept.size
    while sync.total(ready.size) != (0,):
        left -= ready.size
        gone = np.concatenate(comm.allgather(ready))
        first, last = (np.searchsorted(names, gone, side, sorter=by_name) for side in ("left", "right"))
        places = np.repeat(last - np.cumsum(last - first), last - first) + np.arange((last - first).sum())
        arriving.mark(move(by_name[places], part.device))
        entered, edges = edges_from(arriving.swap_updated())
        places = np.searchsorted(kept, entered)
        waiting[places] -= edges
        ready = entered[waiting[places] == 0]
    (left,) = sync.total(int(left))
    require(sync, left == 0, f"{left} components are too small: they lie on cycles")


def _verify_figures(sync: Sync, component: Label, components: int, largest: int) -> None:
    """Check the number of components, and of nodes in the largest. Collective."""
    names, sizes = np.unique(to_host(component.masters()), return_counts=True)
    _, sizes = sum_by_name(sync.comm, names, sizes)
    right = (*sync.total(sizes.size), sync.highest(int(sizes.max(initial=0))))
    message = f"the number of components and the size of the largest are {right}, not {components}, {largest}"
    require(sync, right == (components, largest), message)
