"""Checks of a tree of shortest paths against input edges, on the CPU: see interfaces.py."""

from cusp.runtime.compiled_code import njit


@njit(cache=True, nogil=True)
def check_edges(sources, targets, lengths, parent, depth, far, joined):  # type: ignore[no-untyped-def]
    traversed = 0
    for edge in range(sources.size):
        left, right = sources[edge], targets[edge]
        at_left, at_right = depth[left], depth[right]
        if at_left == far and at_right == far:
            continue
        length = 1 if lengths is None else lengths[edge]
        if at_left > at_right + length or at_right > at_left + length:
            return edge, traversed
        traversed += 1
        if parent[right] == left and at_left + length == at_right:
            joined[right] = True
        if parent[left] == right and at_right + length == at_left:
            joined[left] = True
    return -1, traversed
