"""Neighbourhood expansion: parts of the edges of an undirected graph in memory (NE; Zhang et al., KDD 2017).

A part grows from a node: of the nodes in its region, that with the fewest edges out of it is taken, and all of their
other ends come into the region, with the edges that they have inside of it; until the part has its share of the edges.
An edge is that of the first part whose region has both of its ends. Hubs count as in every region, and are not looked
at, as in HEP: a node brings its edges to hubs along when it comes into its first region.

Nodes are numbered by degree here, so that those which are looked at most lie together, and parts begin
where there are few edges.
"""

import numpy as np

from cusp.runtime.compiled_code import njit


@njit(cache=True, nogil=True)
def collect(prop, ends):  # type: ignore[no-untyped-def]
    """Fill in the ends of each edge of this slice, unless both are hubs, once of its two rows; return their number."""
    found = 0
    for row in range(prop.indptr.size - 1):
        node = prop.first_node + row
        is_hub = prop.degrees[row] > prop.threshold
        for other in prop.all_neighbors(node):
            if node < other and not (is_hub and prop.total_degree(other) > prop.threshold):
                if ends.shape[0]:
                    ends[found, 0], ends[found, 1] = node, other
                found += 1
    return found


def undirected(num_nodes: int, ends: np.ndarray, hubs: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rows of all nodes that are no hubs, without hubs, by degree.

    Returns
    -------
    indptr : (nodes + 1,) int64
    others : (entries,) of the type of ``ends``
    to_hubs : (nodes,) int64
        How many edges of each lead to hubs.
    number : (num_nodes,) int64
        Of each node of the graph.
    """
    degrees = np.bincount(ends.reshape(-1), minlength=num_nodes)
    degrees[hubs] = 0
    number = np.empty(num_nodes, np.int64)
    number[np.argsort(degrees, kind="stable")] = np.arange(num_nodes)
    is_hub = np.zeros(num_nodes, np.bool_)
    is_hub[number[hubs]] = True
    to_hubs, counts = np.zeros((2, num_nodes), np.int64)
    _count_ends(ends, number, is_hub, to_hubs, counts)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    others = np.empty(int(indptr[-1]), ends.dtype)
    _fill(ends, number, is_hub, indptr[:-1].copy(), others)
    return indptr, others, to_hubs, number


@njit(cache=True, nogil=True)
def _count_ends(ends, number, is_hub, to_hubs, counts):  # type: ignore[no-untyped-def]
    for i in range(ends.shape[0]):
        a, b = number[ends[i, 0]], number[ends[i, 1]]
        if is_hub[a]:
            to_hubs[b] += 1
        elif is_hub[b]:
            to_hubs[a] += 1
        else:
            counts[a] += 1
            counts[b] += 1


@njit(cache=True, nogil=True)
def _fill(ends, number, is_hub, free, others):  # type: ignore[no-untyped-def]
    for i in range(ends.shape[0]):
        a, b = number[ends[i, 0]], number[ends[i, 1]]
        if not (is_hub[a] or is_hub[b]):
            others[free[a]] = b
            others[free[b]] = a
            free[a] += 1
            free[b] += 1


def expand(
    indptr: np.ndarray, others: np.ndarray, to_hubs: np.ndarray, number: np.ndarray, shares: np.ndarray, words: int
) -> np.ndarray:
    """The regions that nodes are in: (num_nodes, words) uint64 bits, by the numbers that they have in the graph.

    ``others`` is changed: in each row, what is left comes first.
    """
    regions = np.zeros((to_hubs.size, words), np.uint64)
    left = np.diff(indptr)
    ends = indptr[1:].copy()
    queue = np.full(int(left.max(initial=0)) + 1, -1, np.int64)
    links = np.empty((to_hubs.size, 2), np.int64)
    edges, seed = others.size // 2 + int(to_hubs.sum()), 0
    for part in np.flatnonzero(shares).tolist():
        if part == np.flatnonzero(shares)[-1]:
            remain = (left > 0) | ((to_hubs > 0) & ~regions.any(axis=1))
            regions[remain, part >> 6] |= np.uint64(1) << np.uint64(part & 63)
            break
        target = edges * shares[part] / shares[part:].sum()
        took, seed = _grow(part, target, seed, indptr, others, ends, left, to_hubs, regions, queue, links)
        edges -= took
    return regions[number]


@njit(cache=True, nogil=True)
def _grow(part, target, seed, indptr, others, ends, left, to_hubs, regions, queue, links):  # type: ignore[no-untyped-def]
    """Grow one part to about ``target`` edges; return how many it got, and the first node that may have some left.

    The nodes of its region that have edges left are queued by their number: ``queue[n]`` is the first of those that
    have n, ``links`` has the one before and the one after each.
    """
    bit, word = np.uint64(1) << np.uint64(part & 63), part >> 6
    edges, size, lowest, full = 0, 0, 0, False
    coming, inside = np.empty(queue.size + 1, np.int64), np.empty(queue.size + 1, np.int64)
    region = np.empty(left.size, np.int64)
    queue[:] = -1
    while not full:
        while lowest < queue.size and queue[lowest] < 0:
            lowest += 1
        if lowest < queue.size:
            node = queue[lowest]
            _take_out(queue, links, lowest, node)
        else:
            while seed < left.size and left[seed] == 0 and (to_hubs[seed] == 0 or _has_region(regions, seed)):
                seed += 1
            if seed == left.size:
                break
            node = seed
        come = 0
        if not regions[node, word] & bit:
            coming[0], come = node, 1
        for e in range(indptr[node], ends[node]):
            if not _have_common(regions, node, others[e]):
                coming[come] = others[e]
                come += 1
        for i in range(come):
            new = coming[i]
            if regions[new, word] & bit:
                continue  # it came along another edge
            found = 0
            for e in range(indptr[new], ends[new]):
                if regions[others[e], word] & bit and not _have_common(regions, new, others[e]):
                    inside[found] = others[e]
                    found += 1
            brought = found + (0 if _has_region(regions, new) else to_hubs[new])
            if edges + brought / 2 > target:
                full = True
                break
            edges += brought
            regions[new, word] |= bit
            region[size] = new
            size += 1
            left[new] -= found
            if new != node:
                _put_in(queue, links, left[new], new)
                lowest = min(lowest, left[new])
            for j in range(found):
                other = inside[j]
                if other != node:
                    _take_out(queue, links, left[other], other)
                    _put_in(queue, links, left[other] - 1, other)
                    lowest = min(lowest, left[other] - 1)
                left[other] -= 1
    for i in range(size):
        ends[region[i]] = _move_up(indptr[region[i]], ends[region[i]], region[i], others, regions)
    return edges, seed


@njit(cache=True, nogil=True)
def _have_common(regions, node, other):  # type: ignore[no-untyped-def]
    """Whether two nodes are in a region, and the edge between them is stored."""
    for word in range(regions.shape[1]):
        if regions[node, word] & regions[other, word]:
            return True
    return False


@njit(cache=True, nogil=True)
def _has_region(regions, node):  # type: ignore[no-untyped-def]
    for word in range(regions.shape[1]):
        if regions[node, word]:
            return True
    return False


@njit(cache=True, nogil=True)
def _move_up(begin, end, node, others, regions):  # type: ignore[no-untyped-def]
    """Of a row, the edges that are left first; return where they end."""
    for e in range(begin, end):
        if not _have_common(regions, node, others[e]):
            others[e], others[begin] = others[begin], others[e]
            begin += 1
    return begin


@njit(cache=True, nogil=True)
def _put_in(queue, links, edges, node):  # type: ignore[no-untyped-def]
    after = queue[edges]
    links[node, 0], links[node, 1] = -1, after
    queue[edges] = node
    if after >= 0:
        links[after, 0] = node


@njit(cache=True, nogil=True)
def _take_out(queue, links, edges, node):  # type: ignore[no-untyped-def]
    before, after = links[node]
    if before >= 0:
        links[before, 1] = after
    else:
        queue[edges] = after
    if after >= 0:
        links[after, 0] = before
