"""Verifier of betweenness centrality: see apps/verify/check.py."""

from typing import Any

import numpy as np
from numba import njit

from apps.edge_operator import EdgeOperator
from apps.operators.sums.interfaces import Betweenness
from apps.shared.whole_graph import sum_of_copies, whole_graph
from apps.verify.check import raise_first, tell_node
from cusp.partition import Partition
from cusp.runtime.devices import backend, move, xp_of
from gluon.label import Label
from gluon.reduction import ADD, MIN
from gluon.sync import Sync

FAR = np.iinfo(np.int32).max
ROUNDING = 1e-9  # relative
ON_SHORTEST = "dst.hops == src.hops + 1"
STEP = EdgeOperator("hops + 1", into="dst.hops")
COUNT = EdgeOperator("paths", into="dst.paths", where=ON_SHORTEST)
DEPEND = EdgeOperator("src.paths / dst.paths * (1 + dst.depending)", into="src.depending", where=ON_SHORTEST)


def verify_betweenness(part: Partition, sync: Sync, betweenness: Any, sources: list[int], scale: float) -> None:
    """Check betweenness by computing it anew, edge by edge. Collective.

    1. The dependencies of a source add up to the nodes between it and all that it reaches: hops - 1 for each. 2. Their
    sums over all sources, scaled, are the answer. Small graphs are copied to every rank, which then takes some of the
    sources; in others, all ranks go from level to level.

    Parameters
    ----------
    betweenness : (masters,) float64

    Raises
    ------
    VerificationError
        On every rank.
    """
    if part.device == "cpu" and backend(Betweenness, part.device).sweeps(part, sync, len(sources)):
        expected = _sum_in_copies(part, sync, sources)
    else:
        expected = _sum_along_edges(part if part.csc else part.with_csc(), sync, sources)
    expected *= scale
    wrong = ~(abs(move(betweenness, part.device) - expected) <= ROUNDING * xp_of(part.device).maximum(expected, scale))
    tell_node(part, sync, "betweenness: not what paths, counted again, make of node", wrong)


def _check_sum(source: int, total: float, between: float) -> str | None:
    """What is wrong with the sum of the dependencies of a source."""
    wrong = abs(total - between) > ROUNDING * max(between, 1)
    return f"source {source}: dependencies add up to {total}, not to {between}" if wrong else None


def _sum_along_edges(part: Partition, sync: Sync, sources: list[int]) -> Any:
    """Dependencies of the masters, summed over all sources: level by level. Collective."""
    expected = xp_of(part.device).zeros(part.num_masters, np.float64)
    for source in sources:
        hops, paths, levels = _count_paths(part, sync, source)
        dependencies = _dependencies(part, sync, hops, paths, levels)
        reached = (hops.masters() != FAR) & (hops.masters() > 0)
        total, between = sync.total(float(dependencies[reached].sum()), float((hops.masters()[reached] - 1).sum()))
        raise_first(sync, _check_sum(source, total, between))
        expected[reached] += dependencies[reached]
    return expected


def _sum_in_copies(part: Partition, sync: Sync, sources: list[int]) -> np.ndarray:
    """The same in a small graph: every rank takes some of the sources, in a copy of it. Collective."""
    offsets, targets = whole_graph(part, sync.comm)
    expected, message = np.zeros(part.num_nodes), None
    for source in sources[sync.comm.rank :: sync.comm.size]:
        message = message or _check_sum(source, *_add_dependencies(source, offsets, targets, expected))
    raise_first(sync, message)
    return sum_of_copies(part, sync.comm, expected)


@njit(cache=True, nogil=True)
def _add_dependencies(source, offsets, targets, expected):  # type: ignore[no-untyped-def]
    """Returns the sum of the dependencies of a source, and of the nodes between it and each that it reaches."""
    hops, paths, depending = np.full(expected.size, FAR), np.zeros(expected.size), np.zeros(expected.size)
    hops[source], paths[source] = 0, 1
    order = np.empty(expected.size, np.int64)
    order[0], reached, place = source, 1, 0
    while place < reached:
        node = order[place]
        place += 1
        for edge in range(offsets[node], offsets[node + 1]):
            if hops[targets[edge]] == FAR:
                hops[targets[edge]] = hops[node] + 1
                order[reached] = targets[edge]
                reached += 1
    for node in order[:reached]:
        for edge in range(offsets[node], offsets[node + 1]):
            if hops[targets[edge]] == hops[node] + 1:
                paths[targets[edge]] += paths[node]
    total, between = 0.0, 0.0
    for node in order[1:reached][::-1]:
        for edge in range(offsets[node], offsets[node + 1]):
            if hops[targets[edge]] == hops[node] + 1:
                depending[node] += paths[node] / paths[targets[edge]] * (1 + depending[targets[edge]])
        expected[node] += depending[node]
        total += depending[node]
        between += hops[node] - 1
    return total, between


def _count_paths(part: Partition, sync: Sync, source: int) -> tuple[Label, Label, list[Any]]:
    """Hops and numbers of shortest paths of all proxies, and the proxies of each level. Collective."""
    hops, paths = Label(part, np.int32, FAR, MIN), Label(part, np.float64, 0, ADD)
    hops.write(source, 0)
    paths.write(source, 1)
    levels: list[Any] = []
    while sync.total(hops.num_updated_masters()) != (0,):
        frontier = hops.swap_updated()
        levels.append(hops.device.take_bits(frontier.copy(), part.num_proxies))
        STEP(part, frontier=frontier, hops=hops)
        sync.reduce(hops, write="dst")
        sync.broadcast(hops, read="any")
        paths.swap_updated()  # copies at mirrors are not shares of a sum
        COUNT(part, frontier=frontier, hops=hops, paths=paths)
        sync.reduce(paths, write="dst")
        sync.broadcast(paths, read="any")
    return hops, paths, levels


def _dependencies(part: Partition, sync: Sync, hops: Label, paths: Label, levels: list[Any]) -> Any:
    """(masters,) float64: the share of the shortest paths to all nodes that depends on each. Collective."""
    depending = Label(part, np.float64, 0, ADD)
    paths.swap_updated()  # its bits are those of the nodes of a level
    for level in levels[:1:-1]:
        paths.mark(level)
        frontier = paths.swap_updated()
        DEPEND(part, frontier=frontier, hops=hops, paths=paths, depending=depending)
        sync.reduce(depending, write="src")
        sync.broadcast(depending, read="any")
        depending.swap_updated()
    return depending.masters()
