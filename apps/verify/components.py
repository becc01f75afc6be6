"""Verifiers of connected and of strongly connected components: see apps/verify/check.py."""

from typing import Any

import numpy as np

from cusp import ADD, MAX, EdgeOperator, Label, Partition, Sync
from cusp.apps.verify.check import everywhere, require, sum_by_name, tell_edge, tell_node
from cusp.kernels.arrays import distinct, occurring
from cusp.runtime.compiled_code import njit
from cusp.runtime.devices import move, to_host
from cusp.runtime.exchange import all_to_all

INSIDE = "src.component == dst.component"
ALONG = EdgeOperator("reached", into="dst.reached", where=INSIDE, priority="0")  # all are equal, so each rank drains
AGAINST = EdgeOperator("reached", into="src.reached", where=INSIDE, priority="0")
COUNT_BETWEEN = EdgeOperator("1", into="dst.arriving", where="src.component != dst.component")


def verify_components(part: Partition, sync: Sync, component: Any, components: int, largest: int) -> None:
    """Check connected components, ignoring edge direction. Collective.

    1. A node and its neighbours have the same component. 2. It is named by a global id at or below their own. 3. As
    many nodes are their own component as there are components. By 1 and 2 at most one node of each is, its smallest; so
    by 3 all of these are, and give their components their names. 4. The figures are those of these components.

    On CPUs, 3 is a pass over the edges, which counts components anew. On GPUs walks from the nodes that are their own
    component must reach all others.

    Parameters
    ----------
    component : (masters,) int64
    components, largest : int
        The number of components, and of nodes in the largest.
    """
    on_cpus = {*sync.plan.devices} == {"cpu"}
    if not (on_cpus or part.symmetric or part.csc):
        part = part.with_csc()
    label = _named(part, sync, component)

    def describe(source: int, target: int, weights: np.ndarray) -> str:
        edge = f"{int(part.gids[source])} -> {int(part.gids[target])}"
        return f"the edge {edge} connects the components {label.values[source]} and {label.values[target]}"

    tell_edge(part, sync, "src.component != dst.component", describe, component=label)
    if on_cpus:
        (named,) = sync.total(int((label.masters() == part.gids[: part.num_masters]).sum()))
        right = _count_components(part, sync, label)
        require(sync, named == right, f"component: {named:,} nodes name one, but {right:,} components are connected")
    else:
        reach_all(part, sync, label, [ALONG] if part.symmetric else [ALONG, AGAINST])
    _verify_figures(sync, label, components, largest)


def _count_components(part: Partition, sync: Sync, label: Label) -> int:
    """The number of connected components: every rank unites what its edges connect. Collective.

    Trees of different ranks meet in the nodes that both have. A rank gets what all know of the trees of a component,
    since 1 holds, and unites them.
    """
    root, gids = _trees(part.offsets, part.targets), part.gids
    lists = sync.plan.lists("any")
    shared = occurring(np.concatenate([*map(to_host, lists.mirrors + lists.masters), np.empty(0, np.int32)]))
    alone = np.count_nonzero(np.bincount(root, minlength=root.size))
    alone -= occurring(root[shared]).size
    keeper = label.values[shared] % sync.comm.size
    ends = (
        np.concatenate(all_to_all(sync.comm, [nodes[keeper == rank] for rank in range(sync.comm.size)]))
        for nodes in (gids[shared], gids[root[shared]])
    )
    nodes, numbers = distinct(np.stack([*ends]))
    one, other = numbers.reshape(2, -1)
    order = np.argsort(one, kind="stable")
    united = _trees(np.searchsorted(one[order], np.arange(nodes.size + 1)), other[order])
    (count,) = sync.total(int(alone) + np.count_nonzero(united == np.arange(nodes.size)))
    return int(count)


@njit(cache=True, nogil=True)
def _trees(offsets, targets):  # type: ignore[no-untyped-def]
    """(rows,) int32: the lowest row that edges connect each with (Galler and Fisher, CACM 1964; paths are halved)."""
    above = np.arange(offsets.size - 1).astype(np.int32)
    for row in range(above.size):
        one = above[row]
        for edge in range(offsets[row], offsets[row + 1]):
            other = above[targets[edge]]
            while other != above[other]:
                above[other] = above[above[other]]
                other = above[other]
            while one != above[one]:
                above[one] = above[above[one]]
                one = above[one]
            if one != other:
                above[max(one, other)] = min(one, other)
                one = min(one, other)
    for row in range(above.size):
        above[row] = above[above[row]]
    return above


def verify_strong_components(part: Partition, sync: Sync, component: Any, components: int, largest: int) -> None:
    """Check strongly connected components. Collective.

    1. A component is named by a node with a global id at or below those of its members. 2. Inside of each, walks
    along edges from that node reach all members, and so do walks against them: so they are strongly connected, and
    that node is one of them. 3. Components that no others lead to can be taken away until none is left: so no two
    are strongly connected with each other. 4. The figures are those of these components. In a symmetric graph all
    components are strong.

    Parameters are those of :func:`verify_components`.
    """
    if part.symmetric:
        return verify_components(part, sync, component, components, largest)
    part = part if part.csc else part.with_csc()
    label = _named(part, sync, component)
    reach_all(part, sync, label, [ALONG])
    reach_all(part, sync, label, [AGAINST])
    _take_away(part, sync, label)
    _verify_figures(sync, label, components, largest)


def _named(part: Partition, sync: Sync, component: Any) -> Label:
    """Names of the components of all proxies, if none is above its node. Collective."""
    component = move(component, part.device)
    above = (component < 0) | (component > part.gids[: part.num_masters])
    tell_node(part, sync, "component: not between 0 and the id of node", above)
    return everywhere(part, sync, component, -1)


def reach_all(
    part: Partition, sync: Sync, component: Label, steps: list[EdgeOperator], what: str = "component"
) -> None:
    """Raise if walks from the nodes that name components do not reach all of their nodes. Collective."""
    reached, found = Label(part, np.int32, 0, MAX), 0
    reached.values[component.values == part.gids] = 1
    while found < (found := int(sync.total(int(reached.masters().sum()))[0])):
        for step in steps:
            reached.mark_all()
            sync.broadcast(reached, read="any")
            reached.mark(reached.device.xp.flatnonzero(reached.values))
            step.until_quiet(part, sync, reached=reached, component=component)
    message = f"{what}: not connected with the smallest node of its {what} is node"
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

    own = occurring(names[: part.num_masters])
    kept, _ = sum_by_name(comm, own, np.ones(own.size))
    waiting = np.zeros(kept.size)
    entered, edges = edges_from(None)
    waiting[np.searchsorted(kept, entered)] = edges
    ready, left = kept[waiting == 0], kept.size
    while (gone := np.concatenate(comm.allgather(ready))).size:
        left -= ready.size
        first, last = (np.searchsorted(names, gone, side, sorter=by_name) for side in ("left", "right"))
        sizes, ends = last - first, np.cumsum(last - first)
        places = np.repeat(last - ends, sizes) + np.arange(ends[-1])
        arriving.mark(move(by_name[places], part.device))
        entered, edges = edges_from(arriving.swap_updated())
        places = np.searchsorted(kept, entered)
        waiting[places] -= edges
        ready = entered[waiting[places] == 0]
    (left,) = sync.total(int(left))
    require(sync, left == 0, f"{left} components are too small: they lie on cycles")


def _verify_figures(sync: Sync, component: Label, components: int, largest: int) -> None:
    """Check the number of components, and of nodes in the largest. Collective."""
    names, places = distinct(to_host(component.masters()))
    _, sizes = sum_by_name(sync.comm, names, np.bincount(places))
    right = (*sync.total(sizes.size), sync.highest(int(sizes.max(initial=0))))
    message = f"the number of components and the size of the largest are {right}, not {components}, {largest}"
    require(sync, right == (components, largest), message)
