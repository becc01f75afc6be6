"""Strongly connected components: the smallest node of each node's component, every edge in its own direction.

``mpirun -n 4 python -m apps.scc graph.h5 --verify --output components.h5``

>>> from cusp import partition_graph, scc
>>> graph = partition_graph(([0, 1, 2, 2], [1, 2, 0, 3]))
>>> scc(graph).component
array([0, 0, 0, 3])
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cusp import MAX, MIN, Answer, App, EdgeOperator, Label, Partition, Sync, main, run_main
from cusp.apps.cc import Shared, cc
from cusp.apps.cc import prepare as prepare_cc
from cusp.apps.shared.components import largest_component
from cusp.apps.shared.splitmix64 import distinct_lots
from cusp.apps.verify.components import verify_strong_components
from cusp.kernels.arrays import compress, mapped, put, take, total
from cusp.runtime.devices import device_of, move, to_host, xp_of

FAR = 2**63 - 1  # what no color has reached
MIXES = 0x1E3779B97F4A7C15  # an odd factor

AHEAD = EdgeOperator("src.lowest", into="dst.lowest", where="src.group == dst.group")
BACK = EdgeOperator("dst.lowest", into="src.lowest", where="src.group == dst.group")


class Colors(NamedTuple):
    """What components are found by.

    Attributes
    ----------
    values : (proxies,) int64
        A color for each node: distinct, random, with the global id in the lowest bits.
    pivot : int
        The node with the most out-edges.
    """

    values: Any
    pivot: int


def scc(part: Partition, sync: Sync, colors: Colors | Shared) -> Answer:
    """Smallest global id in the strongly connected component of every node. Collective.

    A node takes the lowest color that leads to it, and the lowest that it leads to. If both are the same, it is in the
    component of the node of that color. All others stay in a group with those that took the same two: other groups have
    nothing of their component, so edges between groups count no more. This is repeated with what is left (ECL-SCC:
    Alabandi, Sands, Biros, Burtscher, SC 2023), and finds at least one component of each group. First only one node,
    the pivot, has a color: its component is usually the largest (Fleischer, Hendrickson, Pinar, IPDPS workshops 2000).
    Colors are random, so long chains of components break in halves.

    Parameters
    ----------
    part : Partition
        With ``csc``, if the graph is not symmetric. If it is, every component is strong: ``cc`` finds them.
    colors : Colors or Shared
        What :func:`prepare` returned.

    Returns
    -------
    Answer
        ``component`` (int64) of this rank's masters; the number of ``components`` and the nodes in the
        ``largest`` as figures.
    """
    if isinstance(colors, Shared):
        return cc(part, sync, colors)
    xp = xp_of(part.device)
    search = Search(part, sync, colors.values)
    search.advance(xp.flatnonzero(part.gids == colors.pivot))
    while sync.total(search.left.size) != (0,):
        search.advance(search.left)
    component, largest = search.name(colors.pivot)
    (components,) = sync.total(total(component == part.gids[: part.num_masters]))
    return Answer({"component": component}, None, search.rounds, {"components": components, "largest": largest})


class Search:
    """The groups of nodes that may still be in one component, and those whose component is known.

    Attributes
    ----------
    group : Label
        A number below 0 says that the component is known: it is -1 less a node of it.
    left : (n,) int32
        Proxies whose component is not known.
    rounds : int
    """

    def __init__(self, part: Partition, sync: Sync, colors: Any) -> None:
        self.part, self.sync, self.colors, self.rounds = part, sync, colors, 0
        self.group = Label(part, np.int64, 0, MAX)
        self.lowest = Label(part, np.int64, FAR, MIN), Label(part, np.int64, FAR, MIN)
        self.gid_bits = np.int64((1 << part.num_nodes.bit_length()) - 1)
        self.left = xp_of(part.device).arange(part.num_proxies, dtype=np.int32)

    def advance(self, colored: Any) -> None:
        """Let these proxies, all of a node, give their colors to those that are left, and divide groups. Collective."""
        group, left = self.group, self.left
        colors = take(self.colors, colored)
        for label, operator in zip(self.lowest, (AHEAD, BACK)):
            put(colors, colored, label.values)
            self._spread(operator, label, colored)
        source, target = (take(label.values, left) for label in self.lowest)
        put(mapped(partial(_group_of, self.gid_bits), source, target), left, group.values)
        group.mark(left)
        self.sync.broadcast(group, read="any")
        group.swap_updated()
        self.left = compress(take(group.values, left) >= 0, left)

    def _spread(self, operator: EdgeOperator, label: Label, proxies: Any) -> None:
        """Let the values of these proxies spread in their groups. Collective."""
        label.mark(proxies)
        self.rounds += operator.until_quiet(self.part, self.sync, lowest=label, group=self.group)

    def name(self, pivot: int) -> tuple[Any, int]:
        """The smallest node of each master's component, and the nodes in the largest. Collective."""
        part, sync, name = self.part, self.sync, self.lowest[0]
        xp, own = xp_of(part.device), slice(0, part.num_masters)
        root = mapped(lambda group: -1 - group, self.group.values)
        of_pivot = root == pivot
        members = compress(of_pivot[own], part.gids[own])
        smallest = sync.lowest(int(members.min()) if members.size else FAR)
        name.values[:] = xp.where(of_pivot, smallest, xp.minimum(root, part.gids))
        self._spread(AHEAD, name, xp.flatnonzero((part.gids < root) & ~of_pivot))
        component = name.masters().copy()
        followers = compress((component != part.gids[own]) & ~of_pivot[own], component)  # all but the node of that name
        names, sizes = (to_host(values) for values in xp.unique(followers, return_counts=True))
        most = largest_component(sync, names, sizes)
        return component, max(*sync.total(members.size), most and 1 + most)


def _group_of(gid_bits: Any, source: Any, target: Any) -> Any:
    """Numbers of the groups of those that took these two colors; below 0, the component, where both are one.

    Should two groups have one number, the edges between them go on to count: paths along them are true ones.
    """
    known = (source == target) & (source != FAR)
    return xp_of(device_of(source)).where(known, -1 - (source & gid_bits), (source * MIXES ^ target) & FAR)


def prepare(part: Partition, sync: Sync) -> Colors | Shared:
    """Give every node a color, and choose the pivot; or what components of a symmetric graph need. Collective."""
    if part.symmetric:
        return prepare_cc(part, sync)
    gids = to_host(part.gids)
    colors = distinct_lots(gids, 1, part.num_nodes)
    degrees = to_host(part.degrees)
    most = int(degrees.argmax()) if degrees.size else None
    local = (-1, -1) if most is None else (int(degrees[most]), int(gids[most]))
    _, pivot = max(sync.comm.allgather(local))
    return Colors(move(colors, part.device), pivot)


APP = App(
    name="scc",
    summary="strongly connected components: the smallest node of each",
    prepare=lambda part, sync, options: prepare(part, sync),
    run=lambda part, sync, _, colors, options: scc(part, sync, colors),
    nodes=("component",),
    verify=lambda part, sync, _, answer, *rest: verify_strong_components(part, sync, **answer.labels, **answer.figures),
    needs_csc=lambda options, symmetric: not symmetric,
    needs_source=False,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
