"""Random numbers that depend on a seed and a counter only, and the edges and weights drawn from them.

A number is ``mix(key + counter * GOLDEN)``, the counter-based form of SplitMix64 (Steele, Lea and Flood,
OOPSLA 2014): any rank can draw any edge without drawing those before it.
"""

from dataclasses import dataclass

import numpy as np

from cusp.errors import OptionError
from cusp.kernels.bits import GOLDEN, mix
from cusp.runtime.compiled_code import njit

LANES = 4  # 16-bit numbers in a 64-bit number: this many levels of an RMAT edge share it
TILE = 512  # edges drawn together, level by level, so that compilers vectorize the loops over them
BLOCKS = 16  # 64-bit numbers reserved for each edge
MAX_SPAN = 2**32  # most values that a random choice can have
FLOAT_STEPS = 2**24  # values that a random float32 can have


def key_of(seed: int) -> np.uint64:
    """Where the random numbers of a seed start: consecutive seeds must not give overlapping ones."""
    mask = 2**64 - 1
    number = (seed * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019) & mask
    number = (number ^ number >> 32) * 0xDABA0B6EB09322E3 & mask
    return np.uint64(number ^ number >> 32)


@njit(nogil=True, inline="always")
def _below(number, bound):  # type: ignore[no-untyped-def]
    """A number in [0, bound) for bound <= 2**32, from the high half of a random one."""
    return ((number >> np.uint64(32)) * bound) >> np.uint64(32)


@njit(nogil=True, inline="always")
def _permuted(node, scale, key):  # type: ignore[no-untyped-def]
    """A bijection of [0, 2**scale): odd factors, sums and shifted exclusive ors, each of them invertible."""
    mask = (np.uint64(1) << scale) - np.uint64(1)
    half = (scale + np.uint64(1)) >> np.uint64(1)
    node = (node ^ key) & mask
    for _ in range(3):
        node = (node * np.uint64(0xD6E8FEB86659FD93) + (key >> np.uint64(17))) & mask
        node ^= node >> half
    return node


@njit(cache=True, nogil=True)
def rmat_edges(scale, key, first, thresholds, sources, targets):  # type: ignore[no-untyped-def]
    """Edges ``first``, ``first + 1`` ... of an RMAT graph.

    Each level draws a quadrant: ``thresholds`` are A, A + B and A + B + C in units of 2**-16.
    """
    a, ab, abc = thresholds[0], thresholds[1], thresholds[2]
    one = np.uint64(1)
    bits, source, target = np.empty(TILE, np.uint64), np.empty(TILE, np.uint64), np.empty(TILE, np.uint64)
    for start in range(0, sources.size, TILE):
        source[:] = 0
        target[:] = 0
        for level in range(scale):
            if level % LANES == 0:
                counter = np.uint64(first + start) * np.uint64(BLOCKS) + np.uint64(level // LANES)
                for i in range(TILE):
                    bits[i] = mix(key + (counter + np.uint64(i) * np.uint64(BLOCKS)) * GOLDEN)
            for i in range(TILE):
                lane = bits[i] & np.uint64(0xFFFF)
                bits[i] >>= np.uint64(16)
                down = np.uint64(lane >= ab)
                right = np.uint64(lane >= a) - down + np.uint64(lane >= abc)
                source[i] = (source[i] << one) | down
                target[i] = (target[i] << one) | right
        for i in range(min(TILE, sources.size - start)):
            sources[start + i] = _permuted(source[i], np.uint64(scale), key)
            targets[start + i] = _permuted(target[i], np.uint64(scale), key)


@njit(cache=True, nogil=True)
def uniform_edges(num_nodes, key, first, sources, targets):  # type: ignore[no-untyped-def]
    """Edges ``first``, ``first + 1`` ... with both ends uniform in [0, num_nodes), at most 2**32."""
    for i in range(sources.size):
        counter = np.uint64(first + i) * np.uint64(2)
        sources[i] = _below(mix(key + counter * GOLDEN), np.uint64(num_nodes))
        targets[i] = _below(mix(key + (counter + np.uint64(1)) * GOLDEN), np.uint64(num_nodes))


@njit(cache=True, nogil=True)
def uniform_units(key, first, numbers):  # type: ignore[no-untyped-def]
    """Numbers ``first``, ``first + 1`` ..., uniform in [0, 1)."""
    for i in range(numbers.size):
        numbers[i] = (mix(key + np.uint64(first + i) * GOLDEN) >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def edge_numbers(sources, targets, key, span, numbers):  # type: ignore[no-untyped-def]
    """For each edge a number uniform in [0, span), span <= 2**32; that of its reverse is the same."""
    for i in range(sources.size):
        source, target = np.uint64(sources[i]), np.uint64(targets[i])
        pair = mix(key + min(source, target) * GOLDEN)
        numbers[i] = _below(mix(pair + max(source, target) * GOLDEN), np.uint64(span))


@dataclass(frozen=True)
class WeightRule:
    """Random weights in a closed range, the same for an edge and its reverse: integers, or float32."""

    low: float
    high: float
    dtype: np.dtype

    @staticmethod
    def parse(text: str) -> "WeightRule":
        """Parse ``1:255`` (integers, in the smallest unsigned type) or ``0.0:1.0`` (float32).

        >>> WeightRule.parse("1:255")
        WeightRule(low=1, high=255, dtype=dtype('uint8'))

        Raises
        ------
        OptionError
            If the text is something else, the range is empty, or integers are negative or above 2**32 - 1.
        """
        is_integer = not any(mark in text.lower() for mark in ".eni")
        try:
            low, high = (int(part) if is_integer else float(part) for part in text.split(":"))
        except ValueError as error:
            raise OptionError(f"weights {text!r}: expected low:high, as in 1:255 or 0.0:1.0") from error
        require(low <= high and abs(low) < np.inf and abs(high) < np.inf, f"weights {text!r}: not a range")
        require(not is_integer or 0 <= low <= high < MAX_SPAN, f"weights {text!r}: not in 0 ... 2**32 - 1")
        return WeightRule(low, high, np.min_scalar_type(high) if is_integer else np.dtype(np.float32))

    def weights(self, sources: np.ndarray, targets: np.ndarray, seed: int) -> np.ndarray:
        """The weight of each edge, (n,) of ``dtype``."""
        is_float = self.dtype.kind == "f"
        numbers = np.empty(sources.size, np.uint64)
        span = FLOAT_STEPS if is_float else self.high - self.low + 1
        edge_numbers(sources, targets, key_of(~seed), span, numbers)
        if is_float:
            return (self.low + numbers * ((self.high - self.low) / (FLOAT_STEPS - 1))).astype(self.dtype)
        return (numbers + np.uint64(self.low)).astype(self.dtype)


def require(holds: bool, message: str) -> None:
    """Raise OptionError with the message unless the condition holds."""
    if not holds:
        raise OptionError(message)
