"""Parents in a tree of shortest paths on the GPU: see interfaces.py and tree.cuh."""

from typing import Any

import numpy as np

from cusp.apps.operators.frontier_gpu import threads_for
from cusp.kernels.cuda import c_type, load

TREE = "cusp/apps/operators/traversal/tree.cuh"


def find_parents(
    offsets: Any, sources: Any, weights: Any, gids: Any, values: Any, far: Any, known: Any, nobody: int, parents: Any,
    updated: Any,
) -> None:  # fmt: skip
    rows, weighted = offsets.size - 1, weights is not None
    weight = weights.dtype if weighted else np.dtype(np.uint8)
    load(TREE, VALUE=c_type(values.dtype), WEIGHT=c_type(weight)).find_parents(
        threads_for(32 * rows), rows, offsets, sources, weights if weighted else sources.view(np.uint8), int(weighted),
        gids, values, values.dtype.type(far), known, int(nobody), parents, updated,
    )  # fmt: skip
