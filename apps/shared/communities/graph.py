"""The undirected graph of community detection on several ranks: strengths, communities, and its quotient.

A community has the name of one of its nodes: rank of the node's master * number of nodes + gid. So all ranks know who
keeps its total: the owner, which is the rank of that master.
"""

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cusp import MIN, Label, Partition, Sync
from cusp.apps.operators.communities.interfaces import Communities
from cusp.apps.shared.graphs.undirected import nodes_of
from cusp.kernels.arrays import add, extremes, mapped, numbers, offsets_of, sizes_of, take, total, total_of_floats
from cusp.kernels.interfaces import Build
from cusp.lid_map import map_lids
from cusp.output.gid_order import at_gids, in_gid_order
from cusp.partition import transpose
from cusp.runtime.devices import backend, move, to_host, xp_of
from cusp.runtime.exchange import pieces
from cusp.runtime.mpi import MPI
from gluon.plan import make_plan


@dataclass(frozen=True)
class Level:
    """An undirected graph, whose nodes may each stand for many, and the sync that keeps its labels consistent.

    Attributes
    ----------
    graph : Partition
        As of :func:`~cusp.apps.shared.graphs.undirected.as_undirected`. In a quotient, only nodes that name a community
        have a master, and on one rank its rows are in any order.
    sync : Sync
    weights : (edges,) float64, or (0,) if all are 1
        Of a graph with weights, those of :func:`round_weights`, or sums of them.
    loops : (masters,) float64
        Twice the weight of the edges inside a node.
    strengths : (masters,) float64
        Weight of all edges at a node, plus its loops.
    total : float
        Strengths of all nodes of all ranks.
    resolution : float
        How much the weight that chance would put inside communities counts in their modularity.
    most : int
        Edges up to which each rank has a copy of a level, and goes on alone: all do the same from there on.
    names : (masters,) int64, or None
        Of a copy: what its nodes are called where ranks share them out. They are in the order of these ranks.
    """

    graph: Partition
    sync: Sync
    weights: Any
    loops: Any
    strengths: Any
    total: float
    resolution: float
    most: int
    names: Any = None

    @property
    def xp(self) -> Any:
        """The library of arrays."""
        return xp_of(self.graph.device)

    @property
    def alone(self) -> bool:
        """Whether all communities are named after nodes of this rank: then names are global ids."""
        return self.sync.comm.size == 1

    @functools.cached_property
    def within(self) -> float:
        """Sum of the loops of this rank."""
        return total_of_floats(self.loops)

    @functools.cached_property
    def columns(self) -> tuple[Any, Any]:
        """Offsets by proxy and rows: the masters next to each mirror."""
        csc, own = transpose(replace(self.graph, weights=None)), self.graph.num_masters
        begin = int(csc.offsets[own])
        return self.xp.maximum(csc.offsets - begin, 0), csc.sources[begin:].copy()


@dataclass(frozen=True)
class LocalCommunities:
    """Communities that occur on this rank, numbered by ascending name.

    Attributes
    ----------
    names : (numbers,) int64
    numbers : (proxies,) int32
        Of the community of each proxy.
    """

    names: Any
    numbers: Any

    @property
    def of_proxies(self) -> Any:
        """(proxies,) int64: the name of the community of each."""
        return take(self.names, self.numbers)


def round_weights(graph: Partition, sync: Sync) -> Partition:
    """The graph with weights that add up exactly, in any order, on any device and number of ranks. Collective.

    They are counted in a power of two, of which there are at most 2^53 in the sum of all. So none changes by more than
    2^-52 of that sum, and proportions of whole numbers stay as they are if these add up to less than 2^52. Squares of
    sums, which modularity needs, are far from the limits of floats then.
    """
    if graph.weights is None:
        return graph
    xp = xp_of(graph.device)
    largest = sync.highest(float(extremes(graph.weights)[1]) if graph.weights.size else 0.0)
    if largest == 0:
        return graph
    below = -int(np.frexp(largest)[1])  # 1, or their sum may be infinite
    (total,) = sync.total(total_of_floats(graph.weights, lambda some: xp.ldexp(some, below)))
    scale = below + 52 - int(np.frexp(total)[1])
    return replace(graph, weights=mapped(lambda some: xp.rint(xp.ldexp(some, scale)), graph.weights, dtype=np.float64))


def make_level(graph: Partition, sync: Sync, resolution: float, most: int = 0) -> Level:
    """The first level, of an undirected graph. Collective."""
    xp = xp_of(graph.device)
    offsets, weights = graph.offsets[: graph.num_masters + 1], graph.weights
    if weights is None:
        strengths, weights = sizes_of(offsets).astype(np.float64), xp.empty(0, np.float64)
    else:
        one = xp.zeros(graph.gids.size, np.int32)  # community, in which all edges are
        ops: Communities = backend(Communities, graph.device)
        strengths = ops.weight_inside(offsets, graph.targets, weights, one)
    (whole,) = sync.total(total_of_floats(strengths))
    loops = xp.zeros_like(strengths)
    return synced(Level(graph, sync, weights, loops, strengths, whole, resolution, most))


def synced(level: Level) -> Level:
    """A level with a sync for its own nodes, or a copy of a small one, the same on all ranks. Collective."""
    graph, xp, sync = level.graph, level.xp, level.sync
    if level.alone:
        return level
    if not level.most or sync.total(graph.targets.size)[0] > level.most:
        return replace(level, sync=Sync(make_plan(graph, sync.comm, sync.plan.transport), sync.comm))
    own = graph.num_masters
    offsets = offsets_of(of_all_ranks(level, sizes_of(graph.offsets[: own + 1])))
    gids, targets, names = (
        of_all_ranks(level, each) for each in (graph.gids[:own], take(graph.gids, graph.targets), nodes_of(graph)[:own])
    )
    weights, loops, strengths = (of_all_ranks(level, each) for each in (level.weights, level.loops, level.strengths))
    lid_map = map_lids(graph.num_nodes, gids)
    whole = replace(
        graph, rank=0, num_ranks=1, num_masters=gids.size, mirror_starts=np.full(2, gids.size), gids=gids,
        offsets=offsets, targets=lid_map.lids(targets).astype(np.int32, copy=False), weights=weights,
        has_in=xp.zeros(0, np.bool_), degrees=xp.zeros(0, np.int64), lid_map=lid_map, csc=None,
    )  # fmt: skip
    alone = Sync(make_plan(whole, MPI.COMM_SELF), MPI.COMM_SELF)
    return replace(level, graph=whole, sync=alone, weights=weights, loops=loops, strengths=strengths, names=names)


def of_all_ranks(level: Level, values: Any) -> Any:
    """What each rank has, in the order of the ranks. Collective."""
    build, comm = backend(Build, level.graph.device), level.sync.comm
    return build.xp.concatenate(build.all_to_all(comm, [values] * comm.size))


def of_this_rank(level: Level, copy: Level) -> Any:
    """Those nodes of a copy that would be this rank's if it was shared out like a level."""
    size = level.graph.num_nodes
    return copy.names[copy.names // size == level.graph.rank] % size


def sum_by_community(level: Level, groups: LocalCommunities, values: Any) -> Any:
    """(communities,) float64: sums over this rank's masters; exact in any order, as weights are."""
    sums = level.xp.zeros(groups.names.size, np.float64)
    backend(Communities, level.graph.device).add_by_number(groups.numbers[: level.graph.num_masters], values, sums)
    return sums


def names_of(level: Level, gids: Any) -> Any:
    """(n,) int64: the names of nodes, by their global ids, of which any rank may have the master. Collective."""
    if level.alone:
        return gids
    graph, comm, asked = level.graph, level.sync.comm, to_host(gids)
    _, owners = in_gid_order(graph, np.full(graph.num_masters, comm.rank, np.int64), comm)
    return move(at_gids(owners, asked, graph.num_nodes, comm) * graph.num_nodes + asked, graph.device)


def new_label(level: Level) -> Label:
    """A label in which every node is a community of its own."""
    label = Label(level.graph, np.int64, 0, MIN)
    label.values[...] = nodes_of(level.graph)
    return label


def everywhere(level: Level, values: Any) -> Any:
    """(proxies,) int64: values of masters, also at their mirrors. Collective."""
    if level.alone:
        return values
    label = new_label(level)
    label.values[: level.graph.num_masters] = values
    broadcast(level, label)
    return label.values


def broadcast(level: Level, label: Label) -> None:
    """Give the communities of masters to their mirrors. Collective."""
    label.mark_all()
    level.sync.broadcast(label, read="dst")


def number(level: Level, values: Any) -> LocalCommunities:
    """Number the communities of all proxies. No sort: an index lists names by global id, and each owner's ascend.

    Parameters
    ----------
    values : (proxies,) int64
        Their names.
    """
    build, xp, num_nodes = backend(Build, level.graph.device), level.xp, level.graph.num_nodes
    gids = values if level.alone else mapped(lambda names: names % num_nodes, values)
    index = xp.zeros(2 * (-(-num_nodes // 64)), np.uint64)
    build.mark(index, gids)
    size = build.count_below(index)
    by_gid, names = xp.empty(gids.size, np.int32), xp.empty(size, np.int64)
    build.look_up(index, numbers(0, size, np.int32, level.graph.device), gids, by_gid)
    if level.alone:
        build.list_marked(index, names)
        return LocalCommunities(names, by_gid)
    names[by_gid] = values
    owners, places = names // num_nodes, xp.empty(size, np.int32)
    order = xp.concatenate([xp.flatnonzero(owners == rank) for rank in range(level.sync.comm.size)])
    places[order] = xp.arange(size, dtype=np.int32)
    return LocalCommunities(names[order], take(places, by_gid))


def get_from_owners(level: Level, names: Any, values: Any) -> Any:
    """(n,) values of named nodes, from ``values`` of their masters. Collective. ``names`` ascend."""
    came = _send_to_owners(level, names)
    build = backend(Build, level.graph.device)
    answers = build.all_to_all(level.sync.comm, [take(values, level.graph.lid_map.lids(gids)) for gids in came])
    return build.xp.concatenate(answers)


def add_at_owners(level: Level, names: Any, values: Any) -> Any:
    """(masters,) float64: for the node with each name, the sum of the values of all ranks. Collective."""
    came = _send_to_owners(level, names)
    sums = level.xp.zeros(level.graph.num_masters, np.float64)
    for gids, parts in zip(came, _send_to_owners(level, names, values)):
        add(parts, level.graph.lid_map.lids(gids), sums)
    return sums


def _send_to_owners(level: Level, names: Any, values: Any = None) -> list[Any]:
    """Send values, or the global ids, of ascending names to their owners; what each rank sent here. Collective."""
    build, num_nodes = backend(Build, level.graph.device), level.graph.num_nodes
    if level.alone:
        return [names if values is None else values]
    ends = build.xp.searchsorted(names, build.xp.asarray(np.arange(1, level.sync.comm.size + 1) * num_nodes))
    return build.all_to_all(level.sync.comm, pieces(names % num_nodes if values is None else values, to_host(ends)))


def totals_of(level: Level, groups: LocalCommunities) -> Any:
    """(masters,) float64: strength of the community that is named after each master. Collective."""
    return add_at_owners(level, groups.names, sum_by_community(level, groups, level.strengths))


def modularity(level: Level, groups: LocalCommunities) -> float:
    """Modularity (Newman and Girvan, Phys. Rev. E 69, 2004); 0 for a graph without edges. Collective.

    With a resolution: Reichardt and Bornholdt, Phys. Rev. E 74, 2006.
    """
    return modularity_of(level, float(weights_inside(level, groups).sum()), totals_of(level, groups))


def weights_inside(level: Level, groups: LocalCommunities) -> Any:
    """(masters,) float64: weight of the edges of each node to others of its community."""
    graph, ops = level.graph, backend(Communities, level.graph.device)
    return ops.weight_inside(graph.offsets[: graph.num_masters + 1], graph.targets, level.weights, groups.numbers)


def modularity_of(level: Level, inside: float, totals: Any) -> float:
    """The same from the weight of the edges inside, which ranks have a share of, and :func:`totals_of`. Collective."""
    if level.total == 0:
        return 0.0
    within, squares = level.sync.total(inside + level.within, total_of_floats(totals, lambda some: some * some))
    return float(within / level.total - level.resolution * (squares / level.total**2))


def smallest_members(level: Level, groups: LocalCommunities) -> Any:
    """(masters,) int64: the smallest global id in each master's community. Collective."""
    return least_of_members(level, groups, level.graph.gids[: level.graph.num_masters])


def least_of_members(level: Level, groups: LocalCommunities, values: Any) -> Any:
    """(n,) int64: the least of the values in the community of each; the i-th has the i-th number. Collective."""
    xp, most, numbers = level.xp, np.iinfo(np.int64).max, groups.numbers[: values.size]
    parts = xp.full(groups.names.size, most, np.int64)
    xp.minimum.at(parts, numbers, values)
    if not level.alone:
        least = xp.full(level.graph.num_masters, most, np.int64)
        for gids, some in zip(_send_to_owners(level, groups.names), _send_to_owners(level, groups.names, parts)):
            lids = level.graph.lid_map.lids(gids)
            least[lids] = xp.minimum(least[lids], some)
        parts = get_from_owners(level, groups.names, least)
    return take(parts, numbers)


def which_name(level: Level, groups: LocalCommunities) -> Any:
    """(masters,) bool: after which ones communities are named on any rank. Collective."""
    named = level.xp.zeros(level.graph.num_masters, np.bool_)
    for gids in _send_to_owners(level, groups.names):
        named[level.graph.lid_map.lids(gids)] = True
    return named


def count_communities(level: Level, groups: LocalCommunities) -> int:
    """Number of communities of all ranks. Collective."""
    return int(level.sync.total(total(which_name(level, groups)))[0])
