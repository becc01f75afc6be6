"""A level of breadth-first search on one rank, by one thread or by several: see bfs_cpu.py.

Threads that push lower values with an atomic minimum: of several parents, the lowest wins, whoever comes first. Those
that pull have nodes of their own, and the words with their bits.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cusp.apps.operators.frontier_cpu import get_bit, set_bit
from cusp.kernels.atomics import atomic_min
from cusp.kernels.bits import prefetch, unsigned
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import edges_before, in_parallel, ranges, row_ranges, whole_words


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
    ahead : bool
        Whether ranks run ahead of each other in a search: one is alone.
    """

    in_edges: Any
    first: np.ndarray
    queue: np.ndarray
    bits: tuple[np.ndarray, np.ndarray]
    ahead: bool = False


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


def pull_level(part: Partition, plan: BfsPlan, found: Found, in_edges: Any, shift: int, values: Any) -> Found:
    """One level by several threads."""
    frontier, reached = plan.bits
    offsets, in_offsets, in_sources = unsigned(part.offsets, *in_edges)
    rest = (frontier, in_sources, part.gids, found.level, shift)

    def pull(begin: int, end: int) -> tuple[int, int]:
        rows, words = slice(begin, end + 1), slice(begin >> 6, (end + 63) >> 6)
        first = plan.first[begin:end]
        return pull_rows(offsets[rows], in_offsets[rows], first, values[begin:end], reached[words], *rest)

    counts = in_parallel(pull, whole_words(ranges(plan.first.size)))
    frontier[:] = reached
    return found._replace(nodes=sum(nodes for nodes, _ in counts), edges=sum(edges for _, edges in counts))


def push_level(part: Partition, plan: BfsPlan, found: Found, in_edges: Any, shift: int, values: Any) -> Found:
    """One level by several threads, each with a queue of its own; the next frontier has them one after the other."""
    sources = plan.queue[found.head : found.tail]
    before = edges_before(part.offsets, sources)
    rest = (*unsigned(part.offsets, part.targets), part.gids, found.level, shift, values)

    def push(first: int, last: int) -> tuple[np.ndarray, int]:
        mine = np.empty(min(before[last] - before[first] + 1, plan.queue.size), np.uint32)
        nodes, edges = _push_some(*unsigned(sources[first:last]), *rest, mine)
        return mine[:nodes], edges

    pieces = in_parallel(push, row_ranges(before))
    nodes = sum(mine.size for mine, _ in pieces)
    np.concatenate([mine for mine, _ in pieces], out=unsigned(plan.queue)[0][found.tail : found.tail + nodes])
    edges = sum(edges for _, edges in pieces)
    return found._replace(head=found.tail, tail=found.tail + nodes, nodes=nodes, edges=edges)


@njit(cache=True, nogil=True)
def push_rows(head, tail, offsets, targets, gids, level, shift, values, queue):  # type: ignore[no-untyped-def]
    """Of several parents in the frontier, the lowest; the next frontier in the queue, and its edges.

    Places are unsigned. Without branches on what is read from memory, so that it can be read ahead; the last loop
    fetches what the next level needs.
    """
    number, one, end, edges = values.dtype.type, np.uint64(1), np.uint64(tail), np.uint64(0)
    unreached = number(-1)
    for place in range(np.uint64(head), end):
        source = queue[place]
        value = number(level)
        if shift:
            value = number((level << shift) | gids[source])
        for edge in range(offsets[source], offsets[source + one]):
            target = targets[edge]
            old = values[target]
            values[target] = min(old, value)
            queue[end] = target
            end += np.uint64(old == unreached)
    for place in range(np.uint64(tail), end):
        source = queue[place]
        edges += offsets[source + one] - offsets[source]
        prefetch(targets, offsets[source])
    return tail, np.int64(end), np.int64(edges)


@njit(cache=True, nogil=True)
def _push_some(sources, offsets, targets, gids, level, shift, values, found):  # type: ignore[no-untyped-def]
    """What :func:`push_rows` does, while other threads do so with other sources."""
    number, one, end, edges = values.dtype.type, np.uint64(1), np.uint64(0), np.uint64(0)
    unreached = number(-1)
    for source in sources:
        value = number(level)
        if shift:
            value = number((level << shift) | gids[source])
        for edge in range(offsets[source], offsets[source + one]):
            target = targets[edge]
            if value < values[target]:
                found[end] = target
                end += np.uint64(atomic_min(values, target, value) == unreached)
    for target in found[: np.int64(end)]:
        edges += offsets[target + one] - offsets[target]
    return np.int64(end), np.int64(edges)


@njit(cache=True, nogil=True)
def pull_rows(offsets, in_offsets, first, values, reached, frontier, in_sources, gids, level, shift):  # type: ignore[no-untyped-def]
    """Each unreached node takes the first in-neighbour of its row that is in the frontier."""
    number, one, nodes, edges = values.dtype.type, np.uint64(1), 0, np.uint64(0)
    unreached = number(-1)
    reached[:] = 0
    for target in range(first.size):
        if values[target] == unreached and first[target] >= 0:
            parent = np.uint32(first[target])
            edge, end = in_offsets[target] + one, in_offsets[target + 1]
            while not get_bit(frontier, parent) and edge < end:
                parent = in_sources[edge]
                edge += one
            if get_bit(frontier, parent):
                values[target] = number((level << shift) | gids[parent] if shift else level)
                set_bit(reached, target)
                nodes += 1
                edges += offsets[target + 1] - offsets[target]
    return nodes, np.int64(edges)
