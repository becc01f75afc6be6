"""The loops of phases 3 and 4 on the GPU and on the CPU: every function gives the same bits as its twin."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cusp.kernels import bits, build_cpu

cp = pytest.importorskip("cupy")
build_gpu = pytest.importorskip("cusp.kernels.build_gpu")
read_gpu = pytest.importorskip("cusp.input.read_gpu")

GIDS = pytest.mark.parametrize("gid", [np.uint32, np.uint64, np.int64])
PARTS = pytest.mark.parametrize("num_parts", [1, 2, 3, 4, 200, 256, 300])


def rows_of(seed: int, rows: int = 400, longest: int = 9000) -> np.ndarray:
    """Offsets of rows of all lengths: many empty or short, one long."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 40, rows) * rng.integers(0, 2, rows)
    sizes[rng.integers(0, rows)] = longest
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def same(mine: Any, theirs: np.ndarray) -> None:
    """Assert that a device array has the type and the bits of one of the host."""
    mine = mine.get()
    assert mine.dtype == theirs.dtype
    np.testing.assert_array_equal(mine, theirs)


def test_same_names():
    """What the phases call is there on both devices, with the same arguments."""
    for name, function in vars(build_cpu).items():
        if callable(function) and getattr(function, "__module__", "") == build_cpu.__name__ and name[0] != "_":
            assert hasattr(build_gpu, name), name


@PARTS
def test_rows_and_edges_by_owner(num_parts):
    """Numbers of rows and edges of each rank, its rows, and its edges in their order."""
    rng = np.random.default_rng(num_parts)
    indptr = rows_of(num_parts)
    edges = int(indptr[-1])
    owners = rng.integers(0, num_parts, edges).astype(np.uint8 if num_parts <= 256 else np.uint16)
    owners[: edges // 2] = owners[0]
    on_device = cp.asarray(indptr), cp.asarray(owners)
    rows_for = build_cpu.count_rows(indptr, owners, num_parts)
    np.testing.assert_array_equal(build_gpu.count_rows(*on_device, num_parts), rows_for)
    counts = build_cpu.count_owners(owners, num_parts)
    np.testing.assert_array_equal(build_gpu.count_owners(on_device[1], num_parts), counts)

    for values in (rng.integers(0, 1 << 32, edges, np.uint32), rng.integers(0, 1 << 63, edges).astype(np.uint64)):
        grouped, mine = np.empty_like(values), cp.empty(edges, values.dtype)
        build_cpu.group_by_owner(values, owners, counts, grouped)
        build_gpu.group_by_owner(cp.asarray(values), on_device[1], counts, mine)
        same(mine, grouped)

    entry = np.cumsum(rows_for) - rows_for - 1
    gids, sizes = np.empty(rows_for.sum(), np.uint32), np.empty(rows_for.sum(), np.uint32)
    mine, my_sizes, my_entry = cp.empty(gids.size, np.uint32), cp.empty(gids.size, np.uint32), entry.copy()
    build_cpu.list_rows(100, indptr, owners, entry, gids, sizes)
    build_gpu.list_rows(100, *on_device, my_entry, mine, my_sizes)
    same(mine, gids)
    same(my_sizes, sizes)
    np.testing.assert_array_equal(my_entry, entry)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=60), st.integers(0, 5000))
def test_no_edge_is_lost_at_the_end_of_a_tile(owners, more):
    """Any number of edges, also none, and numbers around the size of a tile."""
    owners = np.array(owners + [1] * more, np.uint8)
    values = np.arange(owners.size, dtype=np.uint32)
    mine = cp.empty(owners.size, np.uint32)
    build_gpu.group_by_owner(cp.asarray(values), cp.asarray(owners), np.bincount(owners, minlength=4), mine)
    same(mine, values[np.argsort(owners, kind="stable")])


@GIDS
@pytest.mark.parametrize("nodes", [1, 63, 64, 65, 1000])
def test_index(nodes, gid):
    """Marking, clearing, counting, listing, looking up."""
    gids = np.random.default_rng(nodes).integers(0, nodes, nodes // 2 + 1).astype(gid)
    index, mine = np.zeros(2 * (-(-nodes // 64)), np.uint64), cp.zeros(2 * (-(-nodes // 64)), np.uint64)
    build_cpu.mark(index, gids)
    build_gpu.mark(mine, cp.asarray(gids))
    same(mine, index)
    for first, last in ((0, nodes), (0, 0), (nodes // 3, nodes // 2), (nodes // 2, nodes), (nodes, nodes)):
        cleared, my_cleared = index.copy(), mine.copy()
        build_cpu.clear_range(cleared, first, last)
        build_gpu.clear_range(my_cleared, first, last)
        same(my_cleared, cleared)
    count = build_cpu.count_below(index)
    assert build_gpu.count_below(mine) == count
    same(mine, index)
    for kind in (np.uint32, np.int64):
        listed, my_listed = np.empty(count, kind), cp.empty(count, kind)
        build_cpu.list_marked(index, listed)
        build_gpu.list_marked(mine, my_listed)
        same(my_listed, listed)
    for node in (0, 1, nodes // 2, nodes - 1, nodes):
        assert build_gpu.rank_of(mine, node) == build_cpu.rank_of(index, node)
    table = np.arange(count, dtype=np.int32)[::-1].copy()
    every = np.arange(nodes).astype(gid)
    beyond = np.concatenate([every, np.array([nodes + 64, 1 << 30], gid)])  # ids that are no nodes, too
    lids, my_lids = np.empty(beyond.size, np.int32), cp.empty(beyond.size, np.int32)
    bits.look_up(index, table, beyond, lids)
    build_gpu.look_up(mine, cp.asarray(table), cp.asarray(beyond), my_lids)
    same(my_lids, lids)
    assert lids[-2:].tolist() == [-1, -1]
    found, my_found = np.empty(nodes, np.bool_), cp.empty(nodes, np.bool_)
    build_cpu.test_bits(index[::2].copy(), every, found)
    build_gpu.test_bits(mine[::2].copy(), cp.asarray(every), my_found)
    same(my_found, found)


def test_masters_among_proxies():
    """Places of own nodes and of mirrors."""
    gids = np.flatnonzero(np.random.default_rng(5).integers(0, 2, 500)).astype(np.uint32)
    my_nodes = gids[100:170].astype(np.int64)
    for kind in (np.int32, np.int64):
        places, mirrors = np.empty(70, kind), np.empty(gids.size - 70, kind)
        mine, my_mirrors = cp.empty(70, kind), cp.empty(gids.size - 70, kind)
        build_cpu.find_masters(gids, my_nodes, places, mirrors)
        build_gpu.find_masters(cp.asarray(gids), cp.asarray(my_nodes), mine, my_mirrors)
        same(mine, places)
        same(my_mirrors, mirrors)


@pytest.mark.parametrize("gid", [np.uint32, np.uint64])
@pytest.mark.parametrize("hubs_first", [True, False])
@pytest.mark.parametrize("weight", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("every", [True, False])
def test_rows_in_lid_order(gid, hubs_first, weight, every):
    """Targets as local ids, hubs first, and weights in the order of their targets; without an index the same."""
    rng = np.random.default_rng(11)
    row_offsets = rows_of(11)
    row_offsets = row_offsets[np.r_[True, np.diff(row_offsets) > 0]]  # rows that arrive have edges
    rows, edges = row_offsets.size - 1, int(row_offsets[-1])
    index = np.zeros(2 * (-(-rows * 2 // 64)), np.uint64)
    build_cpu.mark(index, np.arange(rows * 2))
    build_cpu.count_below(index)
    table = rng.permutation(rows * 2).astype(np.int32)
    row_lids = np.sort(rng.permutation(rows * 2)[:rows]).astype(np.int32)
    rng.shuffle(row_lids)
    offsets = np.zeros(rows * 2 + 1, np.int64)
    offsets[row_lids + 1] = np.diff(row_offsets)
    offsets = np.cumsum(offsets)
    arrived = rng.integers(0, rows * 2, edges).astype(gid)
    weights = rng.integers(0, 255, edges).astype(weight)
    targets, moved, fronts = np.empty(edges, np.int32), np.empty_like(weights), np.empty(rows, np.int64)
    index = index[: 0 if every else None]
    build_cpu.relabel(index, table, row_lids, row_offsets, arrived, offsets, targets, fronts, hubs_first)
    build_cpu.move_rows(row_lids, row_offsets, weights, offsets, moved, fronts)
    given = [cp.asarray(array) for array in (index, table, row_lids, row_offsets, arrived, offsets)]
    mine, my_moved, my_fronts = cp.empty(edges, np.int32), cp.empty(edges, weight), cp.empty(rows, np.int64)
    build_gpu.relabel(*given, mine, my_fronts, hubs_first)
    build_gpu.move_rows(given[2], given[3], cp.asarray(weights), given[5], my_moved, my_fronts)
    same(mine, targets)
    same(my_fronts, fronts)
    same(my_moved, moved)
    pairs = sorted(zip(table[arrived].tolist(), weights.tolist()))
    assert sorted(zip(targets.tolist(), moved.tolist())) == pairs
    if hubs_first:
        begins = offsets[row_lids]
        assert (targets[begins] == np.minimum.reduceat(table[arrived], row_offsets[:-1])).all()


@pytest.mark.parametrize("weight", [None, np.uint8, np.uint64])
@pytest.mark.parametrize("chunk", [100, 3000, 1 << 30])
def test_transpose(weight, chunk, monkeypatch):
    """In-edges in the order of their sources, in one chunk or many."""
    rng = np.random.default_rng(chunk % 97)
    offsets = rows_of(3)
    nodes, edges = offsets.size - 1, int(offsets[-1])
    targets = (rng.integers(0, nodes, edges) ** 2 // nodes).astype(np.int32)
    weights = np.empty(0, np.uint8) if weight is None else rng.integers(0, 255, edges).astype(weight)
    in_offsets, mine = np.zeros(nodes + 1, np.int64), cp.zeros(nodes + 1, np.int64)
    build_cpu.count_in_edges(targets, in_offsets)
    build_gpu.count_in_edges(cp.asarray(targets), mine)
    same(mine, in_offsets)
    in_offsets = np.cumsum(in_offsets)
    sources, in_weights = np.empty(edges, np.int32), np.empty_like(weights)
    place, my_place = in_offsets[:-1].copy(), cp.asarray(in_offsets[:-1])
    build_cpu.transpose(0, offsets, targets, weights, 0, nodes, place, sources, in_weights)
    my_sources, my_weights = cp.empty(edges, np.int32), cp.empty(weights.size, weights.dtype)
    monkeypatch.setattr(build_gpu, "LARGE", chunk)
    monkeypatch.setattr(build_gpu, "PIECES", edges)
    on_device = cp.asarray(offsets), cp.asarray(targets), cp.asarray(weights)
    build_gpu.transpose(0, *on_device, 0, nodes, my_place, my_sources, my_weights)
    same(my_sources, sources)
    same(my_weights, in_weights)
    same(my_place, place)
