"""Communities on the CPU: see interfaces.py."""

from typing import Any

import numpy as np

from cusp.apps.operators.communities.interfaces import Sweep
from cusp.apps.operators.communities.rows_cpu import best_community, settle_row
from cusp.apps.operators.communities.sweep_cpu import Graph, take_part
from cusp.kernels import build_cpu as build
from cusp.kernels.arrays import add_up, joined, offsets_of, sizes_of
from cusp.kernels.bits import unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams import team as teams
from cusp.runtime.teams.together import make_team, together
from cusp.runtime.threads import cut, few, in_parallel, ranges, row_ranges, threads_for


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
    lots = gids, np.uint64(factor)

    def choose(first: int, last: int) -> int:
        to, touched = _take_spare(spare, totals.size, numbers.size)
        given = offsets, targets, weights, numbers, strengths, totals, *lots, float(scale), to, touched
        count = _choose(rows[first:last], *given, *(array[first:last] for array in unsigned(*moved)))
        spare.append((to, touched))
        return first + count

    spans = [slice(first, last) for (first, _), last in zip(pieces, in_parallel(choose, pieces))]
    kept, old, new = (_joined(array, spans) for array in moved)
    return kept, old, new


def _take_spare(spare: list[Any], size: int, room: int) -> tuple[np.ndarray, np.ndarray]:
    """A table that a thread has left empty, or another one; and room for the places that it will fill."""
    try:
        kept = spare.pop()
    except IndexError:
        kept = None
    if kept and kept[0].size >= size and kept[1].size >= room:
        return kept
    return np.zeros(size), np.empty(room, np.uint32)


def settle(
    rows: np.ndarray, offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, before: np.ndarray,
    after: np.ndarray, states: np.ndarray,
) -> np.ndarray:  # fmt: skip
    gains = np.empty(rows.size, np.float64)
    pieces = row_ranges(offsets_of(sizes_of(offsets, rows)))
    rows, offsets, targets = unsigned(rows, offsets, targets)
    given = offsets, targets, weights, before, after, states
    in_parallel(lambda first, last: _settle(rows[first:last], *given, gains[first:last]), pieces)
    return gains


def weight_inside(offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    inside = np.empty(offsets.size - 1, np.float64)
    pieces = row_ranges(offsets)
    given = *unsigned(offsets, targets), weights, *unsigned(numbers), inside
    in_parallel(lambda *rows: _add_inside(*rows, *given), pieces)
    return inside


def leads_out(offsets: np.ndarray, targets: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    found = np.empty(offsets.size - 1, np.bool_)
    pieces = row_ranges(offsets)
    given = *unsigned(offsets, targets, numbers), found
    in_parallel(lambda *rows: _find_leads(*rows, *given), pieces)
    return found


def edges_inside(
    offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes, kept = np.empty(offsets.size - 1, np.int64), (np.empty_like(targets), np.empty_like(weights))
    pieces = row_ranges(offsets)
    given = *unsigned(offsets, targets), weights, *unsigned(numbers), sizes, *kept
    ends = in_parallel(lambda *rows: int(_keep_inside(*rows, *given)), pieces)
    spans = [slice(int(offsets[first]), end) for (first, _), end in zip(pieces, ends)]
    return offsets_of(sizes), *(_joined(array, spans) for array in kept)


def _joined(array: np.ndarray, spans: list[slice]) -> np.ndarray:
    """What ranges of places have, one after the other; a single one as it is."""
    return array[spans[0]] if len(spans) == 1 else joined([array[span] for span in spans])


def join(
    offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray, loops: np.ndarray,
    strengths: np.ndarray, communities: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    begins, members = _list_members(numbers[: strengths.size], communities)
    offsets, targets, numbers, members = unsigned(offsets, targets, numbers, members)
    before, sizes = np.zeros(communities + 1, np.int64), np.empty(communities, np.int64)
    in_parallel(lambda *some: _count_edges(*some, begins, members, offsets, before[1:]), ranges(communities))
    add_up(before)
    ends, sums, spare = np.empty(targets.size, np.int32), np.empty(targets.size), list[Any]()
    own_loops, own_strengths = np.empty(communities), np.empty(communities)
    given = begins, members, offsets, targets, weights, numbers, loops, strengths
    made = own_loops, own_strengths, sizes, *unsigned(ends), sums

    def join_some(first: int, last: int) -> int:
        kept = _take_spare(spare, communities, 0)
        end = int(_join(first, last, int(before[first]), kept[0], *given, *made))
        spare.append(kept)
        return end

    pieces = row_ranges(before)
    spans = [slice(int(before[first]), end) for (first, _), end in zip(pieces, in_parallel(join_some, pieces))]
    return offsets_of(sizes), _joined(ends, spans), _joined(sums, spans), own_loops, own_strengths


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
    rows, offsets, targets, weights, numbers, strengths, totals, gids, factor, scale, to, touched, moved, olds, news
):
    """Returns how many rows have been found to move."""
    moves = 0
    for row in rows:
        choice = best_community(
            row, offsets, targets, weights, numbers, strengths, totals, gids, factor, scale, to, touched
        )
        if choice != numbers[row]:
            moved[moves], olds[moves], news[moves] = row, numbers[row], choice
            moves += 1
    return moves


@njit(cache=True, nogil=True)
def _settle(rows, offsets, targets, weights, before, after, states, gains):  # type: ignore[no-untyped-def]
    for i in range(rows.size):
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
    begin, end, offsets, targets, weights, numbers, sizes, kept_targets, kept_weights
):
    """Edges of the rows that stay, from the place of the first one on; returns where they end."""
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
    return place


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
    first, last, count, to, begins, members, offsets, targets, weights, numbers, loops, strengths,
    own_loops, own_strengths, sizes, ends, sums,
):  # fmt: skip
    """The rows of some communities, whose entries stand from ``count`` on; returns where they end.

    As in :func:`best_community`, ``to`` has the weight to each community, and one may be among the ends twice.
    """
    weighted = weights.size > 0
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
        for place in range(begin, end):
            community = ends[place]
            ends[count], sums[count] = community, to[community]
            count += to[community] != 0
            to[community] = 0.0
        sizes[source] = np.int64(count) - np.int64(begin)
    return count
