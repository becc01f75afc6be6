"""Breadth-first search on the CPU: see interfaces.py.

On one rank a whole search runs in one call, but for levels that are worth several threads. Frontiers that push are in a
queue, so that a level costs what its frontier has; those that are pulled from are bits.

Threads that push lower values with an atomic minimum: of several parents, the lowest wins, whoever comes first. Those
that pull have nodes of their own, and the words with their bits.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import get_bit, set_bit
from cusp.kernels.atomics import atomic_min, atomic_or
from cusp.kernels.bits import first_bit, prefetch
from cusp.partition import Partition
from cusp.runtime.threads import in_parallel, many, ranges, row_ranges, whole_words
from gluon.device_cpu import move_bits, no_bits
from gluon.sync import Sync

DIRECTIONS = {"auto": 0, "push": 1, "pull": 2}
AUTO, PUSH, PULL = DIRECTIONS.values()


def bfs_push(
    frontier: Any, offsets: Any, targets: Any, gids: Any, gid_mask: Any, level: Any, unreached: Any, values: Any,
    updated: Any, queue: Any,
) -> None:  # fmt: skip
    rest = (targets, gid_mask, level, values, updated)

    def push(first: int, last: int) -> None:
        _push_bits(frontier[first >> 6 : (last + 63) >> 6], offsets[first:], gids[first:], *rest)

    in_parallel(push, whole_words(row_ranges(offsets)))


@njit(cache=True, nogil=True)
def _push_bits(frontier, offsets, gids, targets, gid_mask, level, values, updated):  # type: ignore[no-untyped-def]
    number = values.dtype.type
    for word in range(frontier.size):
        bits = frontier[word]
        while bits:
            source = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            value = number(level | (gids[source] & gid_mask))
            for edge in range(offsets[source], offsets[source + 1]):
                target = targets[edge]
                if value < values[target]:
                    atomic_min(values, target, value)
                    atomic_or(updated, target >> 6, np.uint64(1) << np.uint64(target & 63))


def bfs_pull(
    frontier: Any, offsets: Any, sources: Any, gids: Any, gid_mask: Any, level: Any, unreached: Any, values: Any,
    updated: Any, queue: Any,
) -> None:  # fmt: skip
    rest = (frontier, sources, gids, gid_mask, level, unreached)

    def pull(first: int, last: int) -> None:
        _pull_bits(offsets[first : last + 1], values[first:last], updated[first >> 6 : (last + 63) >> 6], *rest)

    in_parallel(pull, whole_words(ranges(offsets.size - 1)))


@njit(cache=True, nogil=True)
def _pull_bits(offsets, values, updated, frontier, sources, gids, gid_mask, level, unreached):  # type: ignore[no-untyped-def]
    for target in range(offsets.size - 1):
        if values[target] == unreached:
            for edge in range(offsets[target], offsets[target + 1]):
                source = sources[edge]
                if get_bit(frontier, source):
                    values[target] = level | (gids[source] & gid_mask)
                    set_bit(updated, target)
                    break


@dataclass(frozen=True)
class BfsPlan:
    """What breadth-first searches of one partition on one rank share.

    Attributes
    ----------
    in_edges : (offsets, sources), or None if there is no way to pull
    first : (rows,) int32
        First in-neighbour of each node, -1 where there is none: most pulls end there. Later nodes have no in-edges.
    queue : (proxies + 1,) int32
    bits : pair of bits of proxies
    """

    in_edges: Any
    first: np.ndarray
    queue: np.ndarray
    bits: tuple[np.ndarray, np.ndarray]


def plan_bfs(part: Partition, in_edges: Any, sync: Sync) -> BfsPlan:
    size = part.num_proxies
    first = _first_sources(*in_edges) if in_edges else np.empty(0, np.int32)
    return BfsPlan(in_edges, first, np.empty(size + 1, np.int32), (no_bits(size), no_bits(size)))


def bfs_drain(
    part: Partition, plan: BfsPlan, source: int, direction: str, alpha: int, beta: int, with_parents: bool
) -> tuple[np.ndarray, np.ndarray, int]:
    """The largest number stands for what is not reached: seen as a signed one it is -1."""
    shift = part.num_nodes.bit_length() if with_parents else 0
    values: Any = np.full(part.num_proxies, -1, np.int64 if with_parents else np.int32)
    unsigned, source = values.view(f"u{values.itemsize}"), part.lid(source)
    unsigned[source] = part.gids[source] if shift else 0
    plan.queue[0] = source
    choice = (DIRECTIONS[direction] if plan.in_edges else PUSH, alpha, beta, part.num_nodes, many())
    in_edges = plan.in_edges or (part.offsets, part.targets)
    degree = int(part.offsets[source + 1] - part.offsets[source])
    found = Found(False, 0, 1, 0, 1, degree, 0, part.num_edges)
    while found.nodes:
        found = Found(*_search(
            *found, *choice, part.offsets, part.targets, *in_edges, plan.first, part.gids, shift, unsigned, plan.queue,
            *plan.bits,
        ))  # fmt: skip
        if found.nodes:
            advance = _pull_level if found.pulled else _push_level
            found = advance(part, plan, found, in_edges, shift, unsigned)
    if not with_parents:
        return values, values[:0], found.level
    return (values >> shift).astype(np.int32), np.where(values < 0, values, values & (1 << shift) - 1), found.level


class Found(NamedTuple):
    """How far a search has come.

    Attributes
    ----------
    pulled : bool
        The frontier is in the bits, else in the queue from ``head`` to ``tail``.
    level : int
        Its hops; while a level is done in parallel, those of the nodes that it finds.
    nodes, edges : int
        Of the frontier. ``before``: nodes of the one before.
    unexplored : int
        Out-edges of all nodes that were in no frontier.
    """

    pulled: bool
    head: int
    tail: int
    level: int
    nodes: int
    edges: int
    before: int
    unexplored: int


def _pull_level(part: Partition, plan: BfsPlan, found: Found, in_edges: Any, shift: int, values: Any) -> Found:
    """One level by several threads."""
    frontier, reached = plan.bits
    rest = (frontier, in_edges[1], part.gids, found.level, shift)

    def pull(begin: int, end: int) -> tuple[int, int]:
        rows, words = slice(begin, end + 1), slice(begin >> 6, (end + 63) >> 6)
        first = plan.first[begin:end]
        return _pull(part.offsets[rows], in_edges[0][rows], first, values[begin:end], reached[words], *rest)

    counts = in_parallel(pull, whole_words(ranges(plan.first.size)))
    frontier[:] = reached
    return found._replace(nodes=sum(nodes for nodes, _ in counts), edges=sum(edges for _, edges in counts))


def _push_level(part: Partition, plan: BfsPlan, found: Found, in_edges: Any, shift: int, values: Any) -> Found:
    """One level by several threads, each with a queue of its own; the next frontier has them one after the other."""
    sources = plan.queue[found.head : found.tail]
    before = np.concatenate([[0], np.cumsum(part.offsets[sources + 1] - part.offsets[sources])])
    rest = (part.offsets, part.targets, part.gids, found.level, shift, values)

    def push(first: int, last: int) -> tuple[np.ndarray, int]:
        mine = np.empty(min(before[last] - before[first] + 1, plan.queue.size), np.int32)
        nodes, edges = _push_some(sources[first:last], *rest, mine)
        return mine[:nodes], edges

    pieces = in_parallel(push, row_ranges(before))
    nodes = sum(mine.size for mine, _ in pieces)
    np.concatenate([mine for mine, _ in pieces], out=plan.queue[found.tail : found.tail + nodes])
    edges = sum(edges for _, edges in pieces)
    return found._replace(head=found.tail, tail=found.tail + nodes, nodes=nodes, edges=edges)


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    pulled, head, tail, level, nodes, edges, before, unexplored, direction, alpha, beta, num_nodes, many, offsets,
    targets, in_offsets, in_sources, first, gids, shift, values, queue, frontier, reached,
):  # fmt: skip
    """Search level by level, as far as there is something to find or a level is worth several threads.

    Then the frontier is where that level needs it: in the bits or in the queue.
    """
    while nodes > 0:
        level += 1
        if pulled:
            pull = nodes >= before or nodes > num_nodes // beta
        else:
            pull = edges > unexplored // alpha
        pull = pull if direction == AUTO else direction == PULL
        before, unexplored = nodes, unexplored - edges
        if pull and not pulled:
            frontier[:] = 0
            for place in range(head, tail):
                set_bit(frontier, queue[place])
        elif pulled and not pull:
            head, tail = 0, move_bits(frontier, queue)
        pulled = pull
        if (first.size if pull else edges) >= many:
            break
        if pull:
            rest = (frontier, in_sources, gids, level, shift)
            nodes, edges = _pull(offsets, in_offsets, first, values, reached, *rest)
            frontier[:] = reached
        else:
            head, tail, edges = _push(head, tail, offsets, targets, gids, level, shift, values, queue)
            nodes = tail - head
    return pulled, head, tail, level, nodes, edges, before, unexplored


@njit(cache=True, nogil=True)
def _push_some(sources, offsets, targets, gids, level, shift, values, found):  # type: ignore[no-untyped-def]
    """What :func:`_push` does, while other threads do so with other sources."""
    number, end, edges = values.dtype.type, 0, 0
    unreached = number(-1)
    for source in sources:
        value = number(level)
        if shift:
            value = number((level << shift) | gids[source])
        for edge in range(offsets[source], offsets[source + 1]):
            target = targets[edge]
            if value < values[target]:
                found[end] = target
                end += np.int64(atomic_min(values, target, value) == unreached)
    for target in found[:end]:
        edges += offsets[target + 1] - offsets[target]
    return end, edges


@njit(cache=True, nogil=True)
def _push(head, tail, offsets, targets, gids, level, shift, values, queue):  # type: ignore[no-untyped-def]
    """Of several parents in the frontier, the lowest; the next frontier in the queue, and its edges.

    Without branches on what is read from memory, so that it can be read ahead; the last loop fetches what the next
    level needs.
    """
    number, end, edges = values.dtype.type, tail, 0
    unreached = number(-1)
    for place in range(head, tail):
        source = queue[place]
        value = number(level)
        if shift:
            value = number((level << shift) | gids[source])
        for edge in range(offsets[source], offsets[source + 1]):
            target = targets[edge]
            old = values[target]
            values[target] = min(old, value)
            queue[end] = target
            end += np.int64(old == unreached)
    for place in range(tail, end):
        source = queue[place]
        edges += offsets[source + 1] - offsets[source]
        prefetch(targets, offsets[source])
    return tail, end, edges


@njit(cache=True, nogil=True)
def _pull(offsets, in_offsets, first, values, reached, frontier, in_sources, gids, level, shift):  # type: ignore[no-untyped-def]
    """Each unreached node takes the first in-neighbour of its row that is in the frontier."""
    number, nodes, edges = values.dtype.type, 0, 0
    unreached = number(-1)
    reached[:] = 0
    for target in range(first.size):
        if values[target] == unreached and first[target] >= 0:
            parent = first[target]
            edge, end = in_offsets[target] + 1, in_offsets[target + 1]
            while not get_bit(frontier, parent) and edge < end:
                parent = in_sources[edge]
                edge += 1
            if get_bit(frontier, parent):
                values[target] = number((level << shift) | gids[parent] if shift else level)
                set_bit(reached, target)
                nodes += 1
                edges += offsets[target + 1] - offsets[target]
    return nodes, edges


@njit(cache=True, nogil=True)
def _first_sources(offsets, sources):  # type: ignore[no-untyped-def]
    """First entry of each row, -1 where there is none, up to the last row that has one."""
    rows = offsets.size - 1
    while rows > 0 and offsets[rows - 1] == offsets[rows]:
        rows -= 1
    first = np.empty(rows, np.int32)
    for row in range(rows):
        first[row] = sources[offsets[row]] if offsets[row] < offsets[row + 1] else -1
    return first
