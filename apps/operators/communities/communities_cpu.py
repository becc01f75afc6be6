"""Communities on the CPU: see interfaces.py."""

from typing import Any, NamedTuple

import numpy as np

from cusp.apps.operators.communities.interfaces import Sweep
from cusp.apps.operators.communities.rows_cpu import best_community, settle_row
from cusp.apps.operators.communities.sweep_cpu import Graph, take_part
from cusp.kernels import build_cpu as build
from cusp.kernels.arrays import add_up, listed, offsets_of, sizes_of
from cusp.kernels.bits import unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams import team as teams
from cusp.runtime.teams.lent import borrow, give_back, thread_rows
from cusp.runtime.teams.together import make_team, together
from cusp.runtime.threads import cut, few, num_threads, ranges, row_ranges, threads_for


def sweep(of: Sweep, factor: int, lots: tuple[int, ...]) -> tuple[int, float]:
    if not of.kept:
        of.kept.append(_plan(of, len(lots)))
    graph = of.kept[0]
    graph.draws[:], graph.gains[:] = (factor, *lots), 0.0
    threads = len(graph.gains)
    team = make_team(threads - 1)
    together(take_part, cut(threads, threads), team, few(), graph)
    return int(team[teams.SUMS]), float(graph.gains[:, 0].sum())


def _plan(of: Sweep, turns: int) -> Graph:
    size = of.strengths.size
    threads = threads_for(size + of.targets.size)
    offsets, targets, gids, numbers, seen = unsigned(of.offsets, of.targets, of.gids, of.numbers, of.seen)
    return Graph(
        offsets=offsets, targets=targets, weights=of.weights, gids=gids, strengths=of.strengths, sides=(numbers, seen),
        totals=of.totals, known=np.empty(size) if of.refines else of.totals, states=of.states, refines=of.refines,
        scale=float(of.scale),
        turns=np.empty(size, np.uint8), moved=np.empty(size, np.uint32), gains=np.empty((threads, teams.LINE)),
        to=np.zeros((threads, size)), touched=np.empty((threads, size), np.uint32),
        draws=np.empty(1 + turns, np.uint64),
    )  # fmt: skip


def moves(
    rows: np.ndarray, offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray,
    strengths: np.ndarray, totals: np.ndarray, gids: np.ndarray, factor: int, scale: float, spare: list[Any],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    pieces = row_ranges(offsets_of(sizes_of(offsets, rows)))
    moved = np.empty(rows.size, np.int64), np.empty(rows.size, np.int32), np.empty(rows.size, np.int32)
    rows, offsets, targets, numbers, gids = unsigned(rows, offsets, targets, numbers, gids)
    size = max(totals.size, numbers.size)
    if not spare or spare[0].to.shape[1] < size:
        spare[:] = [_tables(size)]
    lots = gids, np.uint64(factor), float(scale)
    given = rows, offsets, targets, weights, numbers, strengths, totals, *lots, spare[0]
    kept, old, new = listed(_choose, pieces, None, given, *moved)
    return kept, old, new


class Tables(NamedTuple):
    """A row for each thread: whether it is lent; the weight to each community, all 0 if not; which these are."""

    lent: np.ndarray
    to: np.ndarray
    touched: np.ndarray


def _tables(size: int) -> Tables:
    return Tables(*thread_rows(size, np.float64), np.empty((num_threads(), size), np.uint32))


def settle(
    rows: np.ndarray, offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, before: np.ndarray,
    after: np.ndarray, states: np.ndarray,
) -> np.ndarray:  # fmt: skip
    gains, pieces = np.empty(rows.size, np.float64), row_ranges(offsets_of(sizes_of(offsets, rows)))
    together(_settle, pieces, *unsigned(rows, offsets, targets), weights, before, after, states, gains)
    return gains


def weight_inside(offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    inside = np.empty(offsets.size - 1, np.float64)
    together(_add_inside, row_ranges(offsets), *unsigned(offsets, targets), weights, *unsigned(numbers), inside)
    return inside


def leads_out(offsets: np.ndarray, targets: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    found = np.empty(offsets.size - 1, np.bool_)
    together(_find_leads, row_ranges(offsets), *unsigned(offsets, targets, numbers), found)
    return found


def edges_inside(
    offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes, kept = np.empty(offsets.size - 1, np.int64), (np.empty_like(targets), np.empty_like(weights))
    given = *unsigned(offsets, targets), weights, *unsigned(numbers), sizes
    targets, weights = listed(_keep_inside, row_ranges(offsets), offsets, given, *kept)
    return offsets_of(sizes), targets, weights


def join(
    offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray, loops: np.ndarray,
    strengths: np.ndarray, communities: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    begins, members = _list_members(numbers[: strengths.size], communities)
    offsets, targets, numbers, members = unsigned(offsets, targets, numbers, members)
    before, sizes = np.zeros(communities + 1, np.int64), np.empty(communities, np.int64)
    together(_count_edges, ranges(communities), begins, members, offsets, before[1:])
    add_up(before)
    own_loops, own_strengths = np.empty(communities), np.empty(communities)
    given = before, _tables(communities), begins, members, offsets, targets, weights, numbers, loops, strengths
    made, lists = (own_loops, own_strengths, sizes), (np.empty(targets.size, np.uint32), np.empty(targets.size))
    ends, sums = listed(_join, row_ranges(before), before, (*given, *made), *lists)
    return offsets_of(sizes), ends.view(np.int32), sums, own_loops, own_strengths


def _list_members(numbers: np.ndarray, communities: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the rows of each community begin, and these rows, ascending: its in-edges, if each row had one to it."""
    begins, members, none = np.zeros(communities + 1, np.int64), np.empty(numbers.size, np.int32), np.empty(0, np.uint8)
    build.count_in_edges(numbers, begins)
    add_up(begins)
    build.transpose(0, np.arange(numbers.size + 1), numbers, none, 0, communities, begins[:-1].copy(), members, none)
    return begins, members


def add_by_number(numbers: np.ndarray, values: np.ndarray, sums: np.ndarray) -> None:
    _add(*unsigned(numbers), values, sums)


@njit(cache=True, nogil=True)
def _choose(  # type: ignore[no-untyped-def]
    number, first, last, rows, offsets, targets, weights, numbers, strengths, totals, gids, factor, scale, tables,
    moved, olds, news, ends,
):  # fmt: skip
    """What moves of some rows stands from the place of the first one on."""
    place, end = borrow(tables.lent), first
    to, touched = tables.to[place], tables.touched[place]
    for row in rows[first:last]:
        choice = best_community(
            row, offsets, targets, weights, numbers, strengths, totals, gids, factor, scale, to, touched
        )
        if choice != numbers[row]:
            moved[end], olds[end], news[end] = row, numbers[row], choice
            end += 1
    ends[number] = end
    give_back(tables.lent, place)


@njit(cache=True, nogil=True)
def _settle(first, last, rows, offsets, targets, weights, before, after, states, gains):  # type: ignore[no-untyped-def]
    for i in range(np.uint64(first), np.uint64(last)):
        gains[i] = settle_row(rows[i], offsets, targets, weights, before, after, states)


@njit(cache=True, nogil=True)
def _add_inside(begin, end, offsets, targets, weights, numbers, inside):  # type: ignore[no-untyped-def]
    weighted = weights.size > 0
    for row in range(begin, end):
        whole, own = 0.0, numbers[row]
        for edge in range(offsets[row], offsets[row + 1]):
            weight = weights[edge] if weighted else 1.0
            whole += weight if own == numbers[targets[edge]] else 0.0
        inside[row] = whole


@njit(cache=True, nogil=True)
def _find_leads(begin, end, offsets, targets, numbers, found):  # type: ignore[no-untyped-def]
    for row in range(begin, end):
        found[row] = False
        for edge in range(offsets[row], offsets[row + 1]):
            if numbers[targets[edge]] != numbers[row]:
                found[row] = True
                break


@njit(cache=True, nogil=True)
def _keep_inside(  # type: ignore[no-untyped-def]
    number, begin, end, offsets, targets, weights, numbers, sizes, kept_targets, kept_weights, ends
):
    """Edges of the rows that stay, from the place of the first one on."""
    weighted, place = weights.size > 0, offsets[begin]
    for row in range(begin, end):
        first, own = place, numbers[row]
        for edge in range(offsets[row], offsets[row + 1]):
            target = targets[edge]
            kept_targets[place] = target
            if weighted:
                kept_weights[place] = weights[edge]
            place += np.uint64(own == numbers[target])
        sizes[row] = place - first
    ends[number] = place


@njit(cache=True, nogil=True)
def _add(numbers, values, sums):  # type: ignore[no-untyped-def]
    for i in range(numbers.size):
        sums[numbers[i]] += values[i]


@njit(cache=True, nogil=True)
def _count_edges(first, last, begins, members, offsets, counts):  # type: ignore[no-untyped-def]
    for community in range(first, last):
        count = np.uint64(0)
        for member in members[begins[community] : begins[community + 1]]:
            count += offsets[member + np.uint32(1)] - offsets[member]
        counts[community] = count


@njit(cache=True, nogil=True)
def _join(  # type: ignore[no-untyped-def]
    number, first, last, before, tables, begins, members, offsets, targets, weights, numbers, loops, strengths,
    own_loops, own_strengths, sizes, ends, sums, upto,
):  # fmt: skip
    """The rows of some communities, whose entries stand where those of their members would begin.

    As in :func:`best_community`, ``to`` has the weight to each community, and one may be among the ends twice.
    """
    weighted, place, count = weights.size > 0, borrow(tables.lent), before[first]
    to = tables.to[place]
    for source in range(first, last):
        begin = end = np.uint64(count)
        inside = strength = 0.0
        for member in members[begins[source] : begins[source + 1]]:
            inside += loops[member]
            strength += strengths[member]
            for edge in range(offsets[member], offsets[member + np.uint32(1)]):
                community = numbers[targets[edge]]
                weight = to[community]
                ends[end] = community
                end += np.uint64(weight == 0)
                to[community] = weight + (weights[edge] if weighted else 1.0)
        own_loops[source], own_strengths[source] = inside + to[source], strength
        to[source] = 0.0
        for entry in range(begin, end):
            community = ends[entry]
            ends[count], sums[count] = community, to[community]
            count += to[community] != 0
            to[community] = 0.0
        sizes[source] = np.int64(count) - np.int64(begin)
    upto[number] = count
    give_back(tables.lent, place)
