"""Verifier of betweenness centrality: see apps/verify/check.py."""

from typing import Any

import numpy as np

from cusp import ADD, MAX, MIN, Answer, EdgeOperator, Label, Partition, Sync
from cusp.apps.operators.interfaces import SMALL, Undirected
from cusp.apps.shared.graphs.whole_graph import sum_of_copies, whole_graph
from cusp.apps.verify.check import raise_first, require, tell_node
from cusp.runtime.compiled_code import njit
from cusp.runtime.devices import backend, move, xp_of

ROUNDING = 1e-9  # relative
TIGHT = "src.length < dst.length and src.length + weight == dst.length"
RELAX = EdgeOperator("length + weight", into="dst.length")
DEEPEN = EdgeOperator("level + 1", into="dst.level", where=TIGHT, priority="length")
COUNT = EdgeOperator("paths", into="dst.paths", where=TIGHT)
DEPEND = EdgeOperator("src.paths / dst.paths * (1 + dst.depending)", into="src.depending", where=TIGHT)


def verify_betweenness(
    part: Partition, sync: Sync, answer: Answer, sources: list[int], scale: float, edge_scale: float | None = None
) -> None:
    """Check betweenness by computing it anew, edge by edge; with weights, if the partition has some. Collective.

    1. The dependencies of a source add up to the nodes between it and all that it reaches: without weights, hops - 1
    for each. 2. Their sums over all sources, scaled, are the answer. On CPUs, one rank goes through a graph without
    weights by itself, and small ones are copied to every rank, which then takes some of the sources; in others, all
    ranks go from level to level. Edges have a scale of their own, if they are wanted.
    """
    whole = edge_scale is None and part.weights is None and {*sync.plan.devices} == {"cpu"}
    found = None if edge_scale is None else xp_of(part.device).zeros(part.num_local_edges, np.float64)
    if whole and sync.comm.size == 1:
        starts = part.lid_map.lids(np.array(sources, np.int64))
        expected = _add_all(sync, sources, starts, part.offsets, part.targets)[: part.num_masters]
    elif whole and part.num_edges <= SMALL:
        some = sources[sync.comm.rank :: sync.comm.size]
        copy = whole_graph(part, sync.comm)
        found_here = _add_all(sync, some, copy.rows[some], copy.offsets, copy.targets)[copy.rows]
        expected = sum_of_copies(part, sync.comm, found_here)
    else:
        expected = _sum_along_edges(part if part.csc else part.with_csc(), sync, sources, found)
    expected *= scale
    wrong = differ(part, answer.labels["betweenness"], expected, scale)
    tell_node(part, sync, "betweenness: differs from a recount of the paths for node", wrong)
    if found is not None:
        off = differ(part, answer.edges["betweenness"], found * edge_scale, edge_scale)
        (wrong,) = sync.total(int(off.sum()))
        require(sync, not wrong, f"betweenness: differs from a recount of the paths for {wrong:,} edges")


def differ(part: Partition, values: Any, expected: Any, scale: Any = 0) -> Any:
    """(n,) bool: values that differ by more than rounding."""
    return ~(abs(move(values, part.device) - expected) <= ROUNDING * xp_of(part.device).maximum(expected, scale))


def _check_sum(source: int, total: float, between: float) -> str | None:
    """What is wrong with the sum of the dependencies of a source."""
    wrong = abs(total - between) > ROUNDING * max(between, 1)
    return f"source {source}: dependencies add up to {total}, not to {between}" if wrong else None


def _sum_along_edges(part: Partition, sync: Sync, sources: list[int], edges: Any) -> Any:
    """Dependencies of the masters, summed over all sources, and added to those of ``edges``. Collective."""
    xp = xp_of(part.device)
    expected = xp.zeros(part.num_masters, np.float64)
    rows = backend(Undirected, part.device).rows_of_edges(part.offsets)
    for source in sources:
        length, level, paths = _count_paths(part, sync, source)
        depending = _dependencies(part, sync, length, level, paths)
        reached = level.masters() > 0
        if part.weights is None:
            own = depending.masters()[reached]
            total, between = sync.total(float(own.sum()), float((level.masters()[reached] - 1).sum()))
            raise_first(sync, _check_sum(source, total, between))
        expected[reached] += depending.masters()[reached]
        if edges is not None:
            weights = 1 if part.weights is None else part.weights.astype(length.values.dtype)
            near, away = length.values[rows], length.values[part.targets]
            tight = xp.flatnonzero((near < away) & (near + weights == away))
            ends, targets = rows[tight], part.targets[tight]
            edges[tight] += paths.values[ends] / paths.values[targets] * (1 + depending.values[targets])
    return expected


def _add_all(sync: Sync, sources: list[int], starts: Any, offsets: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """(rows,) float64: dependencies on sources, whose rows are ``starts``, once their sums are right. Collective."""
    expected, message = np.zeros(offsets.size - 1), None
    for source, start in zip(sources, starts):
        message = message or _check_sum(source, *_add_dependencies(start, offsets, targets, expected))
    raise_first(sync, message)
    return expected


@njit(cache=True, nogil=True)
def _add_dependencies(source, offsets, targets, expected):  # type: ignore[no-untyped-def]
    """Returns the sum of the dependencies of a source, and of the nodes between it and each that it reaches."""
    hops, paths, depending = np.full(expected.size, -1, np.int32), np.zeros(expected.size), np.zeros(expected.size)
    hops[source], paths[source] = 0, 1
    order = np.empty(expected.size, np.int32)
    order[0], reached, place = source, 1, 0
    while place < reached:
        node = order[place]
        further = hops[node] + 1
        place += 1
        for edge in range(offsets[node], offsets[node + 1]):
            target = targets[edge]
            if hops[target] < 0:
                hops[target] = further
                order[reached] = target
                reached += 1
            paths[target] += paths[node] * (hops[target] == further)  # a product is faster than a branch
    total, between = 0.0, 0.0
    for node in order[1:reached][::-1]:
        share, further = 0.0, hops[node] + 1
        for edge in range(offsets[node], offsets[node + 1]):
            share += depending[targets[edge]] * (hops[targets[edge]] == further)
        share *= paths[node]
        depending[node] = (1 + share) / paths[node]  # what a path to it adds to each node before it
        expected[node] += share
        total += share
        between += further - 2
    return total, between


def _count_paths(part: Partition, sync: Sync, source: int) -> tuple[Label, Label, Label]:
    """Lengths and numbers of shortest paths of all proxies, and the most edges on one, -1 without. Collective."""
    floats = part.weights is not None and part.weights.dtype.kind == "f"
    dtype = np.dtype(np.float64 if floats else np.int64)
    far: Any = MIN.identity(dtype)
    length, level = Label(part, dtype, far, MIN), Label(part, np.int32, -1, MAX)
    paths = Label(part, np.float64, 0, ADD)
    for label, value in ((length, 0), (level, 0), (paths, 1)):
        label.write(source, value)
    RELAX.until_quiet(part, sync, length=length)
    _to_all(sync, length)
    DEEPEN.until_quiet(part, sync, level=level, length=length)
    _to_all(sync, level)
    for step in range(_deepest(sync, level) + 1):
        COUNT(part, frontier=_agreed(sync, paths, level, step), length=length, paths=paths)
        sync.reduce(paths, write="dst")
    paths.swap_updated()
    return length, level, paths


def _dependencies(part: Partition, sync: Sync, length: Label, level: Label, paths: Label) -> Label:
    """The share of the shortest paths to all nodes that depends on each, at all proxies. Collective."""
    depending = Label(part, np.float64, 0, ADD)
    for step in range(_deepest(sync, level), 0, -1):
        DEPEND(part, frontier=_agreed(sync, depending, level, step), length=length, paths=paths, depending=depending)
        sync.reduce(depending, write="src")
    return depending


def _deepest(sync: Sync, level: Label) -> int:
    """The highest level of all ranks. Collective."""
    return int(sync.highest(int(level.values.max()) if level.values.size else 0))


def _agreed(sync: Sync, label: Label, level: Label, step: int) -> Any:
    """Give the values of the masters of a level to their mirrors; returns all proxies of the level. Collective."""
    label.swap_updated()  # copies at mirrors are not shares of a sum
    label.mark((level.masters() == step).nonzero()[0])
    sync.broadcast(label, read="any")
    label.mark((level.values == step).nonzero()[0])  # also mirrors that had this value before: of the source, or 0
    return label.swap_updated()


def _to_all(sync: Sync, label: Label) -> None:
    """Give the values of masters to all mirrors. Collective."""
    label.mark_all()
    sync.broadcast(label, read="any")
