"""Common neighbours on the GPU: see interfaces.py."""

from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.operators.undirected_gpu import rows_of_edges
from cusp.apps.shared.oriented import cut_rows
from cusp.kernels.arrays import offsets_of, sizes_of

AT_ONCE = 1 << 26  # entries that are searched for


def count_common(offsets: Any, targets: Any, highs: Any, lows: Any, begins: Any, entries: Any) -> Any:
    """Edges of the CSR ascend as numbers, row * rows + target: each entry is searched for by bisection."""
    size, counts = offsets.size - 1, [cp.empty(0, np.int64)]
    edges = rows_of_edges(offsets).astype(np.int64) * size + targets
    sizes = sizes_of(begins, lows)
    for some in cut_rows(sizes, AT_ONCE):
        ends = offsets_of(sizes[some])
        pair = rows_of_edges(ends)
        wanted = entries[cp.arange(pair.size) + (begins[lows[some]] - ends[:-1])[pair]] + highs[some][pair] * size
        places = cp.searchsorted(edges, wanted).clip(None, max(edges.size - 1, 0))
        counts.append(sizes_of(offsets_of(edges[places] == wanted)[ends]))
    return cp.concatenate(counts)
