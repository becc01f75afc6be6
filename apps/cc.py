"""Connected components: the smallest node of each node's component, ignoring edge direction.

``mpirun -n 4 python -m apps.cc graph.h5 --verify --output components.h5``

>>> from cusp import cc, partition_graph
>>> graph = partition_graph(([0, 2, 4], [1, 1, 3]))
>>> cc(graph).component
array([0, 0, 0, 3, 3])
"""

import functools
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np

from cusp import MIN, Answer, App, Label, Partition, Sync, main, run_main
from cusp.apps.operators.structure.interfaces import Cc
from cusp.apps.operators.ways import Algorithm, Form
from cusp.apps.run.former import REHEARSED, Former, add_from_option
from cusp.apps.shared.components import Directory, largest_component
from cusp.apps.verify.components import verify_components
from cusp.kernels.arrays import mapped, total
from cusp.runtime.devices import backend, move, to_host
from gluon.interfaces import Device
from gluon.mail.post import both_ways, until_quiet

FIRST_EDGES = 2  # of each node, after which one component has most nodes, as a rule
RARE = 16  # a tree with less than one in so many nodes is not left out
INSIDE = -1  # stands for the label of a large tree
PATIENCE = 9  # rounds until trees also ask for lower labels by name


class Shared(NamedTuple):
    """Proxies of nodes that other ranks have too: only their labels matter to other ranks.

    Attributes
    ----------
    lids : (shared,) int32
    bits : (ceil(proxies / 64),) uint64
    prepared : dict
        What is shared by what unites the trees of all ranks.
    """

    lids: Any
    bits: Any
    prepared: dict[str, Any]


def cc(part: Partition, sync: Sync, shared: Shared, former: Former | None = None) -> Answer:
    """Smallest global id in the component of every node. Collective.

    Every rank unites what its edges connect, in a forest of local ids. Then trees of different ranks meet in the nodes
    that both have: on GPUs that reach each other's memory in one kernel on each, else in rounds (:class:`Rounds`).

    In a symmetric graph most edges are left out (Afforest: Sutton, Ben-Nun, Barak, IPDPS 2018): the first few of each
    node connect most of the graph, so every rank leaves out the edges of its largest tree. An edge that leads out of it
    is also stored at its other end, where it is not left out, unless that is in the largest tree of another rank. So
    all of these have to be found in one component; else some ranks take back what they have left out.

    Parameters
    ----------
    shared : Shared
        What :func:`prepare` returned for this partition.
    former : Former, optional
        The components of the graph before it grew: every node is united with the one that its component was named
        after, in place of the first few edges.

    Returns
    -------
    Answer
        ``component`` (int64) of this rank's masters; the number of ``components`` and the nodes in the
        ``largest`` as figures.
    """
    ops, xp = backend(Cc, part.device), backend(Device, part.device).xp
    if former is not None or part.symmetric:
        edges = (part.offsets, part.targets) if former is None else _names_as_edges(part, sync, former)
        parents, left_out = ops.link_first(part, FIRST_EDGES, RARE, *edges)
    else:
        parents = xp.arange(part.num_proxies, dtype=np.int32)
    if not part.symmetric:
        left_out = xp.full(1, -1, np.int32)
    unite = UNITING.run(part, sync, shared.prepared, shared)
    both_ways = part.symmetric and part.num_ranks == 1
    wrong, rounds = -1, 0  # ranks with edges to unite; at first all of them
    while wrong:
        if wrong >> part.rank & 1:
            ops.link_others(part, left_out, both_ways, parents)
        wrong, more, component, figures = unite(parents, left_out)
        rounds += more
        if wrong >> part.rank & 1:
            left_out.fill(-1)
    return Answer({"component": component}, None, rounds, figures)


def _names_as_edges(part: Partition, sync: Sync, former: Former) -> tuple[Any, Any]:
    """Offsets and targets of an edge from each proxy to the node that its former component was named after.

    Where that has no proxy here, a loop takes its place. Collective.
    """
    label, device = Label(part, np.int64, 0, MIN), backend(Device, part.device)
    label.values[:] = part.gids
    own = label.masters()
    own[:] = former.label(part, sync.comm, "component", "i", own, nodes=True)
    label.mark_all()
    sync.broadcast(label, read="any")
    lids, proxies = part.lid_map.lids(label.values), device.xp.arange(part.num_proxies, dtype=np.int32)
    return device.xp.arange(part.num_proxies + 1), device.xp.where(lids < 0, proxies, lids)


class Rounds:
    """Unites trees of different ranks by labels: each tree carries the smallest global id that it knows of.

    In the first round, large trees of ranks that share nodes get one label. Then a sync lowers the label of a proxy,
    and so that of its tree, until nothing changes. The rounds grow with the distance between trees, not between nodes.
    Where trees are far apart, they also look up the current label of the node that is their label: then the rounds grow
    with the logarithm of the distance.
    """

    def __init__(self, part: Partition, sync: Sync, shared: Shared) -> None:
        self.part, self.sync, self.shared, self.ops = part, sync, shared, backend(Cc, part.device)
        self.label = Label(part, np.int32 if part.num_nodes < 2**31 else np.int64, 0, MIN)
        self.label.values[:] = part.gids
        self.shortcut: Shortcut | None = None

    def unite(self, parents: Any, left_out: Any) -> tuple[int, int, Any, dict[str, int]]:
        """See :meth:`~cusp.apps.operators.structure.interfaces.Cc.plan_trees`. Collective."""
        self.ops.flatten(parents)
        rounds, masters = self._agree(parents), self.part.num_masters
        wrong = self._wrong_ranks(left_out) if self.part.symmetric else 0
        if wrong:
            return wrong, rounds, None, {}
        component, first = self.ops.name_components(self.label.masters(), self.part.gids[:masters])
        (components,) = self.sync.total(first)
        return 0, rounds, component, {"components": components, "largest": self._largest(parents)}

    def _agree(self, parents: Any) -> int:
        """Lower labels until all nodes of a tree, and all proxies of a node, have the same; returns rounds."""
        label, sync, lowered, rounds = self.label, self.sync, None, 1
        self.shortcut = None
        self._name_large(parents)
        sync.end_round()
        while True:
            if rounds == PATIENCE:  # roots of trees with nodes that other ranks have too: their components may go on
                everyone = label.device.full(parents.size, 1, parents.dtype)
                roots, _ = self.ops.take_members(parents, everyone, self.shared.lids)
                self.shortcut = Shortcut(label, roots, sync)
            self._lower(parents, lowered)
            changed = sync.total(int(label.device.count_bits(label.updated & self.shared.bits, parents.size)))
            if changed == (0,):
                return rounds
            sync.reduce(label, write="any")
            sync.broadcast(label, read="any")
            sync.end_round(lowered=changed[0])
            lowered, rounds = label.swap_updated(), rounds + 1

    def _lower(self, parents: Any, lowered: Any) -> None:
        """Lower the labels of trees by those of nodes that were lowered, or of all, then those of their other nodes."""
        label = self.label
        self.ops.lower_roots(parents, label.values, lowered, label.updated)
        if self.shortcut:
            self.shortcut()
        self.ops.spread_roots(parents, label.values, label.updated)

    def _name_large(self, parents: Any) -> None:
        """Let the large trees of all ranks begin with the same label, if they are parts of one. Collective.

        Most nodes that several ranks have are in the large trees of all of them. So their masters say this by a bit,
        and nobody sends their labels, unless they fall.
        """
        part, label, comm = self.part, self.label, self.sync.comm
        inside, lowest = self.ops.large_tree(parents, label.values)
        label.updated[:] = _bits_of(inside, label.device)
        self.sync.broadcast(label, read="any", implied=INSIDE)
        label.swap_updated()
        where, values = label.device.xp.where, label.values
        mirrors = [slice(*span) for span in pairwise(part.mirror_starts.tolist())]
        told = [values[some] == INSIDE for some in mirrors]
        shared = [total(bits & inside[some]) for bits, some in zip(told, mirrors)]
        names = _lowest_joined(comm.allgather((lowest, np.flatnonzero(shared))))
        masters, own = slice(0, part.num_masters), names[part.rank]
        values[masters] = mapped(lambda value, of: where(of, own, value), values[masters], inside[masters])
        for bits, some, name in zip(told, mirrors, names):
            values[some] = where(bits, name, values[some])

    def _wrong_ranks(self, left_out: Any) -> int:
        """Ranks, as bits, that left out another component than the first of those that left out any."""
        root = int(left_out[0])
        names = self.sync.comm.allgather(-1 if root < 0 else int(self.label.values[root]))
        first = next((name for name in names if name >= 0), -1)
        return sum(1 << rank for rank, name in enumerate(names) if name not in (-1, first))

    def _largest(self, parents: Any) -> int:
        """Nodes in the largest component."""
        label, members = self.label, self.ops.count_members(parents, self.part.num_masters)
        roots, counts = self.ops.take_members(parents, members, self.shared.lids)
        alone = int(members.max()) if members.size else 0
        return largest_component(self.sync, to_host(label.values[roots]), to_host(counts), alone)


class Mail(Rounds):
    """The same without rounds."""

    def _agree(self, parents: Any) -> int:
        label, steps = self.label, count()

        def lower() -> bool:
            """Nothing is left to do then."""
            self._lower(parents, label.swap_updated() if next(steps) else None)
            return False

        self._name_large(parents)
        return until_quiet(self.sync, lower, *both_ways(label, "any", "any"))


ONE_CALL = Form(
    lambda part, sync, trees, shared: functools.partial(trees, sync),
    lambda part, sync, way: backend(Cc, part.device).plan_trees(part, sync, way),
)
UNITING = Algorithm(
    {
        "whole": ONE_CALL,
        "peers": ONE_CALL,
        "mail": Form(lambda part, sync, _, shared: Mail(part, sync, shared).unite),
        "rounds": Form(lambda part, sync, _, shared: Rounds(part, sync, shared).unite),
    },
    gpus_only=("peers",),
)


class Shortcut:
    """Lowers the labels of trees by what ranks know of their old and new names. A call is collective."""

    def __init__(self, label: Label, roots: Any, sync: Sync) -> None:
        self.label, self.roots = label, roots
        self.directory = Directory(sync, label.part.num_nodes)
        self.first = self.last = self._names()

    def __call__(self) -> None:
        """Record which names belong to one component, and take the lowest known."""
        values, names = self.label.values, self._names()
        self.directory.record(self.first, names)
        self.directory.record(self.last, names)
        self.last = self.directory.look_up(names)
        lower = move(np.flatnonzero(self.last < names), self.label.part.device)
        lids = self.roots[lower]
        values[lids] = move(self.last, self.label.part.device)[lower].astype(values.dtype)
        self.label.mark(lids)

    def _names(self) -> np.ndarray:
        names: np.ndarray = to_host(self.label.values[self.roots]).astype(np.int64)
        return names


def prepare(part: Partition, sync: Sync) -> Shared:
    """Which proxies other ranks have too, and memory."""
    device = backend(Device, part.device)
    lists, marks = sync.plan.lists("any"), device.xp.zeros(-(-part.num_proxies // 64) * 64, bool)
    for own in (*lists.mirrors, *lists.masters):
        marks[own] = True
    bits = _bits_of(marks, device)
    lids = device.take_bits(bits.copy(), part.num_proxies)
    return Shared(lids, bits, UNITING.prepare(part, sync))


def _bits_of(marks: Any, device: Any) -> Any:
    """The bits of proxies, from one bool for each, up to a multiple of 64."""
    return device.xp.packbits(marks, bitorder="little").view(device.no_bits(1).dtype)


def _lowest_joined(found: list[tuple[int, np.ndarray]]) -> list[int]:
    """From a number of each rank, and ranks to which it is joined, for each the lowest of those that are joined."""
    names = np.array([name for name, _ in found], np.int64)
    ends = [(rank, other) for rank, (_, others) in enumerate(found) for other in others]
    one, other = np.array(ends, np.int64).reshape(-1, 2).T
    before = names + 1
    while (names != before).any():
        before, lowest = names.copy(), np.minimum(names[one], names[other])
        np.minimum.at(names, one, lowest)
        np.minimum.at(names, other, lowest)
    return names.tolist()  # type: ignore[no-any-return]


APP = App(
    name="cc",
    summary="connected components: the smallest node of each, ignoring edge direction",
    prepare=lambda part, sync, options: prepare(part, sync),
    run=lambda part, sync, _, shared, options: cc(part, sync, shared, options.start),
    nodes=("component",),
    verify=lambda part, sync, _, answer, *rest: verify_components(part, sync, **answer.labels, **answer.figures),
    add_options=add_from_option,
    rehearsed=REHEARSED,
    needs_source=False,
    needs_rounds=lambda options: "",
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
