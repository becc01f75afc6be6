"""Which weights a converted graph gets: those of the file, none, or random ones."""

from collections.abc import Callable

import numpy as np

from cusp.errors import GraphFileError, OptionError
from cusp.formats.source import EdgeSource
from cusp.input.hdf5 import NUMBERS

WEIGHT_TYPES = [dtype.name for dtype in NUMBERS]
Weigh = Callable[[np.ndarray, np.ndarray, np.ndarray | None], np.ndarray | None]


def is_column(weights: str) -> bool:
    """Whether the value of --weights names a column: neither ``keep``, ``none`` nor LOW:HIGH."""
    return weights not in ("keep", "none") and ":" not in weights


def make_weigher(weights: str, weight_type: str | None, seed: int, source: EdgeSource) -> tuple[np.dtype | None, Weigh]:
    """Turn --weights, --weight-type and --seed into the type of the weights, and what weighs some edges.

    That is called with ``(sources, targets, weights or None)`` and returns their weights, or None. Random ones depend
    only on the seed and on the two ends, in either order.

    Raises
    ------
    OptionError
        They contradict each other.
    GraphFileError
        The file's weights are of a type that a graph file cannot hold.
    """
    requested = None if weight_type is None else np.dtype(weight_type)
    if ":" in weights:
        from cusp.edge_lists.random_kernels import WeightRule

        rule = WeightRule.parse(weights)
        if source.dictionary is not None:
            raise OptionError(
                f"--weights {weights}: random weights depend on the numbers of nodes, which the names in {source.path} "
                "get at the end; convert it without, then the graph file with them"
            )
        _refuse_rounding(weights, rule.dtype, requested)
        return requested or rule.dtype, lambda sources, targets, _: rule.weights(
            sources.astype(np.int64), targets.astype(np.int64), seed
        )
    if weights == "none" or source.weight_dtype is None:
        if requested is not None:
            raise OptionError(f"--weight-type {requested}: there are no weights; --weights 1:255 makes random ones")
        return None, lambda *edges: None
    _refuse_rounding(str(source.path), source.weight_dtype, requested)
    dtype = requested or source.weight_dtype.newbyteorder("=")
    if dtype not in NUMBERS:
        raise GraphFileError(f"{source.path}: has weights of type {dtype}; choose one with --weight-type")
    return dtype, lambda sources, targets, stored: stored


def _refuse_rounding(origin: str, dtype: np.dtype, requested: np.dtype | None) -> None:
    if requested is not None and requested.kind != "f" and dtype.kind == "f":
        raise OptionError(
            f"--weight-type {requested}: the weights of {origin} have fractions; choose float32 or float64"
        )
