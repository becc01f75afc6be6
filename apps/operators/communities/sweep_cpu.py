"""A sweep of community detection on CPUs: all turns on a rank that is alone, in one compiled call of each thread.

In a turn, threads share three jobs: to find what is *closed* (if communities are refined), to *look* for better
communities, by those of the turn before, and to *settle*: what has moved tells its neighbours. Two arrays have the
communities before and after a turn, which swap their roles; the moves that only one of them has are copied while the
next turn looks. Sums of weights are exact in any order, and all else is written by one thread, or the same by any.
"""

from typing import NamedTuple

import numpy as np

from cusp.apps.operators.communities.interfaces import MOVED, RESTLESS
from cusp.apps.operators.communities.rows_cpu import best_community, settle_row
from cusp.kernels.bits import prefetch
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams import team as teams
from cusp.runtime.teams.atomics import atomic_add

DRAW, CLOSE, LOOK, SETTLE = range(4)  # jobs
SHARE = 2  # of their entries, blocks, ranges or rows: what a thread takes at least
TURN, BEGIN, END = range(teams.FACTS, teams.FACTS + 3)  # of the moves in the turn before
FILLED = teams.SUMS  # moves of this sweep
BLOCK = 64  # masters that are only looked at for restless ones
AHEAD, FIRST = 2, 4  # how many rows earlier memory is asked for what the first edges of one lead to


class Graph(NamedTuple):
    """What all threads share: see ``Sweep`` and ``moves`` in interfaces.py. Integers are unsigned.

    Attributes
    ----------
    sides : (masters,) uint32, twice
        Communities before and after an even turn.
    known : (masters,) float64
        The totals, negative if closed; where nothing is refined, the totals themselves.
    turns, moved : (masters,) uint8, uint32
    gains : (threads, 8) float64, the first of each line of one thread
    to, touched : (threads, masters) float64, (threads, masters) uint32
        Of each thread, for :func:`best_community`; memory that it touches first.
    draws : (1 + turns,) uint64, the factor of this sweep, and the lot of each turn
    """

    offsets: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    gids: np.ndarray
    strengths: np.ndarray
    sides: tuple[np.ndarray, np.ndarray]
    totals: np.ndarray
    known: np.ndarray
    states: np.ndarray
    refines: bool
    scale: float
    turns: np.ndarray
    moved: np.ndarray
    gains: np.ndarray
    to: np.ndarray
    touched: np.ndarray
    draws: np.ndarray


@njit(cache=True, nogil=True)
def take_part(number, end, team, few, graph):  # type: ignore[no-untyped-def]
    """What each thread calls: the first one leads, others help."""
    if number == 0:
        _lead(team, few, graph)
        teams.store(team, teams.JOB, teams.OVER)
        return
    job = teams.wait_for_job(team, number, 0)
    while job >= 0:
        _take_shares(team, number, graph)
        job = teams.leave(team, number, job)


@njit(cache=True, nogil=True)
def _lead(team, few, graph):  # type: ignore[no-untyped-def]
    blocks, (each, ranges) = -(-graph.moved.size // BLOCK), _ranges(graph)
    _work(team, DRAW, blocks, BLOCK, few, graph)
    for turn in range(graph.draws.size - 1):
        team[TURN] = turn
        if graph.refines:
            _work(team, CLOSE, blocks, BLOCK, few, graph)
        _work(team, LOOK, ranges, each, few, graph)
        _work(team, SETTLE, team[FILLED] - team[END], 1 if graph.refines else each // BLOCK, few, graph)
        team[BEGIN], team[END] = team[END], team[FILLED]
    _finish(graph, graph.draws.size - 1, team[BEGIN], team[END])


@njit(cache=True, nogil=True)
def _work(team, kind, entries, each, few, graph):  # type: ignore[no-untyped-def]
    """All threads share a job, or the leader does one of few entries alone; there are about so many edges in each."""
    if teams.is_worth(team, entries * each, few):
        teams.call(team, kind, entries, SHARE)
        _take_shares(team, 0, graph)
        teams.dismiss(team)
    else:
        _do(team, kind, 0, 0, entries, graph)


@njit(cache=True, nogil=True)
def _take_shares(team, number, graph):  # type: ignore[no-untyped-def]
    first, last = teams.take(team)
    while first < last:
        _do(team, team[teams.KIND], number, first, last, graph)
        first, last = teams.take(team)


@njit(cache=True, nogil=True)
def _do(team, kind, number, first, last, graph):  # type: ignore[no-untyped-def]
    if kind == DRAW:
        _draw(first * BLOCK, min(last * BLOCK, graph.moved.size), graph)
    elif kind == CLOSE:
        _close(team[TURN], first * BLOCK, min(last * BLOCK, graph.moved.size), graph)
    elif kind == LOOK:
        _look(team, number, first, last, graph)
    else:
        _settle(team, number, first + team[END], last + team[END], graph)


@njit(cache=True, nogil=True)
def _draw(begin, end, graph):  # type: ignore[no-untyped-def]
    """Which turn each master has."""
    factor, turns, half = graph.draws[0], np.uint64(graph.draws.size - 1), np.uint64(32)
    for row in range(begin, end):
        graph.turns[row] = (graph.gids[row] * factor >> half) * turns >> half


@njit(cache=True, nogil=True)
def _close(turn, begin, end, graph):  # type: ignore[no-untyped-def]
    """Communities that none may join: those whose node looks now."""
    for row in range(begin, end):
        looks = (graph.states[row] & RESTLESS > 0) & (graph.turns[row] == turn)
        looks &= graph.totals[row] == graph.strengths[row]
        graph.known[row] = -graph.totals[row] if looks else graph.totals[row]


@njit(cache=True, nogil=True)
def _look(team, number, first, last, graph):  # type: ignore[no-untyped-def]
    """Restless masters of some ranges, whose turn it is, look for better communities.

    What moved in the turn before is finished, a share of it with each range.
    """
    turn, begin, before = team[TURN], team[BEGIN], team[END] - team[BEGIN]
    lot, (each, ranges) = graph.draws[1 + turn], _ranges(graph)
    _finish(graph, turn, begin + before * first // ranges, begin + before * last // ranges)
    first, last = _row_at(first * each, graph), _row_at(last * each, graph)
    numbers, after = _sides(graph, turn)
    to, touched = graph.to[number], graph.touched[number]
    rows, found, size = np.empty(BLOCK, np.uint32), np.empty(teams.BUFFER, np.uint32), 0
    for block in range(first, last, BLOCK):
        count = _list_restless(turn, block, min(block + BLOCK, last), graph, rows)
        for place in range(count):
            row = rows[place]
            _ask_for(rows[min(place + AHEAD, count - 1)], numbers, to, graph)
            choice = best_community(
                row, graph.offsets, graph.targets, graph.weights, numbers, graph.strengths, graph.known, graph.gids,
                lot, graph.scale, to, touched,
            )  # fmt: skip
            if choice != numbers[row]:
                after[row], graph.states[row] = choice, MOVED
                found[size] = row
                size += 1
        if size > teams.BUFFER - BLOCK:
            teams.append(team, FILLED, found, size, graph.moved)
            size = 0
    teams.append(team, FILLED, found, size, graph.moved)


@njit(cache=True, nogil=True, inline="always")
def _ranges(graph):  # type: ignore[no-untyped-def]
    """How many rows and edges a range has, as many as a block on average; and the number of ranges."""
    masters, edges = graph.moved.size, graph.targets.size
    each = BLOCK * (1 + edges // max(masters, 1))
    return each, -(-(masters + edges) // each)


@njit(cache=True, nogil=True)
def _row_at(entries, graph):  # type: ignore[no-untyped-def]
    """The first row before which there are at least so many rows and edges: where a range begins."""
    low, high = 0, graph.moved.size
    while low < high:
        middle = (low + high) >> 1
        if np.int64(graph.offsets[middle]) + middle < entries:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True, inline="always")
def _ask_for(row, numbers, to, graph):  # type: ignore[no-untyped-def]
    """Short rows wait for memory most: what one chooses is hard to foretell, so the next cannot begin before."""
    begin = graph.offsets[row]
    for edge in range(begin, min(begin + np.uint64(FIRST), graph.offsets[row + np.uint32(1)])):
        community = numbers[graph.targets[edge]]
        prefetch(graph.known, community)
        prefetch(to, community)


@njit(cache=True, nogil=True, inline="always")
def _sides(graph, turn):  # type: ignore[no-untyped-def]
    """The communities before and after a turn."""
    return (graph.sides[0], graph.sides[1]) if turn % 2 == 0 else (graph.sides[1], graph.sides[0])


@njit(cache=True, nogil=True)
def _finish(graph, turn, first, last):  # type: ignore[no-untyped-def]
    """Both sides have these moves of the turn before."""
    numbers, behind = _sides(graph, turn)
    for place in range(first, last):
        row = graph.moved[place]
        behind[row] = numbers[row]
        graph.states[row] &= RESTLESS


@njit(cache=True, nogil=True)
def _list_restless(turn, begin, end, graph, rows):  # type: ignore[no-untyped-def]
    """Those look now, or are not alone. Most blocks have none, which is seen quickly; returns how many look."""
    states, turns, some, size = graph.states[begin:end], graph.turns[begin:end], np.uint8(0), 0
    for place in range(end - begin):
        some |= states[place] & np.uint8(turns[place] == turn)
    if some & RESTLESS:
        for place in range(end - begin):
            rows[size] = begin + place
            size += (states[place] & RESTLESS) & np.uint8(turns[place] == turn)
    restless, size = size, 0 if graph.refines else size
    for place in range(restless):
        row = rows[place]
        graph.states[row] = 0
        if graph.refines:  # what holds is hard to foretell, so without a branch
            rows[size] = row
            size += np.int64(graph.totals[row] == graph.strengths[row])
    return size


@njit(cache=True, nogil=True)
def _settle(team, number, first, last, graph):  # type: ignore[no-untyped-def]
    """Neighbours see some of the moves, and sums become those of the communities after."""
    before, after = _sides(graph, team[TURN])
    gained, shared = 0.0, team[teams.HELPERS] > 0
    for place in range(first, last):
        row = graph.moved[place]
        _move(before[row], after[row], graph.strengths[row], graph.totals, shared)
        if not graph.refines:
            gained += settle_row(row, graph.offsets, graph.targets, graph.weights, before, after, graph.states)
    graph.gains[number, 0] += gained


@njit(cache=True, nogil=True, inline="always")
def _move(old, new, value, sums, shared):  # type: ignore[no-untyped-def]
    """A value leaves one sum for another; other threads may change them, too."""
    if shared:
        atomic_add(sums, old, -value)
        atomic_add(sums, new, value)
    else:
        sums[old] -= value
        sums[new] += value
