"""Random edge weights that both directions of an edge agree on."""

from dataclasses import dataclass

import numpy as np

from cusp.edge_lists import random_kernels
from cusp.errors import OptionError

MAX_SPAN = 2**32  # most values that a random choice can have
FLOAT_STEPS = 2**24  # values that a random float32 can have


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
        random_kernels.edge_numbers(sources, targets, random_kernels.key_of(~seed), span, numbers)
        if is_float:
            return (self.low + numbers * ((self.high - self.low) / (FLOAT_STEPS - 1))).astype(self.dtype)
        return (numbers + np.uint64(self.low)).astype(self.dtype)


def require(holds: bool, message: str) -> None:
    """Raise OptionError with the message unless the condition holds."""
    if not holds:
        raise OptionError(message)
