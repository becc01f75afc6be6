"""Strongly connected components: the smallest node of each node's component, every edge in its own direction.

``mpirun -n 4 python -m apps.scc graph.h5 --verify --output components.h5``

>>> from cusp import partition_graph, scc
>>> graph = partition_graph(([0, 1, 2, 2], [1, 2, 0, 3]))
>>> scc(graph).component
array([0, 0, 0, 3])
"""

from typing import Any, NamedTuple

import numpy as np

from cusp import ADD, MAX, MIN, Answer, App, EdgeOperator, Label, Partition, Sync, main, run_main
from cusp.apps.cc import Shared, cc
from cusp.apps.cc import prepare as prepare_cc
from cusp.apps.shared.components import largest_component
from cusp.apps.shared.splitmix64 import distinct_lots
from cusp.apps.verify.components import verify_strong_components
from cusp.kernels.arrays import total
from cusp.runtime.devices import move, to_host, xp_of

FAR = 2**63 - 1  # color of nodes that are done
PIVOT = 2**62  # subtracted from the color of the pivot

LESS_IN = EdgeOperator("-1", into="dst.ins")
LESS_OUT = EdgeOperator("-1", into="src.outs")
COLOR = EdgeOperator("src.color", into="dst.color", where="dst.root < 0")
REACH = EdgeOperator("dst.reach", into="src.reach", where="src.color == dst.color")
NAME = EdgeOperator("src.name", into="dst.name", where="src.root == dst.root")


class Colors(NamedTuple):
    """The color that each node starts with.

    Attributes
    ----------
    values : (proxies,) int64
        Distinct, with the global id in the lowest bits; random, and below 0 for the pivot alone.
    pivot : int
        The node with the most out-edges.
    """

    values: Any
    pivot: int


def scc(part: Partition, sync: Sync, colors: Colors | Shared) -> Answer:
    """Smallest global id in the strongly connected component of every node. Collective.

    In steps (Slota, Rajamanickam, Madduri, IPDPS 2014): trimming finishes nodes without in-edges or out-edges among the
    nodes that are left, again and again. Then the pivot gives its color to all nodes that it leads to; those of them
    that lead back to it are its component, usually the largest. After that all nodes that are left give their colors,
    and each takes the lowest that reaches it: the nodes of one color that lead back to the node that gave it are its
    component (Orzan, PhD thesis, Amsterdam 2004). This is repeated with the rest. Colors are random, so long chains of
    components break in halves.

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
    root = Label(part, np.int64, -1, MAX)
    trimming, coloring = Trimming(part, sync, root), Coloring(part, sync, root, colors)
    rounds = trimming.close(xp.arange(part.num_masters, dtype=np.int32), trim=True)
    from_pivot = True
    while trimming.left > 0:
        members, more = coloring.find_members(from_pivot)
        rounds += more + trimming.close(members)
        from_pivot = False
    component, more = _name(part, sync, root, colors.pivot)
    names, sizes = (to_host(values) for values in xp.unique(component, return_counts=True))
    (components,) = sync.total(total(component == part.gids[: part.num_masters]))
    figures = {"components": components, "largest": largest_component(sync, names, sizes)}
    return Answer({"component": component}, None, rounds + more, figures)


def _name(part: Partition, sync: Sync, root: Label, pivot: int) -> tuple[Any, int]:
    """Smallest node of each master's component, of which ``root`` is one node; and the rounds. Collective."""
    xp, own = root.device.xp, slice(0, part.num_masters)
    of_pivot = root.values == pivot
    members = part.gids[own][of_pivot[own]]
    smallest = sync.lowest(int(members.min()) if members.size else FAR)
    name = Label(part, np.int64, 0, MIN)
    name.values[:] = xp.where(of_pivot, smallest, part.gids)
    name.mark(xp.flatnonzero(~of_pivot))
    rounds = flood(NAME, part, sync, name, name=name, root=root)
    return name.values[own].copy(), rounds


def flood(operator: EdgeOperator, part: Partition, sync: Sync, label: Label, **given: Any) -> int:
    """Run from the updated proxies on until no proxy changes, mirrors included; returns the rounds. Collective."""
    rounds = 0
    while sync.total(int(label.device.count_bits(label.updated, part.num_proxies))) != (0,):
        operator(part, frontier=label.swap_updated(), **given)
        sync.reduce(label, write=operator.write)
        sync.broadcast(label, read="any")
        sync.end_round()
        rounds += 1
    return rounds


class Coloring:
    """Finds components among the nodes that are left: those of one color that lead back to the node that gave it.

    Attributes
    ----------
    root : Label
        -1 for what is left; the node after which a component is called, for the others.
    color, reach : Label
    """

    def __init__(self, part: Partition, sync: Sync, root: Label, colors: Colors) -> None:
        self.part, self.sync, self.root, self.first = part, sync, root, colors.values
        self.color, self.reach = Label(part, np.int64, 0, MIN), Label(part, np.int32, 0, MAX)

    def find_members(self, from_pivot: bool) -> tuple[Any, int]:
        """Give the masters in the components found their root; their local ids, and rounds. Collective.

        Parameters
        ----------
        from_pivot : bool
            Only the pivot gives its color.
        """
        color, reach, xp, left = self.color, self.reach, self.root.device.xp, self.root.values < 0
        starts = left & (self.first < 0) if from_pivot else left
        color.values[:] = xp.where(left, self.first, FAR)  # every node takes the lowest color of those that lead to it
        color.mark(xp.flatnonzero(starts))
        rounds = flood(COLOR, self.part, self.sync, color, color=color, root=self.root)
        reach.values[:] = starts & (color.values == self.first)  # from what kept its own, against edges, to its color
        reach.mark(xp.flatnonzero(reach.values))
        rounds += flood(REACH, self.part, self.sync, reach, reach=reach, color=color)
        members = xp.flatnonzero(reach.masters())
        gid_bits = (1 << self.part.num_nodes.bit_length()) - 1
        self.root.values[members] = color.values[members] & gid_bits
        return members, rounds


class Trimming:
    """Counts the edges to and from every node that is left, among such nodes; those without either kind are done.

    Attributes
    ----------
    root : Label
        -1 for what is left.
    left : int
        Nodes of the whole graph.
    """

    def __init__(self, part: Partition, sync: Sync, root: Label) -> None:
        assert part.csc is not None
        self.part, self.sync, self.root, self.left = part, sync, root, part.num_nodes
        self.ins, self.outs = Label(part, np.int64, 0, ADD), Label(part, np.int64, 0, ADD)
        for label, offsets in (self.ins, part.csc.offsets), (self.outs, part.offsets):
            label.values[:] = offsets[1:] - offsets[:-1]
            label.mark(root.device.xp.arange(part.num_proxies))
        self._exchange()
        self.ins.swap_updated()
        self.outs.swap_updated()

    def close(self, lids: Any, trim: bool = False) -> int:
        """Send all ranks which masters are done, and trim the nodes that this leaves alone; returns rounds. Collective.

        Parameters
        ----------
        lids : (n,) integers
            Masters that got their root; with ``trim``, masters to be trimmed if they are alone.
        """
        root = self.root
        rounds = 0
        while True:
            if trim:
                alone = (self.ins.values[lids] <= 0) | (self.outs.values[lids] <= 0)
                lids = lids[alone & (root.values[lids] < 0)]
                root.values[lids] = self.part.gids[lids]
            (closing,) = self.sync.total(int(lids.size))
            if closing == 0:
                return rounds
            self.left -= closing
            rounds += 1
            root.mark(lids)
            self.sync.broadcast(root, read="any")
            self.sync.end_round(closing=closing)
            if self.left == 0:
                return rounds
            closed = root.swap_updated()
            LESS_IN(self.part, frontier=closed, ins=self.ins)
            LESS_OUT(self.part, frontier=closed, outs=self.outs)
            self._exchange()
            self.ins.updated |= self.outs.swap_updated()
            lids, trim = self.ins.take_updated(), True
            lids = lids[lids < self.part.num_masters]

    def _exchange(self) -> None:
        self.sync.reduce(self.ins, write="dst")
        self.sync.reduce(self.outs, write="src")


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
    colors[gids == pivot] -= PIVOT
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
