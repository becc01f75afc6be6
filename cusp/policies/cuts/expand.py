"""Neighbourhood expansion: parts of the edges of an undirected graph in memory (NE; Zhang et al., KDD 2017).

A part grows from a node: of the nodes in its region, that with the fewest edges out of it is taken, and all of their
other ends come into the region, with the edges that they have inside of it; until the part has its share of the edges.
An edge is that of the first part whose region has both of its ends. Hubs count as in every region, and are not looked
at, as in HEP: a node brings its edges to hubs along when it comes into its first region.

Nodes are numbered by degree here, so that those which are looked at most lie together, and parts begin
where there are few edges.
"""

from collections import namedtuple

import numpy as np

from cusp.policies.prop import Prop
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.together import together
from cusp.runtime.threads import in_parallel, row_ranges

# What a part needs while it grows, each in turn the same: the queue of its nodes, see :func:`_grow`; whether a node is
# in its region; its region; and two lists of ends of a row.
Scratch = namedtuple("Scratch", "queue first inside region coming known")


def collect(prop: Prop, is_hub: np.ndarray, counts: np.ndarray, to_hubs: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The ends of the rows of this slice, but of hubs.

    Parameters
    ----------
    is_hub : (places,) bool
    counts, to_hubs : (rows,) int64
        Become the number of ends of each row that are listed, and of those that are hubs, which are not.
    """
    most = np.concatenate([[0], np.cumsum(np.where(is_hub[: counts.size], 0, prop.degrees[: counts.size]))])
    ends, pieces = np.empty(int(most[-1]), dtype), row_ranges(most)

    def collect_rows(begin: int, end: int) -> np.ndarray:
        room = ends[most[begin] : most[end]]
        return room[: _collect(prop, is_hub, begin, end, counts, to_hubs, room)]

    found = in_parallel(collect_rows, pieces)
    if len(pieces) > 1:
        return np.concatenate(found)
    size = found.pop().size
    ends.resize(size, refcheck=False)
    return ends


@njit(cache=True, nogil=True)
def _collect(prop, is_hub, begin, end, counts, to_hubs, ends):  # type: ignore[no-untyped-def]
    found = 0
    for row in range(begin, end):
        if is_hub[row]:
            continue
        before = found
        for other in prop.all_neighbors(prop.first_node + row):
            hub = is_hub[prop.place(other)]
            ends[found] = other
            found += not hub and other != prop.first_node + row
            to_hubs[row] += hub
        counts[row] = found - before
    return found


def by_degree(counts: np.ndarray, to_hubs: np.ndarray, slices: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Rows of all nodes, numbered by degree.

    Parameters
    ----------
    counts, to_hubs : (nodes,) int64
    slices : list of arrays
        The ends that each rank has collected, one rank after the other.

    Returns
    -------
    indptr : (nodes + 1,) int64
    others : (entries,) of the type of ``slices``
    to_hubs : (nodes,) int64
    number : (nodes,) of the same type
        Of each node of the graph.
    """
    order = np.argsort(counts + to_hubs, kind="stable")
    number = np.empty(order.size, slices[0].dtype)
    number[order] = np.arange(order.size)
    starts, indptr = (np.concatenate([[0], np.cumsum(sizes)]) for sizes in (counts, counts[order]))
    others = np.empty(int(indptr[-1]), number.dtype)
    bounds = np.searchsorted(starts, np.cumsum([0, *(ends.size for ends in slices)]))
    for ends, first, last in zip(slices, bounds[:-1].tolist(), bounds[1:].tolist()):
        own = starts[first : last + 1] - starts[first]
        together(_number_ends, row_ranges(own), number[first:last], own, ends, number, indptr, others)
    return indptr, others, to_hubs[order], number


@njit(cache=True, nogil=True)
def _number_ends(begin, end, rows, starts, ends, number, indptr, others):  # type: ignore[no-untyped-def]
    """Move the rows of some nodes to where they belong, their ends by number."""
    for row in range(begin, end):
        free = indptr[rows[row]]
        for e in range(starts[row], starts[row + 1]):
            others[free] = number[ends[e]]
            free += 1


def expand(
    indptr: np.ndarray, others: np.ndarray, to_hubs: np.ndarray, number: np.ndarray, shares: np.ndarray, words: int
) -> np.ndarray:
    """The regions that nodes are in: (num_nodes, words) uint64 bits, by the numbers that they have in the graph.

    ``others`` and ``to_hubs`` are changed: in each row, what is left comes first; edges to hubs that parts have do not
    count any more.
    """
    regions = np.zeros((to_hubs.size, words), np.uint64)
    left = np.diff(indptr).astype(others.dtype)
    edges, seed, longest = others.size // 2 + int(to_hubs.sum()), 0, int(left.max(initial=0))
    entries = int(min(edges * shares.max() / shares.sum(), others.size // 2)) + left.size + longest
    scratch = Scratch(
        np.empty((entries, 2), np.int32 if entries < 1 << 31 else np.int64),
        np.empty(longest + 1, np.int64),
        np.zeros(left.size, np.bool_),
        *(np.empty(size, left.dtype) for size in (left.size, longest + 1, longest + 1)),
    )
    *growing, last = np.flatnonzero(shares).tolist()
    for part in growing:
        target = edges * shares[part] / shares[part:].sum()
        scratch.first.fill(-1)
        took, seed = _grow(part, target, seed, indptr, others, left, to_hubs, regions, scratch)
        edges -= took
    regions[(left > 0) | (to_hubs > 0), last >> 6] |= np.uint64(1) << np.uint64(last & 63)
    return regions[number]


@njit(cache=True, nogil=True)
def _grow(part, target, seed, indptr, others, left, to_hubs, regions, scratch):  # type: ignore[no-untyped-def]
    """Grow one part to about ``target`` edges; return how many it got, and the first node that may have some left.

    A node of its region is queued each time it has fewer edges left: ``first[n]`` is the last entry of those with n,
    ``queue`` has the node of an entry and the entry before it. Of a node, only its last entry counts.
    """
    edges, size, queued, lowest, full = 0, 0, 0, 1, False
    queue, first, inside, region, coming, known = scratch
    while not full:
        lowest, node = _with_fewest_left(first, queue, left, lowest)
        come = 0
        if node < 0:
            while seed < left.size and left[seed] == 0 and to_hubs[seed] == 0:
                seed += 1
            if seed == left.size:
                break
            node, coming[0], come = seed, seed, 1
        come = _list_outside(others, indptr[node], left[node], inside, coming, come)
        for i in range(come):
            new = coming[i]
            if inside[new]:
                continue  # it came along another edge
            found = _list_inside(others, indptr[new], left[new], new, inside, known)
            brought = found + to_hubs[new]
            if edges + brought / 2 > target or queued + found >= len(queue):
                full = True
                break
            edges += brought
            regions[new, part >> 6] |= np.uint64(1) << np.uint64(part & 63)
            inside[new], region[size] = True, new
            size += 1
            left[new] -= found - 1
            to_hubs[new] = 0
            for j in range(found + 1):
                other = known[j]
                left[other] -= 1
                if left[other] and other != node:
                    queue[queued, 0], queue[queued, 1] = other, first[left[other]]
                    first[left[other]] = queued
                    queued += 1
                    lowest = min(lowest, left[other])
    for i in range(size):
        _move_up(others, indptr[region[i]], left[region[i]], inside)
    for i in range(size):
        inside[region[i]] = False
    return edges, seed


@njit(cache=True, nogil=True)
def _with_fewest_left(first, queue, left, lowest):  # type: ignore[no-untyped-def]
    """Take the node with the fewest edges left, at least ``lowest``, from the queue; return both, or -1 as the node."""
    while lowest < first.size:
        entry = first[lowest]
        if entry < 0:
            lowest += 1
            continue
        node, first[lowest] = queue[entry, 0], queue[entry, 1]
        if left[node] == lowest:
            return lowest, node
    return lowest, -1


@njit(cache=True, nogil=True)
def _list_outside(others, e, count, inside, coming, come):  # type: ignore[no-untyped-def]
    """Add so many ends of a row that are outside the region, which are all, to those that come; return their number."""
    end = come + count
    while come < end:
        coming[come] = others[e]
        come += not inside[others[e]]
        e += 1
    return come


@njit(cache=True, nogil=True)
def _list_inside(others, begin, count, new, inside, known):  # type: ignore[no-untyped-def]
    """After a node, list the ends of its row that are in the region; return their number."""
    known[0], found = new, 0
    for e in range(begin, begin + count):
        known[found + 1] = others[e]
        found += inside[others[e]]
    return found


@njit(cache=True, nogil=True)
def _move_up(others, begin, count, inside):  # type: ignore[no-untyped-def]
    """Of a row, the edges that are left come first: those to nodes outside the region."""
    e, end = begin, begin + count
    while begin < end:
        if not inside[others[e]]:
            others[e], others[begin] = others[begin], others[e]
            begin += 1
        e += 1
