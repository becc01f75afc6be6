"""Breadth-first search on the CPU: see interfaces.py.

On one rank a whole search runs in one call, of several threads if it is worth them: levels_cpu.py.
"""

from typing import Any

import numpy as np

from cusp.apps.operators.traversal.levels_cpu import (
    AUTO,
    DEEP,
    PULL,
    PUSH,
    BfsPlan,
    Choice,
    Found,
    Rows,
    help_search,
    pull_nodes,
    search,
)
from cusp.kernels.arrays import extremes, mapped
from cusp.kernels.bits import first_bit, unsigned
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import atomic_add, atomic_min
from cusp.runtime.teams.together import helped, make_team, together
from cusp.runtime.threads import few, many, ranges, row_ranges, whole_words
from gluon.device_cpu import count_bits, full, no_bits, set_bit_atomic
from gluon.label import Label
from gluon.sync import Sync

DIRECTIONS = {"auto": AUTO, "push": PUSH, "pull": PULL}


def frontier_size(updated: Any, degrees: Any) -> tuple[int, int]:
    is_wide = degrees.size >= many() and count_bits(updated, degrees.size) >= many()
    found = np.zeros(2, np.int64)
    together(_count, whole_words(ranges(degrees.size)) if is_wide else [(0, degrees.size)], updated, degrees, found)
    nodes, edges = found.tolist()
    return nodes, edges


@njit(cache=True, nogil=True)
def _count(first, last, updated, degrees, found):  # type: ignore[no-untyped-def]
    """Found: nodes of the frontier, and their edges."""
    nodes, edges, size = 0, 0, np.uint64(last)
    for word in range(first >> 6, (last + 63) >> 6):
        bits = updated[word]
        while bits:
            lid = np.uint64(word * 64 + first_bit(bits))
            bits &= bits - np.uint64(1)
            if lid < size:
                nodes += 1
                edges += degrees[lid]
    atomic_add(found, 0, nodes)
    atomic_add(found, 1, edges)


def bfs_push(label: Label, frontier: Any, offsets: Any, targets: Any, gid_mask: Any, level: Any, plan: BfsPlan) -> None:
    given = offsets, label.part.gids, targets, int(gid_mask), int(level), label.values, label.updated
    together(_push_bits, whole_words(row_ranges(offsets)), frontier, *given)


@njit(cache=True, nogil=True)
def _push_bits(first, last, frontier, offsets, gids, targets, gid_mask, level, values, updated):  # type: ignore[no-untyped-def]
    number = values.dtype.type
    for word in range(first >> 6, (last + 63) >> 6):
        bits = frontier[word]
        while bits:
            source = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            value = number(level | (gids[source] & gid_mask))
            for edge in range(offsets[source], offsets[source + 1]):
                target = targets[edge]
                if value < values[target]:
                    atomic_min(values, target, value)
                    set_bit_atomic(updated, target)


def bfs_pull(label: Label, frontier: Any, offsets: Any, sources: Any, gid_mask: Any, level: Any, plan: BfsPlan) -> None:
    part = label.part
    rows = Rows._make([*unsigned(part.offsets, part.targets, offsets, sources), plan.first, part.gids])
    given = frontier, label.updated, int(level), int(gid_mask), int(label.identity), rows, label.values
    together(_pull, whole_words(ranges(plan.first.size)), *given)


@njit(cache=True, nogil=True)
def _pull(begin, end, frontier, reached, level, gid_mask, far, rows, values):  # type: ignore[no-untyped-def]
    pull_nodes(begin, end, frontier, reached, level, gid_mask, far, rows, values)


def plan_bfs(part: Partition, in_edges: Any, sync: Sync, way: str) -> BfsPlan:
    size = part.num_proxies
    first = _first_sources(*in_edges) if in_edges else np.empty(0, np.int32)
    return BfsPlan(in_edges, first, np.empty(size + 1, np.int32), np.stack([no_bits(size)] * 2))


def bfs_drain(
    part: Partition, plan: BfsPlan, source: int, direction: str, alpha: int, beta: int, with_parents: bool
) -> tuple[np.ndarray, np.ndarray, int]:
    """The largest number stands for what is not reached: seen as a signed one it is -1."""
    shift = part.num_nodes.bit_length() if with_parents else 0
    values: Any = full(part.num_proxies, -1, np.int64 if with_parents else np.int32)
    (levels,), lid = unsigned(values), part.lid(source)
    degree = 0
    if lid >= 0:
        levels[lid] = source if shift else 0
        plan.queue[0], degree = lid, int(part.offsets[lid + 1] - part.offsets[lid])
    choice = Choice(DIRECTIONS[direction] if plan.in_edges else PUSH, alpha, beta, part.num_nodes, shift, many(), few())
    in_edges = plan.in_edges or (part.offsets, part.targets)
    (offsets, targets), (in_offsets, in_sources) = unsigned(part.offsets, part.targets), unsigned(*in_edges)
    rows = Rows(offsets, targets, in_offsets, in_sources, plan.first, part.gids)
    rest = (choice, rows, levels, *unsigned(plan.queue), plan.bits)
    found = search(make_team(), Found(False, 0, 0, 1, 0, int(lid >= 0), degree, 0, part.num_edges), *rest)
    if found.nodes:
        with helped(help_search, *rest) as team:
            found = search(team, found, *rest)
    rounds = found.level
    if rounds > DEEP and not shift:  # who ran ahead may have come farther than the last node
        rounds = 1 + int(extremes(values)[1])
    if not with_parents:
        return values, values[:0], rounds
    hops = mapped(lambda some: some >> shift, values, dtype=np.int32)
    return hops, mapped(lambda some: np.where(some < 0, some, some & (1 << shift) - 1), values), rounds


def _first_sources(offsets: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """First entry of each row, -1 where there is none, up to the last row that has one."""
    first = np.empty(int(np.searchsorted(offsets, offsets[-1])), np.int32)
    together(_write_first, ranges(first.size), offsets, sources, first)
    return first


@njit(cache=True, nogil=True)
def _write_first(begin, end, offsets, sources, first):  # type: ignore[no-untyped-def]
    for row in range(begin, end):
        first[row] = sources[offsets[row]] if offsets[row] < offsets[row + 1] else -1
