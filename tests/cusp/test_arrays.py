"""Passes over whole arrays, on the device of the tests and by several threads, against NumPy's."""

import math

import numpy as np
import parts
import pytest

from cusp.kernels import arrays, build_cpu
from cusp.runtime import threads
from cusp.runtime.devices import move, to_host


@pytest.fixture(autouse=True, params=[1, 5])
def number(request, monkeypatch):
    """Threads."""
    monkeypatch.setattr(threads._Chosen, "threads", request.param)


@pytest.mark.parametrize("size", [0, 1, 70_000, 300_001])
def test_passes(size):
    rng = np.random.default_rng(size)
    sizes, places = rng.integers(0, 9, size), rng.permutation(size).astype(np.int32)
    some, there = move(sizes, parts.WANTED), move(places, parts.WANTED)
    offsets = arrays.offsets_of(some)
    assert offsets.dtype == np.int64 and offsets.size == size + 1
    np.testing.assert_array_equal(to_host(offsets), np.concatenate([[0], np.cumsum(sizes)]))
    np.testing.assert_array_equal(to_host(arrays.sizes_of(offsets)), sizes)
    np.testing.assert_array_equal(to_host(arrays.filled_rows(offsets)), sizes > 0)
    np.testing.assert_array_equal(to_host(arrays.take(some, there)), sizes[places])
    assert arrays.take(some, there, np.int8).dtype == np.int8
    into = arrays.numbers(7, 7 + size, np.uint32, parts.WANTED)
    np.testing.assert_array_equal(to_host(into), np.arange(7, 7 + size, dtype=np.uint32))
    arrays.put(some, there, into)
    np.testing.assert_array_equal(to_host(into)[places], sizes)
    np.testing.assert_array_equal(to_host(arrays.compress(some > 4, there)), places[sizes > 4])
    if size:
        np.testing.assert_array_equal(
            to_host(arrays.compress((some > 4)[:-1], there)), places[np.r_[sizes[:-1] > 4, True]]
        )
    np.testing.assert_array_equal(to_host(arrays.compress(some >= 0, there)), places)
    doubled = arrays.mapped(lambda a, b: a + b, there, some, dtype=np.int64)
    np.testing.assert_array_equal(to_host(doubled), places + sizes)


@pytest.mark.parametrize("nodes", [100, 40_000])
def test_transpose(nodes):
    """Many edges a node, and few, of all nodes and of some; the order of the rows stays."""
    rng = np.random.default_rng(nodes)
    offsets = arrays.offsets_of(rng.integers(0, 5, 60_000))
    targets = rng.integers(0, nodes, int(offsets[-1])).astype(np.int32)
    rows, order = np.repeat(np.arange(60_000), np.diff(offsets)), np.argsort(targets, kind="stable")
    starts = np.searchsorted(targets[order], np.arange(nodes + 1))
    for first, last in ((0, nodes), (nodes // 3, nodes // 2)):
        place, found, weights = starts[:-1].copy(), np.full(targets.size, -1, np.int32), targets.astype(np.uint32)
        moved = np.zeros_like(weights)
        build_cpu.transpose(0, offsets, targets, weights, first, last, place, found, moved)
        span = slice(starts[first], starts[last])
        np.testing.assert_array_equal(found[span], rows[order][span])
        np.testing.assert_array_equal(moved[span], targets[order][span])
        assert (found == -1).sum() == targets.size - (starts[last] - starts[first])
        np.testing.assert_array_equal(place[first:last], starts[first + 1 : last + 1])


def test_sums_and_parts():
    rng = np.random.default_rng(3)
    parts_of = [move(rng.integers(0, 99, size), parts.WANTED) for size in (0, 70_001, 5)]
    whole = arrays.joined(parts_of)
    np.testing.assert_array_equal(to_host(whole), np.concatenate([to_host(part) for part in parts_of]))
    places = rng.permutation(100_000)[: whole.size].astype(np.int32)
    into = arrays.numbers(0, 100_000, np.float64, parts.WANTED)
    arrays.add(whole, move(places, parts.WANTED), into)
    expected = np.arange(100_000.0)
    expected[places] += to_host(whole)
    np.testing.assert_array_equal(to_host(into), expected)
    np.testing.assert_array_equal(
        to_host(arrays.sizes_of(into[:9], move(np.array([7, 0]), parts.WANTED))), np.diff(expected)[[7, 0]]
    )


TYPES = [bool, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [0, 1, 31, 100_003])
def test_total_is_exact(dtype, size):
    """Also where the sum does not fit the type, and is below 0."""
    least = 0 if dtype is bool else max(np.iinfo(dtype).min // 2, -(2**40))
    values = np.random.default_rng(size).integers(least, 2 if dtype is bool else 100, size).astype(dtype)
    assert arrays.total(move(values, parts.WANTED)) == sum(values.tolist())
    assert arrays.total(move(values, parts.WANTED)[::3]) == sum(values[::3].tolist())
    assert arrays.total_of(lambda some: some != 0, move(values, parts.WANTED)) == np.count_nonzero(values)


def test_total_of_large_numbers():
    values = np.array([2**62, 2**62 - 1, -5], np.int64)
    assert arrays.total(move(values, parts.WANTED)) == 2**63 - 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 300_001])
def test_total_of_floats(dtype, size, monkeypatch):
    """In float64, and on CPUs the same bits for any number of threads."""
    values = np.random.default_rng(size).random(size).astype(dtype)
    found = set()
    for number in (1, 2, 5):
        monkeypatch.setattr(threads._Chosen, "threads", number)
        found.add(arrays.total_of_floats(move(values, parts.WANTED)))
    assert len(found) == 1 and found.pop() == pytest.approx(math.fsum(values.tolist()), rel=1e-13)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint64, np.float32])
@pytest.mark.parametrize("size", [1, 200_001])
def test_extremes(dtype, size):
    values = (np.random.default_rng(size).random(size) * 200 + 3).astype(dtype)
    values[size // 2] = 255
    assert arrays.extremes(move(values, parts.WANTED)) == (values.min().item(), 255)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
@pytest.mark.parametrize("width", [1, 3])
def test_changed_rows(dtype, width, monkeypatch):
    """None, the first and last of a block, and what is not a number but was so before; by any number of threads."""
    monkeypatch.setattr(threads._Chosen, "threads", 3)
    known = np.random.default_rng(0).integers(0, 9, (100_003, width)).astype(dtype)
    known[5] = np.nan if dtype is np.float32 else 5
    values = known.copy()
    assert arrays.changed_rows(values, known).size == arrays.changed_rows(values[:0], known[:0]).size == 0
    expected = [0, 63, 64, 65, 50_000, 100_002]
    for row in expected:
        values[row, row % width] += 1
    assert arrays.changed_rows(values, known).tolist() == expected
