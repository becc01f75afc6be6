"""Triangles, counted on the CPU: see interfaces.py."""

from collections.abc import Callable

import numpy as np

from cusp.kernels.arrays import add_rows, listed, mapped, offsets_of, take, total
from cusp.kernels.bits import first_bit, popcount, prefetch, unsigned
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import atomic_add
from cusp.runtime.teams.lent import borrow, give_back, thread_rows
from cusp.runtime.teams.together import together
from cusp.runtime.threads import UNEVEN, ranges, row_ranges

FEW = 4  # nodes of a row that are searched for faster than marked
SHORT = np.uint64(16)  # entries that are looked at one after the other faster than by bisection
HUBS = 1 << 13  # at most: their bits take 4 MB, and so stay in a cache


def count_triangles(
    row_begins: np.ndarray, row_ends: np.ndarray, rows: np.ndarray, in_begins: np.ndarray, in_ends: np.ndarray,
    sources: np.ndarray, begins: np.ndarray, ends: np.ndarray, targets: np.ndarray, counts: np.ndarray,
) -> Callable[[], int]:  # fmt: skip
    """Of a u whose row is short, nodes are searched for in the rows of its v.

    For the others, rows of hubs, whose numbers are low, become bits (as in LOTUS, by Koohi Esfahani, Kilpatrick and
    Vandierendonck, PPoPP 2022), and so does one row of a u at a time: 64 nodes are looked up at once. The row of any
    other v is marked once for all its u. A thread has marks and counts of its own; those are whole numbers, whose sum
    is the same in any order.
    """
    edges = unsigned(begins, ends, targets, row_begins, row_ends, rows)
    triangles, lent, own = np.zeros(1, np.int64), *thread_rows(counts.size, counts.dtype)
    found, pieces = (triangles, lent, own), ranges(begins.size, UNEVEN)
    (left,) = listed(_count_short, pieces, None, (*edges, *found), np.empty(begins.size, np.uint32))
    sizes = mapped(np.subtract, take(ends, left), take(begins, left))
    hubs = min(begins.size, HUBS, int(8 * total(sizes) ** 0.5))  # so bits take no more memory than rows
    bits = _bits_of_rows(np.uint64(hubs), *edges[3:])
    pieces = row_ranges(offsets_of(sizes * sizes), UNEVEN)
    together(_count_by_bits, pieces, left, np.uint32(hubs), bits, *edges, *found)
    begin = hubs if left.size else begins.size  # then no rows are marked, but a rehearsal loads the code
    pieces = row_ranges(offsets_of(mapped(np.subtract, in_ends[begin:], in_begins[begin:])), UNEVEN)
    pieces, marks = [(begin + a, begin + b) for a, b in pieces], np.zeros((lent.size, begins.size), np.uint8)
    together(_count_by_marks, pieces, *unsigned(in_begins, in_ends, sources), *edges, marks, *found)
    add_rows(own, counts)
    return lambda: int(triangles[0])


@njit(cache=True, nogil=True, inline="always")
def _first_word(hub):  # type: ignore[no-untyped-def]
    """Where its bits begin: each hub has as many words as lower nodes and itself take."""
    one, word = np.uint64(1), hub >> np.uint64(6)
    return hub + word * (np.uint64(32) * (word - one) + (hub & np.uint64(63)))


@njit(cache=True, nogil=True, inline="always")
def _bit(node):  # type: ignore[no-untyped-def]
    return np.uint64(1) << (node & np.uint64(63))


@njit(cache=True, nogil=True)
def _bits_of_rows(hubs, row_begins, row_ends, rows):  # type: ignore[no-untyped-def]
    bits = np.zeros(_first_word(hubs), np.uint64)
    for hub in range(hubs):
        begin = _first_word(hub)
        for node in rows[row_begins[hub] : row_ends[hub]]:
            bits[begin + (node >> np.uint64(6))] |= _bit(node)
    return bits


@njit(cache=True, nogil=True)
def _count_short(  # type: ignore[no-untyped-def]
    number, first, last, begins, ends, targets, row_begins, row_ends, rows, found, lent, own, left, upto
):
    """Those u whose rows are not short are left, from the place of the first on."""
    lane = borrow(lent)
    one, triangles, size, counts = np.uint64(1), np.int64(0), first, own[lane]
    for user in range(np.uint64(first), np.uint64(last)):
        begin, end = begins[user], ends[user]
        if end > begin + np.uint64(FEW):
            left[size] = user
            size += 1
            continue
        for place in range(begin + one, end):
            middle = targets[place]
            row_begin, row_end = row_begins[middle], row_ends[middle]
            for node in targets[begin:place]:
                at = first_from(rows, row_begin, row_end, node)
                if at < row_end and rows[at] == node:
                    triangles += 1
                    if counts.size:
                        counts[user] += 1
                        counts[middle] += 1
                        counts[node] += 1
    upto[number] = size
    give_back(lent, lane)
    atomic_add(found, 0, triangles)


@njit(cache=True, nogil=True, inline="always")
def first_from(values, begin, end, value):  # type: ignore[no-untyped-def]
    """The first place from ``begin`` to ``end`` of ascending values that is not below ``value``."""
    while end - begin > SHORT:
        middle = (begin + end) >> np.uint64(1)
        if values[middle] < value:
            begin = middle + np.uint64(1)
        else:
            end = middle
    while begin < end and values[begin] < value:
        begin += np.uint64(1)
    return begin


@njit(cache=True, nogil=True)
def _count_by_bits(  # type: ignore[no-untyped-def]
    first, last, users, hubs, bits, begins, ends, targets, row_begins, row_ends, rows, found, lent, own
):
    """Triangles of some u whose v are hubs; ``words`` and ``masks`` have the w < v of u's row as bits."""
    lane = borrow(lent)
    counts = own[lane]
    one, triangles, most = np.uint64(1), np.int64(0), (hubs >> np.uint64(6)) + np.uint64(1)
    words, masks = np.empty(most, np.uint64), np.empty(most, np.uint64)
    for user in users[first:last]:
        size, word, at_user = np.uint64(0), most, np.int64(0)
        for middle in targets[begins[user] : ends[user]]:
            if middle >= hubs:
                break
            row, closing = bits[_first_word(middle) :], np.uint64(0)
            for place in range(size):
                closing += popcount(masks[place] & row[words[place]])
            at_user += np.int64(closing)
            if counts.size and closing:
                counts[middle] += np.int64(closing)
                _count_bits(words[:size], masks, row, counts)
            if middle >> np.uint64(6) != word:
                word = middle >> np.uint64(6)
                words[size], masks[size] = word, np.uint64(0)
                size += one
            masks[size - one] |= _bit(middle)
        if counts.size:
            counts[user] += at_user
        triangles += at_user
    give_back(lent, lane)
    atomic_add(found, 0, triangles)


@njit(cache=True, nogil=True)
def _count_bits(words, masks, row, counts):  # type: ignore[no-untyped-def]
    for place in range(words.size):
        closing = masks[place] & row[words[place]]
        while closing:
            counts[(words[place] << np.uint64(6)) + first_bit(closing)] += 1
            closing &= closing - np.uint64(1)


@njit(cache=True, nogil=True)
def _count_by_marks(  # type: ignore[no-untyped-def]
    first, last, in_begins, in_ends, sources, begins, ends, targets, row_begins, row_ends, rows, marks, found, lent, own
):
    """Triangles of some v with the u whose rows are not short."""
    lane = borrow(lent)
    triangles, marks, counts = np.int64(0), marks[lane], own[lane]
    for middle in range(np.uint64(first), np.uint64(last)):
        row, users = rows[row_begins[middle] : row_ends[middle]], sources[in_begins[middle] : in_ends[middle]]
        if row.size == 0 or users.size == 0:
            continue
        for node in row:
            marks[node] = 1
        at_middle, last_place = np.int64(0), np.uint64(users.size - 1)
        for place in range(np.uint64(users.size)):
            prefetch(begins, users[min(place + np.uint64(8), last_place)])
            soon = begins[users[min(place + np.uint64(4), last_place)]]
            prefetch(targets, soon)
            prefetch(targets, soon + np.uint64(16))
            user, closing = users[place], np.int64(0)
            edge = begins[user]
            if ends[user] - edge <= np.uint64(FEW):
                continue
            node = targets[edge]
            while node < middle:  # which is in the row
                closing += marks[node]
                edge += np.uint64(1)
                node = targets[edge]
            at_middle += closing
            if counts.size and closing:
                counts[user] += closing
                for closed in targets[begins[user] : edge]:
                    counts[closed] += np.int64(marks[closed])
        if counts.size:
            counts[middle] += at_middle
        triangles += at_middle
        for node in row:
            marks[node] = 0
    give_back(lent, lane)
    atomic_add(found, 0, triangles)
