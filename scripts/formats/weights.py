"""Which weights a converted graph gets: those of the file, none, or random ones."""

import re
from dataclasses import dataclass

import numpy as np

from cusp.errors import GraphFileError, OptionError
from scripts.formats.source import EdgeSource

WEIGHT_TYPES = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)] + [
    "float32",
    "float64",
]
_RANGE = re.compile(r"(-?\d+):(-?\d+)")


@dataclass(frozen=True)
class Weigher:
    """Called with ``(sources, targets, weights or None)`` of some edges, returns their weights or None.

    Attributes
    ----------
    dtype : dtype or None
        Of the weights that the graph gets; None: no weights.
    bounds : (int, int) or None
        Smallest and largest random weight; None: keep the given weights.
    seed : int
        Of the random weights. They depend on it and on the two ends alone, in either order.
    """

    dtype: np.dtype | None
    bounds: tuple[int, int] | None = None
    seed: int = 1

    def __call__(
        self, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None
    ) -> np.ndarray | None:
        if self.dtype is None:
            return None
        if self.bounds is None:
            return weights
        low, high = self.bounds
        ends = np.minimum(sources, targets), np.maximum(sources, targets)
        bits = np.full(len(sources), self.seed, np.uint64)
        for end in ends:
            bits = _mixed(bits ^ end.astype(np.uint64))
        return (low + (bits % np.uint64(high - low + 1)).astype(np.int64)).astype(self.dtype)


def _mixed(bits: np.ndarray) -> np.ndarray:
    """One step of splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def is_column(weights: str) -> bool:
    """Whether the value of --weights names a column."""
    return weights not in ("keep", "none") and _RANGE.fullmatch(weights) is None


def make_weigher(weights: str, weight_type: str | None, seed: int, source: EdgeSource) -> Weigher:
    """Turn --weights, --weight-type and --seed into a Weigher.

    Raises
    ------
    OptionError
        They contradict each other.
    GraphFileError
        The file's weights are of a type that a graph file cannot hold.
    """
    range_ = _RANGE.fullmatch(weights)
    if range_ is not None:
        low, high = int(range_[1]), int(range_[2])
        dtype = (
            np.dtype(weight_type)
            if weight_type
            else np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high))
        )
        if low > high or abs(low) >= 2**53 or abs(high) >= 2**53:
            raise OptionError(
                f"--weights {weights}: expected LOW:HIGH such as 1:255, whole numbers below 2^53"
            )
        if dtype.kind != "f" and not np.iinfo(dtype).min <= low <= high <= np.iinfo(dtype).max:
            raise OptionError(f"--weights {weights}: does not fit --weight-type {weight_type}")
        return Weigher(dtype, (low, high), seed)
    if weights == "none" or source.weight_dtype is None:
        if weight_type is not None:
            raise OptionError(f"--weight-type {weight_type}: there are no weights in {source.path}")
        return Weigher(None)
    dtype = np.dtype(weight_type or source.weight_dtype).newbyteorder("=")
    if dtype.name not in WEIGHT_TYPES:
        raise GraphFileError(f"{source.path}: has weights of type {dtype}; choose one with --weight-type")
    return Weigher(dtype)
