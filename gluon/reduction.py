"""Reductions: how the values of mirrors become the one value of their master."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Reduction:
    """A commutative, associative way to combine two values.

    Attributes
    ----------
    name : str
    code : int
        What compiled loops call it, see :mod:`gluon.device_cpu`.
    idempotent : bool
        Combining a value twice changes nothing, so mirrors keep theirs when it was sent. Where it
        is not so (ADD), a mirror goes back to the identity, or its share would count again.
    """

    name: str
    code: int
    idempotent: bool

    def identity(self, dtype: np.dtype) -> np.generic:
        """The value that changes nothing."""
        if self.name == "add":
            return dtype.type(0)
        if dtype.kind == "f":
            return dtype.type(np.inf if self.name == "min" else -np.inf)
        limits = np.iinfo(dtype)
        return dtype.type(limits.max if self.name == "min" else limits.min)


ASSIGN = Reduction("assign", 0, True)  # what a broadcast does
MIN = Reduction("min", 1, True)
MAX = Reduction("max", 2, True)
ADD = Reduction("add", 3, False)
