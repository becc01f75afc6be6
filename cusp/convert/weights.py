"""Which weights a converted graph gets: those of the file, none, or random ones."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cusp.errors import GraphFileError, OptionError
from cusp.formats.source import EdgeSource

if TYPE_CHECKING:
    from cusp.edge_lists.random_weights import WeightRule

WEIGHT_TYPES = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)] + [
    "float32",
    "float64",
]


@dataclass(frozen=True)
class Weigher:
    """Called with ``(sources, targets, weights or None)`` of some edges, and returns their weights or None.

    Attributes
    ----------
    dtype : dtype or None
        Of the weights that the graph gets; None: no weights.
    rule : WeightRule or None
        How random weights are drawn; None: the given ones are kept.
    seed : int
        Of the random weights, which depend only on it and on the two ends, in either order.
    """

    dtype: np.dtype | None
    rule: "WeightRule | None" = None
    seed: int = 1

    def __call__(self, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        if self.dtype is None:
            return None
        if self.rule is None:
            return weights
        return self.rule.weights(sources.astype(np.int64), targets.astype(np.int64), self.seed)


def is_column(weights: str) -> bool:
    """Whether the value of --weights names a column: neither ``keep``, ``none`` nor LOW:HIGH."""
    return weights not in ("keep", "none") and ":" not in weights


def make_weigher(weights: str, weight_type: str | None, seed: int, source: EdgeSource) -> Weigher:
    """Turn --weights, --weight-type and --seed into a Weigher.

    Raises
    ------
    OptionError
        They contradict each other.
    GraphFileError
        The file's weights are of a type that a graph file cannot hold.
    """
    requested = None if weight_type is None else np.dtype(weight_type)
    if ":" in weights:
        from cusp.edge_lists.random_weights import WeightRule

        rule = WeightRule.parse(weights)
        if source.dictionary is not None:
            raise OptionError(
                f"--weights {weights}: random weights depend on the numbers of nodes, which the names in {source.path} "
                "get at the end; convert it without, then the graph file with them"
            )
        _refuse_rounding(weights, rule.dtype, requested)
        return Weigher(requested or rule.dtype, rule, seed)
    if weights == "none" or source.weight_dtype is None:
        if requested is not None:
            raise OptionError(f"--weight-type {requested}: there are no weights; --weights 1:255 makes random ones")
        return Weigher(None)
    _refuse_rounding(str(source.path), source.weight_dtype, requested)
    dtype = requested or source.weight_dtype.newbyteorder("=")
    if dtype.name not in WEIGHT_TYPES:
        raise GraphFileError(f"{source.path}: has weights of type {dtype}; choose one with --weight-type")
    return Weigher(dtype)


def _refuse_rounding(origin: str, dtype: np.dtype, requested: np.dtype | None) -> None:
    if requested is not None and requested.kind != "f" and dtype.kind == "f":
        raise OptionError(
            f"--weight-type {requested}: the weights of {origin} have fractions; choose float32 or float64"
        )
