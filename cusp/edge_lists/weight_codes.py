"""Edge weights as unsigned integers in the same order, so that bits can be sorted and compared instead."""

import numpy as np

from cusp.errors import GraphFileError


def encode(weights: np.ndarray) -> np.ndarray:
    """A new array of codes of the same width: ``code(a) < code(b)`` if ``a < b`` (and for -0.0 and 0.0).

    >>> codes = encode(np.array([3.5, -1, 0, -2]))
    >>> decode(np.sort(codes), np.dtype(float))
    array([-2. , -1. ,  0. ,  3.5])
    """
    bits = weights.view(f"u{weights.dtype.itemsize}")
    top = bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
    if weights.dtype.kind == "u":
        return bits.copy()
    if weights.dtype.kind == "i":
        return bits ^ top
    return np.where(bits & top, ~bits, bits | top)


def decode(codes: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The weights from which :func:`encode` made ``codes`` (now in any unsigned type)."""
    bits = codes.astype(f"u{dtype.itemsize}")
    top = bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
    if dtype.kind == "i":
        bits ^= top
    elif dtype.kind == "f":
        bits = np.where(bits & top, bits ^ top, ~bits)
    return bits.view(dtype)


def convert(weights: np.ndarray, dtype: np.dtype, first: int = 0) -> np.ndarray:
    """The weights of the edges from number ``first`` on, in another type.

    Raises
    ------
    GraphFileError
        If one is not a number, or does not fit the other type.
    TypeError
        If floating-point weights would become integers.
    """
    if weights.dtype.kind == "f" and np.isnan(weights).any():
        raise GraphFileError(f"edge {first + int(np.isnan(weights).argmax()):,}: the weight is not a number")
    if weights.dtype == dtype:
        return weights
    if weights.dtype.kind not in "iuf" or (weights.dtype.kind == "f" and dtype.kind != "f"):
        raise TypeError(f"weights of type {weights.dtype} cannot become {dtype}")
    with np.errstate(over="ignore"):
        converted = weights.astype(dtype)
    if dtype.kind == "f":
        bad, limits = np.isinf(converted) & np.isfinite(weights), ""
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        bad, limits = (weights < low) | (weights > high), f" ({low} to {high})"
    if bad.any():
        at = int(bad.argmax())
        raise GraphFileError(f"edge {first + at:,}: weight {weights[at]} does not fit {dtype}{limits}")
    return converted
