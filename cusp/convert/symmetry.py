"""Whether a file that lists each undirected edge at both ends really does."""

import numpy as np

from cusp.input.checksum import as_bits
from cusp.kernels.bits import mix
from cusp.runtime.compiled_code import njit


@njit(cache=True, nogil=True)
def _asymmetry(sources, targets, weights):  # type: ignore[no-untyped-def]
    first, second = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1342543DE82EF95)
    total = np.uint64(0)
    for i in range(sources.size):
        u, v = np.uint64(sources[i]), np.uint64(targets[i])
        weight = mix(np.uint64(weights[i]) + first) if weights.size > 0 else np.uint64(0)
        total += mix(u * first + v * second + weight) - mix(v * first + u * second + weight)
    return total


def asymmetry(sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> int:
    """Sum over some edges of ``hash(edge) - hash(its reverse)``, mod 2**64.

    Over all edges of a graph it is 0 if each edge has its reverse, of the same weight, the same number
    of times; if not, it is 0 with a probability of about 2**-64.
    """
    bits = np.empty(0, np.int64) if weights is None else as_bits(np.ascontiguousarray(weights)).astype(np.int64)
    return int(_asymmetry(sources.astype(np.int64), targets.astype(np.int64), bits))
