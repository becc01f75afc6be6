"""Breadth-first search on the CPU: see interfaces.py.

On one rank a whole search runs in one call. Frontiers that push are in a queue, so that a level costs what its frontier
has; those that are pulled from are bits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from apps.operators.frontier_cpu import get_bit, set_bit
from cusp.kernels.bits import first_bit, prefetch
from cusp.partition import Partition
from gluon.device_cpu import move_bits, no_bits
from gluon.sync import Sync

DIRECTIONS = {"auto": 0, "push": 1, "pull": 2}
AUTO, PUSH, PULL = DIRECTIONS.values()


@njit(cache=True, nogil=True)
def bfs_push(frontier, offsets, targets, gids, gid_mask, level, unreached, values, updated, queue):  # type: ignore[no-untyped-def]
    for word in range(frontier.size):
        bits = frontier[word]
        while bits:
            source = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            value = level | (gids[source] & gid_mask)
            for edge in range(offsets[source], offsets[source + 1]):
                target = targets[edge]
                if values[target] == unreached:
                    values[target] = value
                    set_bit(updated, target)


@njit(cache=True, nogil=True)
def bfs_pull(frontier, offsets, sources, gids, gid_mask, level, unreached, values, updated, queue):  # type: ignore[no-untyped-def]
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
    in_edges = plan.in_edges or (part.offsets, part.targets)
    levels = _search(
        part.lid(source), DIRECTIONS[direction] if plan.in_edges else PUSH, alpha, beta, part.num_nodes, part.num_edges,
        part.offsets, part.targets, *in_edges, plan.first, part.gids, shift, values.view(f"u{values.itemsize}"),
        plan.queue, *plan.bits,
    )  # fmt: skip
    if not with_parents:
        return values, values[:0], levels
    return (values >> shift).astype(np.int32), np.where(values < 0, values, values & (1 << shift) - 1), levels


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    source, direction, alpha, beta, num_nodes, num_edges, offsets, targets, in_offsets, in_sources, first, gids, shift,
    values, queue, frontier, reached,
):  # fmt: skip
    """Search level by level; returns the number of levels."""
    values[source] = gids[source] if shift else 0
    queue[0] = source
    head, tail, level, pulled = 0, 1, 0, False
    nodes, edges, before, unexplored = 1, offsets[source + 1] - offsets[source], 0, num_edges
    while nodes > 0:
        level += 1
        if pulled:
            pull = nodes >= before or nodes > num_nodes // beta
        else:
            pull = edges > unexplored // alpha
        pull = pull if direction == AUTO else direction == PULL
        before, unexplored = nodes, unexplored - edges
        if pull:
            if not pulled:
                frontier[:] = 0
                for place in range(head, tail):
                    set_bit(frontier, queue[place])
            reached[:] = 0
            nodes, edges = _pull(frontier, offsets, in_offsets, in_sources, first, gids, level, shift, values, reached)
            frontier, reached = reached, frontier
        else:
            if pulled:
                head, tail = 0, move_bits(frontier, queue)
            head, tail, edges = _push(head, tail, offsets, targets, gids, level, shift, values, queue)
            nodes = tail - head
        pulled = pull
    return level


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
def _pull(frontier, offsets, in_offsets, in_sources, first, gids, level, shift, values, reached):  # type: ignore[no-untyped-def]
    """Each unreached node takes the first in-neighbour of its row that is in the frontier."""
    number, nodes, edges = values.dtype.type, 0, 0
    unreached = number(-1)
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
