"""The loops of phases 3 and 4 on the GPU, with the same results as those on the CPU, bit for bit; see interfaces.py.

CuPy sorts, scans and searches arrays with one entry per node; those with one per edge go through our own kernels.
Nothing that is made meanwhile is larger than the edges themselves: they are split and sorted chunk by chunk.
"""

from collections.abc import Iterator
from typing import Any

import cupy as cp
import numpy as np
from numpy.typing import DTypeLike

from cusp.kernels.arrays import total
from cusp.kernels.cuda import Kernels, bincount, c_type, load, threads_for_edges, threads_for_rows
from cusp.kernels.exchange_gpu import all_to_all, post, wait_all
from cusp.runtime.devices import Array

__all__ = [
    "CHUNK", "all_to_all", "clear_range", "count_below", "count_in_edges", "count_owners", "count_rows", "find_masters",
    "group_by_owner", "list_marked", "list_rows", "look_up", "mark", "move_rows", "post", "rank_of", "relabel",
    "sort_masters", "test_bits", "transpose", "wait_all", "xp",
]  # fmt: skip

xp: Any = cp  # the library of arrays of this device
CHUNK = 1 << 24  # edges of a slice that travel at a time
TILE = 4096  # entries per block, as in split.cuh
EACH = 4  # look-ups of a thread, as in build.cuh
LARGE, PIECES = 1 << 24, 8  # this many edges are sorted at a time, or an eighth of all


def _kernels(gids: Array = None) -> Kernels:
    return load("cusp/kernels/build.cuh", GID="unsigned" if gids is None else c_type(gids.dtype))


def _split_kernels(keys: Array, value: DTypeLike = np.uint32) -> Kernels:
    return load("cusp/kernels/split.cuh", KEY=c_type(keys.dtype), VALUE=c_type(value))


def count_rows(indptr: Array, owners: Array, num_parts: int) -> np.ndarray:
    counts = _edges_by_owner(indptr, owners, num_parts)
    return np.array([total(part > 0) for part in counts], np.int64)


def list_rows(first_node: int, indptr: Array, owners: Array, entry: np.ndarray, gids: Array, sizes: Array) -> None:
    for part, counts in enumerate(_edges_by_owner(indptr, owners, entry.size)):
        rows = cp.flatnonzero(counts)
        place = slice(int(entry[part]) + 1, int(entry[part]) + 1 + rows.size)
        gids[place] = (rows + first_node).astype(gids.dtype)
        sizes[place] = counts[rows].astype(sizes.dtype)
        entry[part] += rows.size


def _edges_by_owner(indptr: Array, owners: Array, num_parts: int) -> Array:
    """(num_parts, rows) uint32: edges of each row that each rank gets. On average 4 bytes per node of the graph."""
    rows = indptr.size - 1
    counts = cp.zeros((num_parts, rows), cp.uint32)
    _split_kernels(owners).count_by_owner(threads_for_rows(indptr), indptr, rows, owners, counts)
    return counts


def count_owners(owners: Array, num_parts: int) -> np.ndarray:
    if num_parts > 256 or owners.size == 0:
        return cp.asnumpy(bincount(owners, num_parts))
    bits = (num_parts - 1).bit_length()
    return cp.asnumpy(_count_digits(owners, 0, bits).sum(axis=1, dtype=cp.int64))[:num_parts]


def group_by_owner(values: Array, owners: Array, counts: np.ndarray, grouped: Array) -> None:
    if counts.size <= 256:
        _split(owners, values, 0, (counts.size - 1).bit_length(), None, grouped)
    else:
        grouped[: values.size] = values[cp.argsort(owners)]


def _split(keys: Array, values: Array, shift: int, bits: int, split_keys: Array, split_values: Array) -> None:
    """Stable split by the digit of ``bits`` bits at ``shift`` of each key."""
    if keys.size == 0:
        return
    counts = _count_digits(keys, shift, bits).ravel()
    starts = cp.cumsum(counts, dtype=cp.int64)
    starts -= counts
    _split_kernels(keys, values.dtype).split(
        -(-keys.size // TILE) * 256, keys, values, keys.size, shift, bits, starts, int(split_keys is not None),
        keys if split_keys is None else split_keys, split_values,
    )  # fmt: skip


def _count_digits(keys: Array, shift: int, bits: int) -> Array:
    """(2**bits, tiles) uint32: entries of each tile with each digit."""
    tiles = -(-keys.size // TILE)
    counts = cp.empty((1 << bits, tiles), cp.uint32)
    _split_kernels(keys).count_digits(tiles * 256, keys, keys.size, shift, bits, counts)
    return counts


def sort(keys: Array, bits: int) -> tuple[Array, Array]:
    """Sorted uint32 keys, which are below ``2**bits``, and where each of them was: a stable radix sort."""
    order = cp.arange(keys.size, dtype=cp.uint32)
    spare = cp.empty_like(keys), cp.empty_like(order)
    keys = keys.copy()
    for shift in range(0, bits, 8):
        _split(keys, order, shift, min(8, bits - shift), *spare)
        (keys, order), spare = spare, (keys, order)
    return keys, order


def mark(index: Array, gids: Array) -> None:
    _kernels(gids).mark(-(-gids.size // EACH), index, gids, gids.size)


def count_below(index: Array) -> int:
    words = index.size // 2
    counts = cp.empty(words, cp.int64)
    _kernels().count_bits(words, index, words, counts)
    ends = cp.cumsum(counts)
    index[1::2] = (ends - counts).astype(cp.uint64)
    return int(ends[-1]) if words else 0


def list_marked(index: Array, gids: Array) -> None:
    _kernels(gids).list_marked(index.size // 2, index, index.size // 2, gids)


def find_masters(gids: Array, my_nodes: Array, places: Array, mirrors: Array) -> None:
    places[...] = cp.searchsorted(gids, my_nodes.astype(gids.dtype))
    mirror = cp.ones(gids.size, cp.bool_)
    mirror[places] = False
    mirrors[...] = cp.flatnonzero(mirror)


def sort_masters(
    degrees: Array, highest: int, places: Array, ascending: Array, table: Array, gids: Array, by_lid: Array
) -> None:
    keys = cp.minimum(degrees, highest).astype(cp.uint32)
    cp.subtract(highest, keys, out=keys)
    order = sort(keys, highest.bit_length())[1]
    by_lid[:] = degrees[order]
    order = places[order]
    table[order] = cp.arange(order.size, dtype=np.int32)
    gids[: order.size] = ascending[order]


def test_bits(words: Array, gids: Array, found: Array) -> None:
    _kernels(gids).test_bits(gids.size, words, gids, gids.size, found)


def look_up(index: Array, table: Array, gids: Array, lids: Array) -> None:
    _kernels(gids).look_up(gids.size, index, index.size // 2, table, gids, gids.size, lids)


def relabel(
    index: Array, table: Array, row_lids: Array, row_offsets: Array, arrived: Array, offsets: Array, targets: Array,
    fronts: Array, hubs_first: bool,
) -> None:  # fmt: skip
    rows = row_lids.size
    lowest = cp.full(rows if hubs_first else 1, 0xFFFFFFFFFFFFFFFF, cp.uint64)
    _kernels(arrived).relabel(
        threads_for_rows(row_offsets), int(index.size == 0), index, table, row_lids, row_offsets, rows, arrived,
        offsets, targets, int(hubs_first), lowest,
    )  # fmt: skip
    fronts.fill(0)
    if hubs_first:
        _kernels().swap_hubs(rows, row_lids, rows, lowest, offsets, targets, fronts)


def move_rows(
    row_lids: Array, row_offsets: Array, arrived: Array, offsets: Array, values: Array, fronts: Array
) -> None:
    kernels = load("cusp/kernels/move.cuh", VALUE=c_type(values.dtype))
    kernels.move_rows(
        threads_for_rows(row_offsets), row_lids, row_offsets, row_lids.size, arrived, offsets, fronts, values
    )


def count_in_edges(targets: Array, offsets: Array) -> None:
    offsets[1:] += bincount(targets, offsets.size - 1)


def transpose(
    first_source: int, offsets: Array, targets: Array, weights: Array, first: int, last: int, place: Array,
    sources: Array, in_weights: Array,
) -> None:  # fmt: skip
    """Chunk by chunk of the edges: each is sorted by target and then written behind those of the chunks before."""
    assert first_source == 0 and last - first == offsets.size - 1, "a GPU holds all edges at once"
    kernels, starts = load("cusp/kernels/move.cuh", VALUE=c_type(weights.dtype)), cp.empty(last, np.uint32)
    for row, end_row, begin, end in row_chunks(offsets, max(LARGE, targets.size // PIECES)):
        part_sources = cp.empty(end - begin, cp.uint32)
        _kernels().list_sources(threads_for_edges(end - begin), offsets, row, end_row, part_sources)
        part_targets = targets[begin:end].view(cp.uint32)
        order = cp.argsort(part_targets)  # stable
        sorted_targets = part_targets[order]
        _kernels().find_runs(end - begin, sorted_targets, end - begin, starts)
        kernels.place_in_edges(
            end - begin, order, sorted_targets, end - begin, starts, place, part_sources, sources,
            int(weights.size > 0), weights[begin:end], in_weights,
        )  # fmt: skip
        _kernels().pass_runs(end - begin, sorted_targets, end - begin, starts, place)


def row_chunks(offsets: Array, at_most: int) -> Iterator[tuple[int, int, int, int]]:
    """First row, row after the last, first edge, edge after the last of chunks; a long row is one of its own."""
    first, edges = 0, int(offsets[-1])
    begin = 0
    while begin < edges:
        wanted = cp.asarray([min(begin + at_most, edges)], cp.int64)
        last = max(int(cp.searchsorted(offsets, wanted, side="right")[0]) - 1, first + 1)
        end = int(offsets[last])
        yield first, last, begin, end
        first, begin = last, end


def clear_range(index: Array, first: int, last: int) -> None:
    if last > first:
        _kernels().clear_range((last - 1) // 64 - first // 64 + 1, index, first, last)


def rank_of(index: Array, gid: int) -> int:
    word = min(int(gid) >> 6, index.size // 2 - 1)
    bits, before = (int(value) for value in cp.asnumpy(index[2 * word : 2 * word + 2]))
    return before + (bits & ((1 << (int(gid) - 64 * word)) - 1)).bit_count()
