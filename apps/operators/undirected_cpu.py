"""Rows of neighbours, merged and sorted on the CPU: see interfaces.py and apps/shared/undirected.py."""

from typing import TYPE_CHECKING

import numpy as np

from cusp.runtime.compiled_code import njit

if TYPE_CHECKING:
    from cusp.apps.shared.undirected import RowPieces


def merge_rows(
    arrived: "list[RowPieces]", num_masters: int, num_proxies: int, weighted: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Instead of sorting the entries, this writes them by neighbour, from rows in ascending order.

    Among masters that gives the rows themselves, since two neighbours have each other. The entries for mirrors go back
    into the rows by ascending mirror.
    """
    begins = np.zeros(num_masters + 1, np.int64)
    for rows in arrived:
        begins[1:][rows.lids] += np.diff(rows.offsets)
    np.cumsum(begins, out=begins)
    ends = begins[:-1].copy()
    neighbors = np.empty(begins[-1], np.int32)
    weights = np.empty(neighbors.size if weighted else 0, np.float64)
    nothing = np.empty(0, np.float64)
    while arrived:
        rows = arrived.pop(0)
        _append(rows.lids, rows.offsets, rows.places, rows.nodes, rows.weights if weighted else nothing, ends,
                neighbors, weights)  # fmt: skip
        del rows
    offsets = np.zeros(num_proxies + 1, np.int64)
    bucket = np.zeros(num_proxies - num_masters + 1, np.int64)
    _count(begins, ends, neighbors, offsets, bucket)
    np.cumsum(offsets, out=offsets)
    np.cumsum(bucket, out=bucket)
    targets, sums = np.empty(offsets[-1], np.int32), np.empty(offsets[-1] if weighted else 0, np.float64)
    _write_by_neighbor(begins, ends, neighbors, weights, offsets, bucket, targets, sums)
    del neighbors, weights
    size = _drop_duplicates(num_masters, offsets, targets, sums)
    if size < targets.size:
        targets, sums = targets[:size].copy(), sums[:size].copy()
    return offsets, targets, sums if weighted else None


def rows_of_edges(offsets: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(offsets.size - 1, dtype=np.uint32), np.diff(offsets))


@njit(cache=True, nogil=True)
def rows_are_simple(offsets, targets):  # type: ignore[no-untyped-def]
    for row in range(offsets.size - 1):
        last = np.int64(-1)
        for edge in range(offsets[row], offsets[row + 1]):
            if targets[edge] <= last or targets[edge] == row:
                return False
            last = np.int64(targets[edge])
    return True


@njit(cache=True, nogil=True)
def _append(lids, offsets, places, nodes, weights, ends, neighbors, sums):  # type: ignore[no-untyped-def]
    """Append pieces of rows, without loops, to the rows; ``ends`` moves on."""
    for row in range(lids.size):
        lid = lids[row]
        to = ends[lid]
        for entry in range(offsets[row], offsets[row + 1]):
            neighbor = nodes[places[entry]]
            if neighbor != lid:
                neighbors[to] = neighbor
                if sums.size:
                    sums[to] = weights[entry]
                to += 1
        ends[lid] = to


@njit(cache=True, nogil=True)
def _count(begins, ends, neighbors, offsets, bucket):  # type: ignore[no-untyped-def]
    """``offsets[r + 1]``: entries of row r, once written by neighbour; ``bucket[m + 1]``: rows that have mirror m."""
    masters = ends.size
    for row in range(masters):
        for entry in range(begins[row], ends[row]):
            neighbor = neighbors[entry]
            if neighbor < masters:
                offsets[neighbor + 1] += 1
            else:
                offsets[row + 1] += 1
                bucket[neighbor - masters + 1] += 1


@njit(cache=True, nogil=True)
def _write_by_neighbor(begins, ends, neighbors, weights, offsets, bucket, targets, sums):  # type: ignore[no-untyped-def]
    masters = ends.size
    place, mirror_place = offsets[:masters].copy(), bucket[:-1].copy()
    rows = np.empty(bucket[-1], np.int32)
    row_weights = np.empty(bucket[-1] if sums.size else 0, np.float64)
    for row in range(masters):
        for entry in range(begins[row], ends[row]):
            neighbor = neighbors[entry]
            if neighbor < masters:
                to = place[neighbor]
                place[neighbor] = to + 1
                targets[to] = row
                if sums.size:
                    sums[to] = weights[entry]
            else:
                to = mirror_place[neighbor - masters]
                mirror_place[neighbor - masters] = to + 1
                rows[to] = row
                if sums.size:
                    row_weights[to] = weights[entry]
    for mirror in range(bucket.size - 1):
        for entry in range(bucket[mirror], bucket[mirror + 1]):
            to = place[rows[entry]]
            place[rows[entry]] = to + 1
            targets[to] = masters + mirror
            if sums.size:
                sums[to] = row_weights[entry]


@njit(cache=True, nogil=True)
def _drop_duplicates(masters, offsets, targets, sums):  # type: ignore[no-untyped-def]
    """Keep one of equal neighbours, which are side by side, with the sum of their weights; returns the entries left."""
    to = np.int64(0)
    begin = offsets[0]
    for row in range(masters):
        end = offsets[row + 1]
        first = to
        for entry in range(begin, end):
            if to > first and targets[to - 1] == targets[entry]:
                if sums.size:
                    sums[to - 1] += sums[entry]
            else:
                targets[to] = targets[entry]
                if sums.size:
                    sums[to] = sums[entry]
                to += 1
        begin = end
        offsets[row + 1] = to
    for row in range(masters, offsets.size - 1):
        offsets[row + 1] = to
    return to
