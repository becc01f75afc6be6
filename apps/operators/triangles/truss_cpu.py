"""Triangles that go with an edge, on the CPU: see interfaces.py."""

import numpy as np

from cusp.apps.operators.triangles.counts_cpu import first_from
from cusp.apps.operators.triangles.interfaces import EdgeRows
from cusp.kernels.arrays import offsets_of, sizes_of
from cusp.kernels.bits import prefetch_to_write, unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import atomic_add
from cusp.runtime.threads import in_parallel, row_ranges
from gluon.device_cpu import get_bit, set_bit_atomic

LOOK_UP = 8  # entries of a row that are marked in the time in which one is searched for
WAITING = 64  # triangles whose edges are looked at when the memory has brought them all


def remove_triangles(
    turn: int, places: np.ndarray, highs: np.ndarray, lows: np.ndarray, rows: np.ndarray, own: EdgeRows, table: EdgeRows
) -> None:
    """What is subtracted in any order, by atomic operations, is the same in the end."""
    own, table = _unsigned(own), _unsigned(table)

    def remove(first: int, last: int) -> None:
        marks, some = np.zeros(places.size, np.uint32), (each[first:last] for each in (highs, lows, rows))
        _remove(np.int32(turn), places, *unsigned(*some), own, table, marks)

    in_parallel(remove, row_ranges(offsets_of(sizes_of(table.offsets, rows))))


def _unsigned(rows: EdgeRows) -> EdgeRows:
    offsets, targets, edges = unsigned(rows.offsets, rows.targets, rows.edges)
    return rows._replace(offsets=offsets, targets=targets, edges=edges)


@njit(cache=True, nogil=True)
def _remove(turn, places, highs, lows, rows, own, table, marks):  # type: ignore[no-untyped-def]
    """A high end's row is marked once for all its edges, unless they are few: then it is searched."""
    one, first, waiting, size = np.uint64(1), 0, np.empty((WAITING, 3), np.uint32), 0
    while first < highs.size:
        high, last, work = highs[first], first, np.uint64(0)
        while last < highs.size and highs[last] == high:
            work += table.offsets[rows[last] + one] - table.offsets[rows[last]]
            last += 1
        begin, end = own.offsets[high], own.offsets[high + one]
        marked = work * np.uint64(LOOK_UP) > end - begin
        if marked:
            for entry in range(begin, end):
                marks[own.targets[entry]] = entry - begin + one
        for pair in range(first, last):
            for entry in range(table.offsets[rows[pair]], table.offsets[rows[pair] + one]):
                node = table.targets[entry]
                if marked:
                    found = begin + np.uint64(marks[node]) - one
                    if marks[node] == 0:
                        continue
                else:
                    found = first_from(own.targets, begin, end, node)
                    if found == end or own.targets[found] != node:
                        continue
                to_high, to_low = own.edges[found], table.edges[entry]
                prefetch_to_write(own.removed, to_high)
                prefetch_to_write(table.removed, to_low)
                prefetch_to_write(own.support, to_high)
                prefetch_to_write(table.support, to_low)
                waiting[size, 0], waiting[size, 1], waiting[size, 2] = node, to_high, to_low
                size += 1
                if size == WAITING:
                    _lose(turn, places, high, lows[pair], waiting, size, own, table)
                    size = 0
            _lose(turn, places, high, lows[pair], waiting, size, own, table)
            size = 0
        if marked:
            for entry in range(begin, end):
                marks[own.targets[entry]] = 0
        first = last


@njit(cache=True, nogil=True)
def _lose(turn, places, high, low, waiting, size, own, table):  # type: ignore[no-untyped-def]
    """Of the triangles of an edge with some nodes, the other two edges lose them, unless it is not the one to tell."""
    for place in range(size):
        node, to_high, to_low = waiting[place, 0], waiting[place, 1], waiting[place, 2]
        high_ends, low_ends = own.removed[to_high], table.removed[to_low]
        if high_ends < turn or low_ends < turn:
            continue
        if low_ends > turn and (high_ends > turn or places[node] < places[low]):
            _lose_one(table, to_low)
        if high_ends > turn and (low_ends > turn or places[node] < places[high]):
            _lose_one(own, to_high)


@njit(cache=True, nogil=True, inline="always")
def _lose_one(rows, edge):  # type: ignore[no-untyped-def]
    atomic_add(rows.support, edge, np.int32(-1))
    if not get_bit(rows.updated, edge):
        set_bit_atomic(rows.updated, edge)
