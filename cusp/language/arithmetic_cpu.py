"""What expressions call on the CPU: arithmetic that means the same everywhere. Twin of arithmetic.cuh."""

import numpy as np
from numpy import exp, fabs, floor, log, sqrt  # noqa: F401 - expressions call them

from cusp.runtime.compiled_code import njit

LOWEST, LARGEST = -(1 << 63), (1 << 63) - 1
HALF = 1 << 31  # products of numbers nearer to 0 fit
_inlined = njit(nogil=True, error_model="numpy")


@_inlined
def select(test, yes, no):  # type: ignore[no-untyped-def]
    """One of two numbers of one type."""
    return yes if test else no


@_inlined
def least(a, b):  # type: ignore[no-untyped-def]
    """The lower one; of two that cannot be compared the second."""
    return a if a < b else b


@_inlined
def largest(a, b):  # type: ignore[no-untyped-def]
    """The larger one; of two that cannot be compared the second."""
    return a if a > b else b


@_inlined
def infinity():  # type: ignore[no-untyped-def]
    """The float above all others."""
    return np.inf


@_inlined
def clipped(a, low, high):  # type: ignore[no-untyped-def]
    """The number nearest to a between two limits."""
    return low if a < low else high if a > high else a


@_inlined
def from_unsigned(a):  # type: ignore[no-untyped-def]
    """A uint64 as an int64; the largest int64 for what is above."""
    return np.int64(a) if a <= np.uint64(LARGEST) else np.int64(LARGEST)


@_inlined
def saturating_add(a, b):  # type: ignore[no-untyped-def]
    """a + b, or the limit that it exceeds."""
    total = np.int64(np.uint64(a) + np.uint64(b))  # signed overflow is undefined
    wrapped = ((a ^ total) & (b ^ total)) < 0
    return (np.int64(LARGEST) if b >= 0 else np.int64(LOWEST)) if wrapped else total


@_inlined
def saturating_sub(a, b):  # type: ignore[no-untyped-def]
    """a - b, or the limit that it exceeds."""
    total = np.int64(np.uint64(a) - np.uint64(b))
    wrapped = ((a ^ b) & (a ^ total)) < 0
    return (np.int64(LARGEST) if b < 0 else np.int64(LOWEST)) if wrapped else total


@_inlined
def saturating_mul(a, b):  # type: ignore[no-untyped-def]
    """a * b, or the limit that it exceeds."""
    if a == -1:
        return saturating_sub(np.int64(0), b)
    product = np.int64(np.uint64(a) * np.uint64(b))
    if -HALF <= a < HALF and -HALF <= b < HALF or a == 0 or product // a == b:
        return product
    return np.int64(LARGEST) if (a < 0) == (b < 0) else np.int64(LOWEST)


@_inlined
def multiply(a, b):  # type: ignore[no-untyped-def]
    """a * b of floats, rounded."""
    return a * b


@_inlined
def divide(a, b):  # type: ignore[no-untyped-def]
    """a / b of floats; infinite or not-a-number where b is 0."""
    return a / b


@_inlined
def floor_divide(a, b):  # type: ignore[no-untyped-def]
    """a / b of whole numbers, rounded down; 0 where b is 0."""
    if b == 0:
        return np.int64(0)
    return saturating_sub(np.int64(0), a) if b == -1 else a // b


@_inlined
def floor_modulo(a, b):  # type: ignore[no-untyped-def]
    """a - floor_divide(a, b) * b; 0 where b is 0."""
    return np.int64(0) if b == 0 or b == -1 else a % b


@_inlined
def saturating_abs(a):  # type: ignore[no-untyped-def]
    """The magnitude of a whole number; the largest one for the lowest."""
    return saturating_sub(np.int64(0), a) if a < 0 else a


@_inlined
def saturating_int(a):  # type: ignore[no-untyped-def]
    """A float without its fraction, or the nearest limit; 0 for not-a-number."""
    if a != a:
        return np.int64(0)
    if a >= 9223372036854775808.0:
        return np.int64(LARGEST)
    return np.int64(LOWEST) if a < -9223372036854775808.0 else np.int64(a)
