"""Rows of neighbours, merged and sorted on the CPU: see interfaces.py and apps/shared/undirected.py."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cusp.input.checksum import as_bits
from cusp.kernels import build_cpu as build
from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import in_parallel, row_ranges

if TYPE_CHECKING:
    from cusp.apps.shared.undirected import RowPieces


def merge_rows(
    arrived: "list[RowPieces]", num_masters: int, num_proxies: int, weighted: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Instead of sorting the entries, this writes them by neighbour, from rows in ascending order.

    Among masters that gives the rows themselves, since two neighbours have each other. Behind them are those that name
    each mirror, which are written back into the rows, by ascending mirror.
    """
    begins = np.zeros(num_masters + 1, np.int64)
    for rows in arrived:
        begins[1:][rows.lids] += np.diff(rows.offsets)
    np.cumsum(begins, out=begins)
    neighbors, weights = np.empty(begins[-1], np.int32), np.empty(begins[-1] if weighted else 0, np.float64)
    ends = begins[:-1].copy()
    while arrived:
        _append(arrived.pop(0), ends, neighbors, weights)
    offsets, targets, sums = _by_neighbor(begins, neighbors, weights, num_proxies)
    del neighbors, weights
    kept = np.zeros(num_proxies + 1, np.int64)
    _each_row(offsets, lambda first, rows: _drop_duplicates(first, rows, targets, sums, kept))
    np.cumsum(kept, out=kept)
    if kept[-1] == targets.size:
        return kept, targets, sums if weighted else None
    left, left_sums = np.empty(kept[-1], np.int32), np.empty(kept[-1] if weighted else 0, np.float64)
    _each_row(offsets, lambda first, rows: _move_rows(first, rows, kept, targets, sums, left, left_sums))
    return kept, left, left_sums if weighted else None


def _by_neighbor(
    begins: np.ndarray, neighbors: np.ndarray, weights: np.ndarray, num_proxies: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, ascending neighbours and weights of the rows of masters; behind these, what is needed no more."""
    masters, starts = begins.size - 1, np.zeros(num_proxies + 1, np.int64)
    build.count_in_edges(neighbors, starts)
    if num_proxies > masters:
        _each_row(begins, lambda first, rows: _count_mirrors(first, rows, neighbors, masters, starts))
    np.cumsum(starts, out=starts)
    targets, sums = np.empty(starts[-1], np.int32), np.empty(starts[-1] if weights.size else 0, np.float64)
    place, bits = starts[:-1].copy(), as_bits(sums)
    build.transpose(0, begins, neighbors, as_bits(weights), 0, num_proxies, place, targets, bits)
    build.transpose(masters, starts[masters:], targets, bits, 0, masters, place, targets, bits)
    return starts[: masters + 1], targets, sums


def _each_row(offsets: np.ndarray, function: Callable[[int, np.ndarray], object]) -> list[Any]:
    """``function`` of the first row and the offsets of each of some ranges of rows."""
    return in_parallel(lambda first, last: function(first, offsets[first : last + 1]), row_ranges(offsets))


def _append(rows: "RowPieces", ends: np.ndarray, neighbors: np.ndarray, weights: np.ndarray) -> None:
    """Append pieces of rows to the rows; ``ends`` moves on."""
    values = rows.weights if weights.size else weights

    def some(first: int, last: int) -> None:
        _append_some(
            rows.lids[first:last], rows.offsets[first : last + 1], rows.places, rows.nodes, values, ends, neighbors,
            weights,
        )  # fmt: skip

    in_parallel(some, row_ranges(rows.offsets))


def rows_of_edges(offsets: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(offsets.size - 1, dtype=np.uint32), np.diff(offsets))


def rows_are_simple(offsets: np.ndarray, targets: np.ndarray) -> bool:
    return all(_each_row(offsets, lambda first, some: _rows_are_simple(first, some, targets)))


@njit(cache=True, nogil=True)
def _rows_are_simple(first, offsets, targets):  # type: ignore[no-untyped-def]
    for row in range(offsets.size - 1):
        last = np.int64(-1)
        for edge in range(offsets[row], offsets[row + 1]):
            if targets[edge] <= last or targets[edge] == first + row:
                return False
            last = np.int64(targets[edge])
    return True


@njit(cache=True, nogil=True)
def _append_some(lids, offsets, places, nodes, weights, ends, neighbors, sums):  # type: ignore[no-untyped-def]
    for row in range(lids.size):
        to = ends[lids[row]]
        for entry in range(offsets[row], offsets[row + 1]):
            neighbors[to] = nodes[places[entry]]
            if sums.size:
                sums[to] = weights[entry]
            to += 1
        ends[lids[row]] = to


@njit(cache=True, nogil=True)
def _count_mirrors(first, offsets, neighbors, masters, starts):  # type: ignore[no-untyped-def]
    """A row has an entry for each mirror that it names, besides those of the masters that name it."""
    for row in range(offsets.size - 1):
        for entry in range(offsets[row], offsets[row + 1]):
            starts[first + row + 1] += neighbors[entry] >= masters


@njit(cache=True, nogil=True)
def _drop_duplicates(first, offsets, targets, sums, kept):  # type: ignore[no-untyped-def]
    """Keep one of equal neighbours, which are side by side, with the sum of their weights, and no loop."""
    for row in range(offsets.size - 1):
        begin = to = offsets[row]
        for entry in range(begin, offsets[row + 1]):
            target = targets[entry]
            if to > begin and targets[to - 1] == target:
                if sums.size:
                    sums[to - 1] += sums[entry]
            elif target != first + row:
                targets[to] = target
                if sums.size:
                    sums[to] = sums[entry]
                to += 1
        kept[first + row + 1] = to - begin


@njit(cache=True, nogil=True)
def _move_rows(first, offsets, kept, targets, sums, left, left_sums):  # type: ignore[no-untyped-def]
    """Rows without gaps."""
    for row in range(offsets.size - 1):
        begin, size = kept[first + row], kept[first + row + 1] - kept[first + row]
        for entry in range(size):
            left[begin + entry] = targets[offsets[row] + entry]
        if sums.size:
            for entry in range(size):
                left_sums[begin + entry] = sums[offsets[row] + entry]
