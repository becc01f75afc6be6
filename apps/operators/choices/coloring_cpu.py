"""Greedy coloring on CPUs: see interfaces.py.

A row is walked through twice: for the colors that neighbours have, and to tell those that wait. Who tells a node last
puts it into the queue; by then all those colors are stored. Threads share the queue where it is long; where it is
short, one of them goes on alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

import numpy as np

from cusp.apps.operators.interfaces import own_neighbours
from cusp.kernels.bits import unsigned
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams import team as teams
from cusp.runtime.teams.atomics import atomic_add, store
from cusp.runtime.teams.together import helped, make_team
from cusp.runtime.threads import few, many, num_threads
from gluon.device_cpu import list_bits, set_bit

SHARE = 4  # nodes that a thread takes at a time, at least
HEAD, FILLED = teams.FACTS, teams.SUMS


class Rows(NamedTuple):
    """Neighbours of masters; and of all proxies, those that are masters of this rank. And the nodes that are ready."""

    offsets: np.ndarray
    targets: np.ndarray
    own_offsets: np.ndarray
    own_neighbours: np.ndarray
    queue: np.ndarray


class Graph(NamedTuple):
    """What is colored, and for each thread, the last node that saw a color, and at the end, one without."""

    rows: Rows
    masters: int
    colors: np.ndarray
    seen: np.ndarray


def plan_colors(part: Partition) -> Rows:
    queue = np.zeros(part.num_proxies + 1, np.uint32)
    return Rows(*unsigned(part.offsets, part.targets, *own_neighbours(part), queue))


@contextmanager
def room_for_colors(part: Partition, plan: Rows, colors: np.ndarray, most: int) -> Iterator[tuple[np.ndarray, Graph]]:
    graph = Graph(plan, part.num_masters, colors, np.zeros((num_threads(), most + 2), np.uint32))
    with helped(_help, graph) if part.num_local_edges >= many() else nullcontext(make_team()) as team:
        yield team, graph


def color_nodes(part: Partition, room: tuple[np.ndarray, Graph], frontier: np.ndarray, updated: np.ndarray) -> None:
    row = part.num_local_edges // max(part.num_masters, 1) + 1
    _color_all(room[0], few() // row + 1, frontier, room[1], updated)


@njit(cache=True, nogil=True)
def _color_all(team, few, frontier, graph, updated):  # type: ignore[no-untyped-def]
    _, _, offsets, neighbours, queue = graph.rows
    colors, masters, head, filled = graph.colors, graph.masters, 0, 0
    for place in range(list_bits(frontier, queue)):
        queue[filled] = queue[place]
        filled += np.int64(queue[filled] >= masters or colors[queue[filled]] < 0)
    while head < filled:
        if teams.is_worth(team, filled - head, few):
            team[HEAD], team[FILLED] = head, filled
            teams.call(team, 0, filled - head, SHARE)
            _color_shares(team, 0, graph)
            teams.dismiss(team)
            head, filled = filled, team[FILLED]
            continue
        lid = queue[head]
        head += 1
        if lid < masters:
            _color(lid, graph.seen[0], graph)
        for edge in range(offsets[lid], offsets[lid + np.uint64(1)]):
            neighbour = neighbours[edge]
            color = colors[neighbour]
            colors[neighbour] = color + np.int32(color < -1)
            queue[filled] = neighbour
            filled += np.int64(color == -2)
    for place in range(filled):
        if queue[place] < masters:
            set_bit(updated, queue[place])


@njit(cache=True, nogil=True)
def _help(team, number, graph):  # type: ignore[no-untyped-def]
    """What a helper does."""
    job = teams.wait_for_job(team, number, 0)
    while job >= 0:
        _color_shares(team, number, graph)
        job = teams.leave(team, number, job)


@njit(cache=True, nogil=True)
def _color_shares(team, number, graph):  # type: ignore[no-untyped-def]
    _, _, offsets, neighbours, queue = graph.rows
    colors, masters, found, size = graph.colors, graph.masters, np.empty(teams.BUFFER, np.uint32), 0
    first, last = teams.take(team)
    while first < last:
        for place in range(team[HEAD] + first, team[HEAD] + last):
            lid = queue[place]
            if lid < masters:
                _color(lid, graph.seen[number], graph)
            for edge in range(offsets[lid], offsets[lid + np.uint64(1)]):
                neighbour = neighbours[edge]
                if colors[neighbour] < -1 and atomic_add(colors, neighbour, np.int32(1)) == -2:
                    found[size] = neighbour
                    size += 1
                    if size == found.size:
                        teams.append(team, FILLED, found, size, queue)
                        size = 0
        first, last = teams.take(team)
    teams.append(team, FILLED, found, size, queue)


@njit(cache=True, nogil=True, inline="always")
def _color(lid, seen, graph):  # type: ignore[no-untyped-def]
    """A master takes the lowest color that no neighbour has; others see it before they are told."""
    colors, stamp, color = graph.colors, lid + np.uint32(1), 0
    for edge in range(graph.rows.offsets[lid], graph.rows.offsets[lid + np.uint64(1)]):
        seen[max(colors[graph.rows.targets[edge]], -1)] = stamp  # -1: the last one
    while seen[color] == stamp:
        color += 1
    store(colors, lid, np.int32(color))
