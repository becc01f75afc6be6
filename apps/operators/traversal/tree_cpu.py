"""Parents in a tree of shortest paths on the CPU: see interfaces.py."""

from cusp.apps.operators.frontier_cpu import set_bit
from cusp.runtime.compiled_code import njit


@njit(cache=True, nogil=True)
def find_parents(offsets, sources, weights, gids, values, far, known, nobody, parents, updated):  # type: ignore[no-untyped-def]
    for node in range(offsets.size - 1):
        if parents[node] == nobody and values[node] != far:
            for edge in range(offsets[node], offsets[node + 1]):
                source = sources[edge]
                length = 1 if weights is None else weights[edge]
                if values[source] + length == values[node] and (
                    values[source] < values[node] or known[source] != nobody
                ):
                    parents[node] = gids[source]
                    set_bit(updated, node)
                    break
