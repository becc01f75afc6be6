"""Graphs made of a level: the quotient, whose nodes are communities, and what lies inside of communities."""

from dataclasses import replace
from typing import Any

import numpy as np

from cusp import Partition
from cusp.apps.operators.communities.interfaces import Communities
from cusp.apps.shared.communities.graph import Level, LocalCommunities, add_at_owners, synced, which_name
from cusp.apps.shared.graphs.undirected import join_rows
from cusp.kernels.arrays import offsets_of, sizes_of
from cusp.lid_map import map_lids
from cusp.runtime.devices import backend, move, to_host, xp_of

ON_HOST = 1 << 16  # nodes and edges up to which a core needs no longer for a level than a GPU's kernels to be called


def edges_inside(level: Level, groups: LocalCommunities) -> Level:
    """The level without the edges between communities; strengths and loops stay as they are."""
    graph, ops = level.graph, backend(Communities, level.graph.device)
    offsets, targets, weights = ops.edges_inside(graph.offsets, graph.targets, level.weights, groups.numbers)
    return replace(level, graph=replace(graph, offsets=offsets, targets=targets, weights=None), weights=weights)


def quotient(level: Level, groups: LocalCommunities) -> Level:
    """The graph whose nodes are the communities, each at its owner. Collective.

    First the edges of this rank between two communities are joined into one, then the rows go to the owners.
    """
    graph, xp, ops = level.graph, level.xp, backend(Communities, level.graph.device)
    given = graph.offsets, graph.targets, level.weights, groups.numbers, level.loops, level.strengths
    offsets, ends, weights, loops, strengths = ops.join(*given, groups.names.size)
    if level.alone:
        named, gids, starts = graph.lid_map.lids(groups.names), groups.names, np.full(2, groups.names.size)
    else:
        loops, strengths = (add_at_owners(level, groups.names, sums) for sums in (loops, strengths))
        named = xp.flatnonzero(which_name(level, groups))
        named = named[xp.argsort(graph.gids[named], kind="stable")]  # which is quick where they ascend already
        loops, strengths = loops[named], strengths[named]
        mirrors = groups.names[groups.names // graph.num_nodes != graph.rank]
        gids = xp.concatenate([graph.gids[named], mirrors % graph.num_nodes])
        bounds = xp.asarray(np.arange(level.sync.comm.size + 1) * graph.num_nodes)
        starts = named.size + to_host(xp.searchsorted(mirrors, bounds))
    whole = replace(
        graph, num_masters=named.size, mirror_starts=starts, gids=gids, offsets=offsets, targets=ends,
        weights=weights, has_in=graph.has_in[:0], degrees=graph.degrees[:0], lid_map=map_lids(graph.num_nodes, gids),
        csc=None, num_edges=ends.size,
    )  # fmt: skip
    if not level.alone:
        whole = join_rows(whole, [_rows_by_lid(whole, groups)], level.sync.comm)
    names = None if level.names is None else level.names[named]
    above = replace(level, graph=whole, weights=whole.weights, loops=loops, strengths=strengths, names=names)
    return synced(_placed(above))


def _placed(level: Level) -> Level:
    """A level that is too small for a GPU in the memory of the host, where those above it stay; others as they are."""
    if not level.alone or level.graph.num_masters + level.graph.targets.size > min(level.most, ON_HOST):
        return level
    graph = level.graph.on("cpu")
    loops, strengths, names = (move(each, "cpu") for each in (level.loops, level.strengths, level.names))
    return replace(level, graph=graph, weights=graph.weights, loops=loops, strengths=strengths, names=names)


def _rows_by_lid(whole: Partition, groups: LocalCommunities) -> tuple[Any, Any, Any]:
    """Offsets, targets and weights of rows that are numbered as communities; those that stay here come first."""
    xp, offsets, lids = xp_of(whole.device), whole.offsets, whole.lid_map.lids(groups.names % whole.num_nodes)
    own = xp.searchsorted(groups.names // whole.num_nodes, xp.arange(whole.rank, whole.rank + 2))
    begin, end = to_host(offsets[own]).tolist()
    edges: tuple[Any, Any] = lids[whole.targets], whole.weights
    ends, weights = (xp.concatenate([some[begin:end], some[:begin], some[end:]]) for some in edges)
    sizes = xp.zeros(whole.gids.size, np.int64)
    sizes[lids] = sizes_of(offsets)
    return offsets_of(sizes), ends, weights
