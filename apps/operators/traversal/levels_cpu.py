"""Breadth-first search on one rank, by one thread or by a team of them: see bfs_cpu.py and team.py.

Frontiers that push are in a queue, so that a level costs what its frontier has; those that are pulled from are bits.
Threads that push lower values with an atomic minimum: of several parents, the lowest wins, whoever comes first. Those
that pull have nodes of their own, and the words with their bits.

Where a graph is long and frontiers are narrow, as in road maps, handing over a level costs as much as it has work.
There each thread takes a part of the frontier and searches from it some levels ahead, alone. Where two such searches
meet, the lower hops win, whoever comes first, and are searched from again: the longer a thread is alone, the more
often; and the less, the more of the frontier's neighbours it has, so the frontier stays in order. With parents, all
stay together: they follow from the direction of each level.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cusp.kernels.bits import prefetch
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams import team as teams
from cusp.runtime.teams.atomics import atomic_min
from gluon.device_cpu import get_bit, move_bits, set_bit

AUTO, PUSH, PULL, AHEAD = range(4)
LEVEL, HEAD, WHICH, REACH = range(teams.FACTS, teams.FACTS + 4)
TAIL, NODES, EDGES, PUSHES, SCANNED = teams.SUMS, *range(4)
SOURCES, WORDS = 64, 64  # of a share, at least: sources that push; words of nodes that pull
DEEP = 16  # levels after which a search is long
NARROW = 1 << 17  # edges of a frontier below which threads of a long search run ahead
SHORTEST, LONGEST = 4, 64  # levels that they do
LONG = 64  # times as many edges as are worth helpers, for a long search to call them


@dataclass(frozen=True)
class BfsPlan:
    """What breadth-first searches of one partition on one rank share.

    Attributes
    ----------
    in_edges : (offsets, sources), or None if there is no way to pull
    first : (rows,) int32
        First in-neighbour of each node, -1 where there is none: most pulls end there. Later nodes have no in-edges.
    queue : (proxies + 1,) int32
    bits : (2, words) bits of proxies
    """

    in_edges: Any
    first: np.ndarray
    queue: np.ndarray
    bits: np.ndarray


class Choice(NamedTuple):
    """How to search: the direction, ``alpha`` and ``beta`` that choose it, and the size of the graph.

    Attributes
    ----------
    shift : int
        Of levels in values that have a parent, else 0.
    many, few : int
        From how many edges, or nodes that pull, on helpers are worth it; and their work, once they are there.
    """

    direction: int
    alpha: int
    beta: int
    num_nodes: int
    shift: int
    many: int
    few: int


class Rows(NamedTuple):
    """Edges from and to each node; places are unsigned. ``first`` as in :class:`BfsPlan`."""

    offsets: np.ndarray
    targets: np.ndarray
    in_offsets: np.ndarray
    in_sources: np.ndarray
    first: np.ndarray
    gids: np.ndarray


class Found(NamedTuple):
    """How far a search has come.

    Attributes
    ----------
    pulled : bool
        The frontier is in the bits, else in the queue from ``head`` to ``tail``.
    which : int
        Of the two arrays of bits.
    level : int
        Its hops; more than that after the end, if threads ran ahead.
    nodes, edges : int
        Of the frontier. ``before``: nodes of the one before.
    unexplored : int
        Out-edges of all nodes that were in no frontier.
    """

    pulled: bool
    which: int
    head: int
    tail: int
    level: int
    nodes: int
    edges: int
    before: int
    unexplored: int


@njit(cache=True, nogil=True)
def search(team, found, choice, rows, values, queue, bits):  # type: ignore[no-untyped-def]
    """Search level by level, as long as there is something to find, and without helpers until a level is worth them."""
    mine = np.empty(teams.BUFFER, np.uint32)
    pulled, which, head, tail, level, nodes, edges, before, unexplored = found
    reach = SHORTEST
    while nodes > 0:
        if pulled:
            pull = nodes >= before or nodes > choice.num_nodes // choice.beta
        else:
            pull = edges > unexplored // choice.alpha
        pull = pull if choice.direction == AUTO else choice.direction == PULL
        size = rows.first.size if pull else edges
        ahead = not (pull or choice.shift) and level >= DEEP and choice.few // LONGEST <= edges < NARROW
        if team[teams.HELPERS] == 0 and (size >= choice.many or (ahead and unexplored // LONG >= choice.many)):
            break
        level, before, unexplored = level + 1, nodes, unexplored - edges
        if pull and not pulled:
            bits[which][:] = 0
            for place in range(np.uint64(head), np.uint64(tail)):
                set_bit(bits[which], queue[place])
        elif pulled and not pull:
            head, tail = 0, move_bits(bits[which], queue)
        pulled = pull
        if ahead and teams.is_worth(team, edges * reach, choice.few):
            share = max((tail - head) // (team[teams.HELPERS] + 1) + 1, SOURCES)
            team[LEVEL], team[HEAD], team[REACH], team[TAIL] = level - 1, head, min(reach, share), tail
            teams.call(team, AHEAD, tail - head, share)
            _work(team, 0, mine, choice, rows, values, queue, bits)
            teams.dismiss(team)
            teams.put_in_order(team, tail, team[TAIL], queue)
            level += team[REACH] - 1
            unexplored = max(unexplored + edges - teams.total(team, SCANNED), 0)
            head, tail, edges = tail, team[TAIL], teams.total(team, EDGES)
            nodes, found_first, pushes = tail - head, teams.total(team, NODES), teams.total(team, PUSHES)
            if pushes > found_first + found_first // 2:
                reach = max(reach // 2, SHORTEST)
            elif pushes < found_first + found_first // 4:
                reach = min(reach * 2, LONGEST)
        elif teams.is_worth(team, size, choice.few):
            team[LEVEL], team[HEAD], team[WHICH], team[TAIL] = level, head, which, tail
            if pull:
                teams.call(team, PULL, (rows.first.size + 63) >> 6, WORDS)
            else:
                teams.call(team, PUSH, tail - head, SOURCES)
            _work(team, 0, mine, choice, rows, values, queue, bits)
            teams.dismiss(team)
            head, tail, edges = tail, team[TAIL], teams.total(team, EDGES)
            nodes = teams.total(team, NODES) if pull else tail - head
        elif pull:
            frontier, reached = bits[which], bits[1 - which]
            base, mask = level << choice.shift, (1 << choice.shift) - 1
            nodes, edges = pull_nodes(0, rows.first.size, frontier, reached, base, mask, -1, rows, values)
        else:
            head, tail, edges = _push(head, tail, level, choice.shift, rows, values, queue)
            nodes = tail - head
        which = 1 - which if pull else which
    return Found(pulled, which, head, tail, level, nodes, edges, before, unexplored)


@njit(cache=True, nogil=True)
def help_search(team, number, choice, rows, values, queue, bits):  # type: ignore[no-untyped-def]
    """What a helper of a search does."""
    mine = np.empty(teams.BUFFER, np.uint32)
    job = teams.wait_for_job(team, number, 0)
    while job >= 0:
        _work(team, number, mine, choice, rows, values, queue, bits)
        job = teams.leave(team, number, job)


@njit(cache=True, nogil=True)
def _work(team, number, mine, choice, rows, values, queue, bits):  # type: ignore[no-untyped-def]
    """Shares of a level."""
    if team[teams.KIND] == PUSH:
        _push_beside_others(team, number, mine, choice.shift, rows, values, queue)
        return
    if team[teams.KIND] == AHEAD:
        _run_ahead(team, number, rows, values, queue)
        return
    frontier, reached = bits[team[WHICH]], bits[1 - team[WHICH]]
    base, mask = team[LEVEL] << choice.shift, (1 << choice.shift) - 1
    first, last = teams.take(team)
    while first < last:
        last = min(last * 64, rows.first.size)
        nodes, edges = pull_nodes(first * 64, last, frontier, reached, base, mask, -1, rows, values)
        teams.count(team, number, NODES, nodes)
        teams.count(team, number, EDGES, edges)
        first, last = teams.take(team)


@njit(cache=True, nogil=True)
def _push(head, tail, level, shift, rows, values, queue):  # type: ignore[no-untyped-def]
    """Of several parents in the frontier, the lowest; the next frontier in the queue, and its edges.

    Places are unsigned. Without branches on what is read from memory, so that it can be read ahead; the last loop
    fetches what the next level needs.
    """
    offsets, targets = rows.offsets, rows.targets
    number, one, end, edges = values.dtype.type, np.uint64(1), np.uint64(tail), np.uint64(0)
    unreached = number(-1)
    for place in range(np.uint64(head), end):
        source = queue[place]
        value = number(level)
        if shift:
            value = number((level << shift) | rows.gids[source])
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
def _push_beside_others(team, number, mine, shift, rows, values, queue):  # type: ignore[no-untyped-def]
    """What :func:`_push` does, while other threads do so with other sources."""
    offsets, targets, head, level = rows.offsets, rows.targets, team[HEAD], team[LEVEL]
    typed, one, size, edges = values.dtype.type, np.uint64(1), 0, np.uint64(0)
    unreached = typed(-1)
    first, last = teams.take(team)
    while first < last:
        for place in range(np.uint64(head + first), np.uint64(head + last)):
            source = queue[place]
            value = typed(level)
            if shift:
                value = typed((level << shift) | rows.gids[source])
            for edge in range(offsets[source], offsets[source + one]):
                target = targets[edge]
                if value < values[target] and atomic_min(values, target, value) == unreached:
                    edges += offsets[target + one] - offsets[target]
                    mine[np.uint64(size)] = target
                    size += 1
                    if size == teams.BUFFER:
                        teams.append(team, TAIL, mine, size, queue)
                        size = 0
        first, last = teams.take(team)
    teams.append(team, TAIL, mine, size, queue)
    teams.count(team, number, EDGES, np.int64(edges))


@njit(cache=True, nogil=True)
def _run_ahead(team, number, rows, values, queue):  # type: ignore[no-untyped-def]
    """From shares of the frontier, ``REACH`` levels, while other threads do so; the last one is the next frontier.

    Who lowers the hops of a node searches from it, unless they are lowered again before: then another one does. So in
    the end each node below the last level was searched from with its hops, and those of the last level are in the list
    of one thread. Some that were there and were lowered later may stay: what they would lower is low already.
    """
    head, edges, scanned, pushes, nodes = team[HEAD], 0, 0, 0, 0
    first, last = teams.take(team)
    while first < last:
        found, level = queue[head + first : head + last], team[LEVEL]
        size, degrees = _keep(found, level, rows, values)
        while level < team[LEVEL] + team[REACH] and size > 0:
            scanned += degrees
            found, new = _lower(found[:size], degrees, level, rows, values)
            pushes, nodes, level = pushes + found.size, nodes + new, level + 1
            size, degrees = _keep(found, level, rows, values)
        teams.append_piece(team, TAIL, first, found, size, queue)
        edges += degrees
        first, last = teams.take(team)
    teams.count(team, number, EDGES, edges)
    teams.count(team, number, NODES, nodes)
    teams.count(team, number, PUSHES, pushes)
    teams.count(team, number, SCANNED, scanned)


@njit(cache=True, nogil=True)
def _keep(found, lowest, rows, values):  # type: ignore[no-untyped-def]
    """Keep, at the front, the nodes whose value is at least this, and fetch their rows; how many, and their edges."""
    offsets, size, edges, one = rows.offsets, np.uint64(0), np.uint64(0), np.uint64(1)
    least = values.dtype.type(lowest)
    for place in range(np.uint64(found.size)):
        node = found[place]
        found[size] = node
        begin, end = offsets[node], offsets[node + one]
        prefetch(rows.targets, begin)
        fresh = np.uint64(values[node] >= least)
        size += fresh
        edges += fresh * (end - begin)
    return np.int64(size), np.int64(edges)


@njit(cache=True, nogil=True)
def _lower(sources, edges, level, rows, values):  # type: ignore[no-untyped-def]
    """Targets whose hops get lower by these sources, and how many of them had none.

    First all that seem to, without branches on what is read from memory, so that it can be read ahead.
    """
    offsets, targets, one, typed = rows.offsets, rows.targets, np.uint64(1), values.dtype.type
    found, value, unreached = np.empty(edges + 1, np.uint32), typed(level + 1), typed(-1)
    size, kept, new = np.uint64(0), np.uint64(0), 0
    for place in range(np.uint64(sources.size)):
        source = sources[place]
        for edge in range(offsets[source], offsets[source + one]):
            found[size] = targets[edge]
            size += np.uint64(value < values[targets[edge]])
    for place in range(size):
        target = found[place]
        old = atomic_min(values, target, value)
        found[kept] = target
        kept += np.uint64(old > value)
        new += old == unreached
    return found[:kept], new


@njit(cache=True, nogil=True, inline="always")
def pull_nodes(begin, end, frontier, reached, level, gid_mask, far, rows, values):  # type: ignore[no-untyped-def]
    """Each unreached node of whole words takes the first in-neighbour of its row that is in the frontier.

    Its value becomes ``level | (gids[parent] & gid_mask)``; ``far`` is that of unreached ones. Returns how many were
    reached, and their out-edges.
    """
    offsets, in_offsets, in_sources, first = rows.offsets, rows.in_offsets, rows.in_sources, rows.first
    number, one, nodes, edges = values.dtype.type, np.uint64(1), 0, np.uint64(0)
    unreached = number(far)
    reached[begin >> 6 : (end + 63) >> 6] = 0
    for target in range(np.uint64(begin), np.uint64(end)):
        if values[target] == unreached and first[target] >= 0:
            parent = np.uint32(first[target])
            edge, last = in_offsets[target] + one, in_offsets[target + one]
            while not get_bit(frontier, parent) and edge < last:
                parent = in_sources[edge]
                edge += one
            if get_bit(frontier, parent):
                values[target] = number(level | (rows.gids[parent] & gid_mask) if gid_mask else level)
                set_bit(reached, target)
                nodes += 1
                edges += offsets[target + one] - offsets[target]
    return nodes, np.int64(edges)
