"""Sums of whole numbers, of masks and of floats, on the device of the tests."""

import math

import numpy as np
import parts
import pytest

from cusp.kernels.total import extremes, total, total_of_floats
from cusp.runtime import threads
from cusp.runtime.devices import move

TYPES = [bool, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [0, 1, 31, 100_003])
def test_total_is_exact(dtype, size):
    """Also where the sum does not fit the type, and is below 0."""
    least = 0 if dtype is bool else max(np.iinfo(dtype).min // 2, -(2**40))
    values = np.random.default_rng(size).integers(least, 2 if dtype is bool else 100, size).astype(dtype)
    assert total(move(values, parts.WANTED)) == sum(values.tolist())
    assert total(move(values, parts.WANTED)[::3]) == sum(values[::3].tolist())


def test_total_of_large_numbers():
    values = np.array([2**62, 2**62 - 1, -5], np.int64)
    assert total(move(values, parts.WANTED)) == 2**63 - 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 300_001])
def test_total_of_floats(dtype, size, monkeypatch):
    """In float64, and on CPUs the same bits for any number of threads."""
    values = np.random.default_rng(size).random(size).astype(dtype)
    found = set()
    for number in (1, 2, 5):
        monkeypatch.setattr(threads._Chosen, "threads", number)
        found.add(total_of_floats(move(values, parts.WANTED)))
    assert len(found) == 1 and found.pop() == pytest.approx(math.fsum(values.tolist()), rel=1e-13)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint64, np.float32])
@pytest.mark.parametrize("size", [1, 200_001])
def test_extremes(dtype, size):
    values = (np.random.default_rng(size).random(size) * 200 + 3).astype(dtype)
    values[size // 2] = 255
    assert extremes(move(values, parts.WANTED)) == (values.min().item(), 255)
