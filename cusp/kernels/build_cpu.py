"""The loops of phases 3 and 4 on the CPU: group edges by owner, number the proxies, build CSR and CSC.

Those over all edges are shared among threads: every row is written by one of them.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from cusp.kernels import bits
from cusp.kernels.arrays import add_rows
from cusp.kernels.bits import first_bit, lid_of, popcount
from cusp.runtime import threads
from cusp.runtime.compiled_code import njit
from cusp.runtime.exchange import all_to_all, post, wait_all
from cusp.runtime.teams.atomics import atomic_or
from cusp.runtime.teams.together import together
from cusp.runtime.threads import Range, cut, cut_rows, numbered, ranges, row_ranges, tables

__all__ = [
    "CHUNK", "all_to_all", "clear_range", "count_below", "count_in_edges", "count_owners", "count_rows", "find_masters",
    "group_by_owner", "list_marked", "list_rows", "look_up", "mark", "move_rows", "post", "rank_of", "relabel",
    "sort_masters", "test_bits", "transpose", "wait_all", "xp",
]  # fmt: skip

xp: Any = np  # the library of arrays of this device
CHUNK = 1 << 20  # edges of a slice that travel at a time


@njit(cache=True, nogil=True)
def count_rows(indptr, owners, num_parts):  # type: ignore[no-untyped-def]
    rows = np.zeros(num_parts, np.int64)
    last_row = np.full(num_parts, -1, np.int64)
    for row in range(indptr.size - 1):
        for edge in range(indptr[row], indptr[row + 1]):
            owner = owners[edge]
            if last_row[owner] != row:
                last_row[owner] = row
                rows[owner] += 1
    return rows


@njit(cache=True, nogil=True)
def list_rows(first_node, indptr, owners, entry, gids, sizes):  # type: ignore[no-untyped-def]
    last_row = np.full(entry.size, -1, np.int64)
    for row in range(indptr.size - 1):
        for edge in range(indptr[row], indptr[row + 1]):
            owner = owners[edge]
            if last_row[owner] != row:
                last_row[owner] = row
                entry[owner] += 1
                gids[entry[owner]] = first_node + row
                sizes[entry[owner]] = 0
            sizes[entry[owner]] += 1


@njit(cache=True, nogil=True)
def count_owners(owners, num_parts):  # type: ignore[no-untyped-def]
    counts = np.zeros(num_parts, np.int64)
    for edge in range(owners.size):
        counts[owners[edge]] += 1
    return counts


@njit(cache=True, nogil=True)
def group_by_owner(values, owners, counts, grouped):  # type: ignore[no-untyped-def]
    place = np.cumsum(counts) - counts
    for edge in range(owners.size):
        owner = owners[edge]
        grouped[place[owner]] = values[edge]
        place[owner] += 1


def mark(index: np.ndarray, gids: np.ndarray) -> None:
    """Most bits are set already, and the words that hold them stay in the caches of all cores."""
    together(_mark, ranges(gids.size), index, gids)


@njit(cache=True, nogil=True)
def _mark(first, last, index, gids):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        gid = np.uint64(gids[i])
        word, bit = np.int64(2 * (gid >> np.uint64(6))), np.uint64(1) << (gid & np.uint64(63))
        if index[word] & bit == 0:
            atomic_or(index, word, bit)


@njit(cache=True, nogil=True)
def count_below(index):  # type: ignore[no-untyped-def]
    total = np.uint64(0)
    for word in range(index.size // 2):
        index[2 * word + 1] = total
        total += popcount(index[2 * word])
    return np.int64(total)


@njit(cache=True, nogil=True)
def list_marked(index, gids):  # type: ignore[no-untyped-def]
    entry = 0
    for word in range(index.size // 2):
        bits = index[2 * word]
        while bits:
            gids[entry] = np.int64(word * 64) + first_bit(bits)
            entry += 1
            bits &= bits - np.uint64(1)


@njit(cache=True, nogil=True)
def find_masters(gids, my_nodes, places, mirrors):  # type: ignore[no-untyped-def]
    own = mirror = 0
    for place in range(gids.size):
        if own < my_nodes.size and my_nodes[own] == gids[place]:
            places[own] = place
            own += 1
        else:
            mirrors[mirror] = place
            mirror += 1


def sort_masters(
    degrees: np.ndarray, highest: int, places: np.ndarray, ascending: np.ndarray, table: np.ndarray, gids: np.ndarray,
    by_lid: np.ndarray,
) -> None:  # fmt: skip
    """Every thread has a counter for each degree: so those of a degree stay in their order."""
    pieces = cut(degrees.size, tables(degrees.size, highest + 1))
    counts = np.zeros((len(pieces), highest + 1), np.int64)
    together(_count_degrees, numbered(pieces), degrees, highest, counts)
    begins = np.cumsum(counts.T).reshape(counts.T.shape).T - counts
    together(_sort_masters, numbered(pieces), degrees, highest, places, ascending, table, gids, by_lid, begins)


@njit(cache=True, nogil=True)
def _count_degrees(number, first, last, degrees, highest, counts):  # type: ignore[no-untyped-def]
    counts = counts[number]
    for degree in degrees[first:last]:
        counts[highest - min(degree, highest)] += 1


@njit(cache=True, nogil=True)
def _sort_masters(number, first, last, degrees, highest, places, ascending, table, gids, by_lid, begins):  # type: ignore[no-untyped-def]
    begins = begins[number]
    for i in range(first, last):
        key = highest - min(degrees[i], highest)
        lid = begins[key]
        begins[key] = lid + 1
        table[places[i]] = lid
        gids[lid] = ascending[places[i]]
        by_lid[lid] = degrees[i]


def test_bits(words: np.ndarray, gids: np.ndarray, found: np.ndarray) -> None:
    together(_test_bits, ranges(gids.size), words, gids, found)


@njit(cache=True, nogil=True)
def _test_bits(first, last, words, gids, found):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        gid = np.uint64(gids[i])
        found[i] = (words[gid >> np.uint64(6)] >> (gid & np.uint64(63))) & np.uint64(1)


def look_up(index: np.ndarray, table: np.ndarray, gids: np.ndarray, lids: np.ndarray) -> None:
    together(_look_up, ranges(gids.size), index, table, gids, lids)


@njit(cache=True, nogil=True)
def _look_up(first, last, index, table, gids, lids):  # type: ignore[no-untyped-def]
    bits.look_up(index, table, gids[first:last], lids[first:last])


def relabel(
    index: np.ndarray, table: np.ndarray, row_lids: np.ndarray, row_offsets: np.ndarray, arrived: np.ndarray,
    offsets: np.ndarray, targets: np.ndarray, fronts: np.ndarray, hubs_first: bool,
) -> None:  # fmt: skip
    given = index, table, row_lids, row_offsets, arrived, offsets, targets, fronts, hubs_first
    together(_relabel, row_ranges(row_offsets), *given)


@njit(cache=True, nogil=True)
def _relabel(  # type: ignore[no-untyped-def]
    first, last, index, table, row_lids, row_offsets, arrived, offsets, targets, fronts, hubs_first
):
    for row in range(first, last):
        begin = offsets[row_lids[row]]
        to = begin - row_offsets[row]
        lowest = np.int64(1) << 40
        front = begin
        for edge in range(row_offsets[row], row_offsets[row + 1]):
            gid = np.uint64(arrived[edge])
            lid = lid_of(index, table, gid) if index.size else table[gid]
            targets[to + edge] = lid
            if lid < lowest:
                lowest = np.int64(lid)
                front = to + edge
        fronts[row] = 0
        if hubs_first:
            fronts[row] = front - begin
            targets[front] = targets[begin]
            targets[begin] = lowest


def move_rows(
    row_lids: np.ndarray, row_offsets: np.ndarray, arrived: np.ndarray, offsets: np.ndarray, values: np.ndarray,
    fronts: np.ndarray,
) -> None:  # fmt: skip
    together(_move_rows, row_ranges(row_offsets), row_lids, row_offsets, arrived, offsets, values, fronts)


@njit(cache=True, nogil=True)
def _move_rows(first, last, row_lids, row_offsets, arrived, offsets, values, fronts):  # type: ignore[no-untyped-def]
    for row in range(first, last):
        begin = offsets[row_lids[row]]
        to = begin - row_offsets[row]
        for edge in range(row_offsets[row], row_offsets[row + 1]):
            values[to + edge] = arrived[edge]
        held = values[begin]
        values[begin] = values[begin + fronts[row]]
        values[begin + fronts[row]] = held


def count_in_edges(targets: np.ndarray, offsets: np.ndarray) -> None:
    pieces = cut(targets.size, tables(targets.size, offsets.size - 1))
    if len(pieces) == 1:
        together(_count_targets, numbered(pieces), targets, offsets[None, 1:])
    else:
        add_rows(_counts_of_pieces(targets, pieces, offsets.size - 1), offsets[1:])


def _counts_of_pieces(targets: np.ndarray, pieces: list[Range], size: int) -> np.ndarray:
    """(pieces, size) int64: how often each number below ``size`` is among the targets of each piece."""
    counts = np.zeros((len(pieces), size), np.int64)
    together(_count_targets, numbered(pieces), targets, counts)
    return counts


@njit(cache=True, nogil=True)
def _count_targets(number, first, last, targets, counts):  # type: ignore[no-untyped-def]
    counts = counts[number]
    for target in targets[first:last]:
        counts[target] += 1


def transpose(
    first_source: int, offsets: np.ndarray, targets: np.ndarray, weights: np.ndarray, first: int, last: int,
    place: np.ndarray, sources: np.ndarray, in_weights: np.ndarray,
) -> None:  # fmt: skip
    """Threads take rows one after the other; of a node, in-edges from the rows of those before come before.

    Where there are too few edges for that, each of four or more walks through all of them, for those to some nodes.
    """
    entries = int(offsets[-1] - offsets[0])
    rows = cut_rows(offsets, tables(entries, place.size) if last - first == place.size else 1)
    number = threads.num_threads()
    pieces, places = [(*piece, first, last) for piece in numbered(rows)], place[None]
    if len(rows) > 1:
        spans = [(int(offsets[begin]), int(offsets[end])) for begin, end in rows]
        places = _counts_of_pieces(targets, spans, place.size)
        together(_begin_each, ranges(place.size), place, places)
    elif entries >= threads.many() and number >= 4:
        ends = [first + end for _, end in cut_rows(place[first:last], number)[:-1]]
        pieces = [(*pieces[0][:3], *nodes) for nodes in pairwise([first, *ends, last])]
    together(_transpose, pieces, first_source, offsets, targets, weights, places, sources, in_weights)


@njit(cache=True, nogil=True)
def _begin_each(first, last, place, places):  # type: ignore[no-untyped-def]
    """How many in-edges pieces have becomes where they begin to write them."""
    for number in range(len(places)):
        for node in range(first, last):
            count = places[number, node]
            places[number, node] = place[node]
            place[node] += count


@njit(cache=True, nogil=True)
def _transpose(  # type: ignore[no-untyped-def]
    number, begin, end, first, last, first_source, offsets, targets, weights, places, sources, in_weights
):
    place = places[number]
    for row in range(begin, end):
        for edge in range(offsets[row], offsets[row + 1]):
            target = targets[edge]
            if target < first or target >= last:
                continue
            at = place[target]
            place[target] = at + 1
            sources[at] = first_source + row
            if weights.size:
                in_weights[at] = weights[edge]


@njit(cache=True, nogil=True)
def clear_range(index, first, last):  # type: ignore[no-untyped-def]
    node = first
    while node < last:
        if node & 63 == 0 and node + 64 <= last:
            index[2 * (node >> 6)] = 0
            node += 64
        else:
            index[2 * (node >> 6)] &= ~(np.uint64(1) << np.uint64(node & 63))
            node += 1


@njit(cache=True, nogil=True)
def rank_of(index, gid):  # type: ignore[no-untyped-def]
    word = gid >> 6
    if 2 * word >= index.size:
        return np.int64(index[index.size - 1] + popcount(index[index.size - 2]))
    below = index[2 * word] & ((np.uint64(1) << np.uint64(gid & 63)) - np.uint64(1))
    return np.int64(index[2 * word + 1] + popcount(below))
