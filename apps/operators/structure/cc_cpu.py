"""Connected components on the CPU: see interfaces.py.

Several threads unite at once. A node that is no root never becomes one again, and its parent is replaced by ancestors
only, so a thread that reads an old parent climbs on from there. Whoever wins a race, in the end the root of a tree is
the lowest node of what the edges connect.
"""

from functools import partial
from typing import Any

import numpy as np

from cusp.apps.operators.structure.interfaces import Unite
from cusp.kernels.arrays import compress, mapped, total
from cusp.kernels.bits import first_bit
from cusp.partition import Partition
from cusp.runtime.compiled_code import njit
from cusp.runtime.teams.atomics import atomic_add, atomic_min
from cusp.runtime.teams.together import together
from cusp.runtime.threads import ALIKE, num_threads, ranges, row_ranges, whole_words
from gluon.device_cpu import set_bit, set_bit_atomic
from gluon.sync import Sync

SAMPLE = 512
LARGE = 4  # a tree with one in so many nodes is large


@njit(cache=True, nogil=True, inline="always")
def _root(parents, lid):  # type: ignore[no-untyped-def]
    while True:
        parent = parents[lid]
        if parent == lid:
            return lid
        above = parents[parent]
        if above != parent:
            parents[lid] = above
        lid = above


@njit(cache=True, nogil=True, inline="always")
def unite(alone, parents, one, other):  # type: ignore[no-untyped-def]
    """The root of what now is one tree. Of two roots the higher gets the lower as its parent.

    If it has just got another parent, that one and the lower are left to unite: it keeps the lowest of them.
    """
    while True:
        one, other = _root(parents, one), _root(parents, other)
        low, high = min(one, other), max(one, other)
        if low == high:
            return low
        if alone:
            parents[high] = low
            return low
        one, other = atomic_min(parents, high, parents.dtype.type(low)), low
        if one == high:
            return low


def link_first(part: Partition, edges: int, rare: int, offsets: Any, targets: Any) -> tuple[np.ndarray, np.ndarray]:
    """The first target of a row is its lowest, as a rule, so most trees are complete after one edge of each node.

    If there is no large tree yet, the other edges are looked at, too. All parents are roots then.
    """
    parents = np.empty(offsets.size - 1, np.int32)
    pieces = ranges(parents.size)
    together(_link_to_first, pieces, offsets, targets, parents)
    flatten(parents)
    complete = bool(most_frequent(LARGE, parents)[0] >= 0)
    # without rows: a rehearsal, whose graph has a large tree, loads the code
    together(_link_next, [(0, 0)] if complete else pieces, num_threads() == 1, edges, offsets, targets, parents)
    if not complete:
        flatten(parents)
    return parents, most_frequent(rare, parents)


@njit(cache=True, nogil=True)
def _link_to_first(first, last, offsets, targets, parents):  # type: ignore[no-untyped-def]
    """No node has been united with another yet."""
    offsets, parents = offsets[first : last + 1], parents[first:last]
    for row in range(parents.size):
        parents[row] = first + row
        if offsets[row] < offsets[row + 1]:
            parents[row] = min(first + row, targets[offsets[row]])


@njit(cache=True, nogil=True)
def _link_next(first, last, alone, edges, offsets, targets, parents):  # type: ignore[no-untyped-def]
    offsets = offsets[first : last + 1]
    for row in range(offsets.size - 1):
        source = first + row
        for edge in range(offsets[row] + 1, min(offsets[row] + edges, offsets[row + 1])):
            if parents[source] != parents[targets[edge]]:
                unite(alone, parents, source, targets[edge])


def most_frequent(rare: int, parents: np.ndarray) -> np.ndarray:
    taken = min(parents.size, SAMPLE)
    places = np.arange(taken) * parents.size // max(taken, 1)
    roots, numbers = np.unique(parents[places], return_counts=True)
    most = int(numbers.argmax()) if taken else 0
    return roots[most : most + 1] if taken and numbers[most] > taken // rare else np.full(1, -1, np.int32)


def link_others(part: Partition, left_out: Any, both_ways: bool, parents: Any) -> None:
    """All threads leave out the tree as it is now: what they leave out does not depend on which comes first."""
    alone, skipped, root = num_threads() == 1, np.empty(parents.size, np.bool_), left_out[0]
    together(_compare, ranges(parents.size), parents, root, skipped)
    given = alone, bool(both_ways and root < 0), skipped, part.offsets, part.targets, parents
    together(_link_others, row_ranges(part.offsets, ALIKE), *given)  # most rows are left out


@njit(cache=True, nogil=True)
def _compare(first, last, parents, root, skipped):  # type: ignore[no-untyped-def]
    parents, skipped = parents[first:last], skipped[first:last]
    for row in range(parents.size):
        skipped[row] = parents[row] == root


@njit(cache=True, nogil=True)
def _link_others(first, last, alone, twice, skipped, offsets, targets, parents):  # type: ignore[no-untyped-def]
    skipped, offsets = skipped[first:last], offsets[first : last + 1]
    for row in range(offsets.size - 1):
        if not skipped[row] and offsets[row] < offsets[row + 1]:
            root = _root(parents, first + row)
            for edge in range(offsets[row], offsets[row + 1]):
                if not (twice and targets[edge] > first + row) and parents[targets[edge]] != root:
                    root = unite(alone, parents, root, targets[edge])


def flatten(parents: Any) -> None:
    together(_flatten, ranges(parents.size), parents)


@njit(cache=True, nogil=True)
def _flatten(first, last, parents):  # type: ignore[no-untyped-def]
    """Parents of lower nodes are roots already, or will be."""
    some = parents[first:last]
    for lid in range(some.size):
        root = parents[some[lid]]
        while parents[root] != root:
            root = parents[root]
        some[lid] = root


def large_tree(parents: Any, values: Any) -> tuple[np.ndarray, int]:
    root, lowest = most_frequent(LARGE, parents)[0], np.full(1, np.iinfo(np.int64).max)
    inside = np.zeros(-(-parents.size // 64) * 64, np.bool_)
    if root >= 0:
        together(_find_inside, ranges(parents.size), root, parents, values, inside, lowest)
    return inside, int(lowest[0]) if root >= 0 else -1


@njit(cache=True, nogil=True)
def _find_inside(first, last, root, parents, values, inside, lowest):  # type: ignore[no-untyped-def]
    parents, values, inside, least = parents[first:last], values[first:last], inside[first:last], lowest[0]
    for lid in range(parents.size):
        inside[lid] = parents[lid] == root
        least = min(least, np.int64(values[lid]) if parents[lid] == root else least)
    atomic_min(lowest, 0, least)


def lower_roots(parents: Any, values: Any, lowered: Any, updated: Any) -> None:
    some = updated[:0] if lowered is None else lowered
    together(_lower_roots, whole_words(ranges(parents.size)), some, parents, values, updated)


@njit(cache=True, nogil=True)
def _lower_roots(first, last, lowered, parents, values, updated):  # type: ignore[no-untyped-def]
    if lowered.size == 0:
        parents, own = parents[first:last], values[first:last]
        for lid in range(parents.size):
            _lower_root(np.int64(parents[lid]), own[lid], values, updated)
        return
    for word in range(first >> 6, (last + 63) >> 6):
        bits = lowered[word]
        while bits:
            lid = word * 64 + first_bit(bits)
            bits &= bits - np.uint64(1)
            _lower_root(np.int64(parents[lid]), values[lid], values, updated)


@njit(cache=True, nogil=True, inline="always")
def _lower_root(root, value, values, updated):  # type: ignore[no-untyped-def]
    if value < values[root]:
        atomic_min(values, root, value)
        set_bit_atomic(updated, root)


def spread_roots(parents: Any, values: Any, updated: Any) -> None:
    """The values of roots do not change meanwhile."""
    together(_spread_roots, whole_words(ranges(parents.size)), parents, values, updated)


@njit(cache=True, nogil=True)
def _spread_roots(first, last, parents, values, updated):  # type: ignore[no-untyped-def]
    parents, own, updated = parents[first:last], values[first:last], updated[first >> 6 : (last + 63) >> 6]
    for lid in range(parents.size):
        value = values[parents[lid]]
        if value < own[lid]:
            own[lid] = value
            set_bit(updated, lid)


def plan_trees(part: Partition, sync: Sync, way: str) -> Unite:
    """Where local ids ascend with global ones among nodes with edges, the root of a tree is its lowest node."""
    gids = compress(part.has_out, part.gids) if part.symmetric else part.gids
    descents = mapped(lambda this, following: this >= following, gids[:-1], gids[1:], dtype=np.bool_)
    return partial(_unite_alone, part.gids, total(descents) == 0)


def _unite_alone(
    own: np.ndarray, ascending: bool, sync: Sync, parents: Any, left_out: Any
) -> tuple[int, int, Any, dict[str, int]]:
    """Nothing is left to unite."""
    alone, members, pieces = num_threads() == 1, np.zeros(parents.size, np.int32), ranges(parents.size)
    component, names = np.empty(parents.size, np.int64), own
    if not ascending:
        names = np.empty_like(own)
        together(_name_roots, pieces, parents, own, names)
        together(_lower_names, pieces, parents, own, names)
    found, large = np.zeros(2, np.int64), most_frequent(LARGE, parents)[0]
    together(_name_members, pieces, alone, large, component, parents, names, members, found)
    return 0, 0, component, {"components": sync.total(int(found[0]))[0], "largest": sync.highest(-int(found[1]))}


@njit(cache=True, nogil=True)
def _name_members(first, last, alone, large, component, parents, names, members, found):  # type: ignore[no-untyped-def]
    """Roots of some nodes, and their names. Found: how many are roots; minus the most members of a tree yet.

    Neighbours mostly have the same root: it is counted later, and the large tree's once, as all threads share its
    counter. Others may flatten the trees meanwhile.
    """
    own, component = parents[first:last], component[first:last]
    held, begin, name, roots, inside, most = np.int32(-1), 0, np.int64(0), 0, 0, 0
    for lid in range(own.size):
        root = own[lid]
        while parents[root] != root:
            root = parents[root]
        own[lid] = root
        if root != held:
            if held == large:
                inside += lid - begin
            elif held >= 0:
                most = max(most, _add_members(alone, members, held, lid - begin))
            held, begin, name = root, lid, names[root]
        component[lid] = name
        roots += root == first + lid
    if own.size > 0:
        most = max(most, _add_members(alone, members, held, own.size - begin))
    if inside > 0:
        most = max(most, _add_members(alone, members, large, inside))
    atomic_add(found, 0, roots)
    atomic_min(found, 1, -most)


@njit(cache=True, nogil=True)
def _name_roots(first, last, parents, gids, names):  # type: ignore[no-untyped-def]
    """Only roots have names, so memory of others is not touched."""
    _flatten(first, last, parents)
    parents, gids = parents[first:last], gids[first:last]
    for lid in range(parents.size):
        if parents[lid] == first + lid:
            names[first + lid] = gids[lid]  # in no vector: one masked out still costs where memory is not there yet


@njit(cache=True, nogil=True)
def _lower_names(first, last, parents, gids, names):  # type: ignore[no-untyped-def]
    parents, gids = parents[first:last], gids[first:last]
    for lid in range(parents.size):
        root = np.int64(parents[lid])
        if gids[lid] < names[root]:
            atomic_min(names, root, gids[lid])


def name_components(labels: Any, gids: Any) -> tuple[np.ndarray, int]:
    return mapped(np.copy, labels, dtype=np.int64), total(mapped(np.equal, labels, gids, dtype=np.bool_))


def count_members(parents: Any, size: int) -> np.ndarray:
    alone, members, large = num_threads() == 1, np.zeros(parents.size, np.int32), most_frequent(LARGE, parents)[0]
    together(_count_members, ranges(size), alone, large, parents, members)
    return members


@njit(cache=True, nogil=True)
def _count_members(first, last, alone, large, parents, members):  # type: ignore[no-untyped-def]
    """Neighbours mostly have the same root: they are counted in a register, and so are all in the large tree."""
    parents = parents[first:last]
    held, begin, inside = large, 0, 0
    for lid in range(parents.size):
        if parents[lid] != held:
            if held == large:
                inside += lid - begin
            else:
                _add_members(alone, members, held, lid - begin)
            held, begin = parents[lid], lid
    if held != large:
        _add_members(alone, members, held, parents.size - begin)
    else:
        inside += parents.size - begin
    if inside > 0:
        _add_members(alone, members, large, inside)


@njit(cache=True, nogil=True, inline="always")
def _add_members(alone, members, root, more):  # type: ignore[no-untyped-def]
    """How many there are then."""
    if alone:
        members[root] += more
        return np.int64(members[root])
    return np.int64(atomic_add(members, root, np.int32(more))) + more


@njit(cache=True, nogil=True)
def take_members(parents, members, lids):  # type: ignore[no-untyped-def]
    roots, counts, taken = np.empty(lids.size, np.int32), np.empty(lids.size, np.int32), 0
    for lid in lids:
        root = parents[lid]
        if members[root] > 0:
            roots[taken], counts[taken] = root, members[root]
            members[root] = 0
            taken += 1
    return roots[:taken].copy(), counts[:taken].copy()
