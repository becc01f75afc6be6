"""Sums of whole numbers and of masks, on the device of the tests."""

import numpy as np
import parts
import pytest

from cusp.kernels.total import total
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
