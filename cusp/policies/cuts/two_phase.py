"""Clusters first, then nodes by descending degree, each where most of its neighbours have edges already.

Phase one is that of 2PS (Mayer et al., ICDE 2022): nodes join clusters of bounded volume along their edges, and
clusters are dealt to the parts. In phase two a node chooses a part for its edges to nodes of higher degree::

    score(r) = neighbours of higher degree that have edges on r + (has the node itself edges on r)
               - 1.3 x such neighbours x (share of its room that r has used)

The part of its cluster decides between equal ones, then the load. Where edges are left whose other end has no edges
there, they go to a second part, a third ... that saves more than the replica which it costs. An edge is stored, of up
to four parts that have both of its ends, at places drawn by a hash, on that with most room. Bound: in phase two a part
has room for 1.05 times its share of the edges, and never leads the mean by more than ``--slack`` percent of it: since
nodes come by degree, parts that get edges alike at all times get nodes alike. A node that fits nowhere goes where most
room is left. Weakness: on each rank, ten bytes of state for each node of the graph, and 16 or more for each that its
slice touches.
"""

import heapq
from collections import namedtuple

import numpy as np

from cusp.kernels.bits import GOLDEN, first_bit, popcount
from cusp.runtime.compiled_code import njit
from cusp.runtime.threads import in_parallel, row_ranges

State = namedtuple("State", "cluster volume part replicas room limit hits ends")
combine = {
    "cluster": "reader", "part": "local", "replicas": "or", "room": "split", "limit": "local", "hits": "local",
    "ends": "local",
}  # fmt: skip
order = "degree"


def make_state(prop):  # type: ignore[no-untyped-def]
    """Of a node that this rank touches: its cluster, -1 before its first visit, and the parts that have edges of it,
    as bits. Of a cluster, which has the name of a node: the edges of its nodes, its part. Of a part: for how many more
    edges of this rank it has room, and for how many it had; how many ends of some edges are there. Such ends.
    """
    words = (prop.num_parts + 63) // 64
    return State(
        np.full(prop.num_places, -1, np.int64),
        np.zeros(prop.num_nodes, np.int64),
        np.zeros(prop.num_nodes, np.int16),
        np.zeros((prop.num_places, words), np.uint64),
        *np.zeros((3, prop.num_parts), np.int64),
        np.zeros(prop.degrees.max(initial=0), np.int64),
    )


def visit(prop, node, state):  # type: ignore[no-untyped-def]
    """Of the two ends of each edge, that of the smaller cluster joins the other's, if its volume allows."""
    most = 0.3 * prop.num_edges / prop.num_parts
    here = prop.place(node)
    mine, rows = prop.degrees[here], prop.indptr.size - 1
    cluster, volume = state.cluster, state.volume
    _found(cluster, volume, node, here, mine)
    for other in prop.all_neighbors(node):
        there = prop.place(other)
        theirs, is_ours = prop.degrees[there], there < rows
        if is_ours:
            _found(cluster, volume, other, there, theirs)
        a, b = cluster[here], cluster[there]
        if a == b or b < 0 or volume[a] > most or volume[b] > most:
            continue
        if volume[a] - mine <= volume[b] - theirs:
            if volume[b] + mine <= most:
                volume[a] -= mine
                volume[b] += mine
                cluster[here] = b
        elif is_ours and volume[a] + theirs <= most:
            volume[b] -= theirs
            volume[a] += theirs
            cluster[there] = a


def _found(cluster, volume, node, place, degree):  # type: ignore[no-untyped-def]
    """A node that is seen for the first time is a cluster."""
    if cluster[place] < 0:
        cluster[place] = node
        volume[node] += degree


def finish(prop, state, comm):  # type: ignore[no-untyped-def]
    """The largest clusters first, each to the part that has least for its share."""
    _make_room(prop, state, 1.05 * state.volume.sum() / 2 / comm.size)
    state.limit[:] = np.maximum(state.room, 1)
    clusters = np.flatnonzero(state.volume)
    clusters = clusters[np.argsort(-state.volume[clusters], kind="stable")]
    _deal(clusters, state.volume, np.array([prop.share(part) for part in range(prop.num_parts)]), state.part)


@njit(cache=True, nogil=True)
def _deal(clusters, volume, shares, part_of):  # type: ignore[no-untyped-def]
    """Each cluster in turn to the part that has least for its share."""
    loads = [(0.0, part) for part in range(shares.size) if shares[part]]
    for cluster in clusters:
        load, part = loads[0]
        part_of[cluster] = part
        heapq.heapreplace(loads, (load + volume[cluster] / shares[part], part))


def _make_room(prop, state, edges):  # type: ignore[no-untyped-def]
    """Each part has room for its share of some edges; one without a share has less than none."""
    shares = np.array([prop.share(part) for part in range(prop.num_parts)])
    state.room[:] = np.where(shares, edges * shares / prop.all_shares, -prop.num_edges)


def get_master(prop, node, state, masters):  # type: ignore[no-untyped-def]
    """The part that has edges of most of those that a node's edges lead to."""
    here = prop.place(node)
    if prop.degrees[here] == 0:
        return prop.reader(node)
    own = _collect(prop, node, here, state)
    first = _first_part(prop, state, here, own, masters[node])
    left = _keep_lacking(state, first, own)
    while left:
        part = _part_that_pays(prop, state, here, left, first)
        if part < 0:
            break
        moved = left - _keep_lacking(state, part, left)
        state.room[part] -= moved
        own, left = own - moved, left - moved
        _mark(state.replicas, here, part)
    for i in range(left):
        _mark(state.replicas, state.ends[i], first)
    state.room[first] -= own
    _mark(state.replicas, here, first)
    return first


def _collect(prop, node, here, state):  # type: ignore[no-untyped-def]
    """List the neighbours of higher degree; return their number."""
    own, mine = 0, prop.degrees[here]
    for other in prop.all_neighbors(node):
        there = prop.place(other)
        theirs = prop.degrees[there]
        if mine < theirs or (mine == theirs and node > other):
            state.ends[own] = there
            own += 1
    return own


def _first_part(prop, state, here, own, before):  # type: ignore[no-untyped-def]
    """The part with the highest score, twice: so one point can decide between equals."""
    _count(state, own)
    best, most, least = np.argmax(state.room), -np.inf, _least_unused(prop, state)
    for part in range(prop.num_parts):
        if state.room[part] >= own and _unused(state, part) >= least:
            score = 2.0 * (state.hits[part] + _has(state.replicas, here, part)) + 2.6 * own * _unused(state, part)
            score += (part == state.part[state.cluster[here]]) + (part == before)
            if score > most or (score == most and state.room[part] > state.room[best]):
                best, most = part, score
    return best


def _part_that_pays(prop, state, here, own, first):  # type: ignore[no-untyped-def]
    """Another part that has more of the other ends than a replica of the node costs, if it has none there; or -1."""
    _count(state, own)
    best, most, least = -1, 0.0, _least_unused(prop, state)
    for part in range(prop.num_parts):
        if state.room[part] > state.hits[part] > 0 and _unused(state, part) >= least:
            saved = state.hits[part] * (1 + 1.3 * (_unused(state, part) - _unused(state, first)))
            saved -= 0 if _has(state.replicas, here, part) else 2
            if saved > most:
                best, most = part, saved
    return best


def _unused(state, part):  # type: ignore[no-untyped-def]
    """The share of its room that a part has left."""
    return state.room[part] / state.limit[part]


def _least_unused(prop, state):  # type: ignore[no-untyped-def]
    """The share of its room that a part must have left, not to be too far ahead."""
    left, all_room = 0, 0
    for part in range(prop.num_parts):
        left += max(state.room[part], 0)
        all_room += state.limit[part]
    return left / all_room - prop.slack / 100


def _count(state, own):  # type: ignore[no-untyped-def]
    """How many of the listed ends have edges on each part."""
    state.hits[:] = 0
    for i in range(own):
        for word in range(state.replicas.shape[1]):
            bits = state.replicas[state.ends[i], word]
            hits = state.hits[64 * word : 64 * word + 64]
            for bit in range(hits.size):
                hits[bit] += np.int64((bits >> np.uint64(bit)) & np.uint64(1))


def _keep_lacking(state, part, own):  # type: ignore[no-untyped-def]
    """Keep those of the listed ends that have no edges on a part; return their number."""
    left = 0
    for i in range(own):
        if not _has(state.replicas, state.ends[i], part):
            state.ends[left] = state.ends[i]
            left += 1
    return left


def _has(replicas, place, part):  # type: ignore[no-untyped-def]
    """Whether a part has edges of a node."""
    return (replicas[place, part >> 6] >> np.uint64(part & 63)) & np.uint64(1) != 0


def _mark(replicas, place, part):  # type: ignore[no-untyped-def]
    """A part has edges of a node."""
    replicas[place, part >> 6] |= np.uint64(1) << np.uint64(part & 63)


def settle(prop, state, comm):  # type: ignore[no-untyped-def]
    """Each part has room for its share, less the edges that can be nowhere else."""
    forced = sum(in_parallel(lambda *rows: _count_forced(prop, state.replicas, *rows), row_ranges(prop.indptr)))
    _make_room(prop, state, prop.num_edges / comm.size)
    state.room[:] -= comm.allreduce(forced) // comm.size


@njit(cache=True, nogil=True)
def _count_forced(prop, replicas, begin, end):  # type: ignore[no-untyped-def]
    """(num_parts,): the edges of some rows of this slice of which no other part has both ends."""
    forced = np.zeros(prop.num_parts, np.int64)
    for row in range(begin, end):
        for e in range(prop.indptr[row], prop.indptr[row + 1]):
            there, found, part = prop.place(np.int64(prop.targets[e])), 0, 0
            for word in range(replicas.shape[1]):
                bits = replicas[row, word] & replicas[there, word]
                if bits:
                    found += np.int64(popcount(bits))
                    part = 64 * word + first_bit(bits)
            if found == 1:
                forced[part] += 1
    return forced


def get_edge_owner(prop, src, dst, src_master, dst_master, state):  # type: ignore[no-untyped-def]
    """Of up to four of the parts that have both ends, at places drawn by a hash, that with most room."""
    here, there, words = prop.place(src), prop.place(dst), state.replicas.shape[1]
    drawn = np.uint64(src ^ (dst << 20)) * GOLDEN >> np.uint64(32)
    start = np.int64(drawn * np.uint64(prop.num_parts) >> np.uint64(32))
    found, some, at = np.int64(0), np.uint64(0), np.int64(0)
    others, at_others = some, at
    for i in range(words):
        word = (start >> 6) + i
        word -= words if word >= words else 0
        bits = state.replicas[here, word] & state.replicas[there, word]
        if some == 0:
            some, at = bits, word
        if bits:
            others, at_others = bits, word
        found += np.int64(popcount(bits))
    if found == 0:
        return src_master
    one = _with_more_room(state.room, some, at, start)
    other = _with_more_room(state.room, others, at_others, start + prop.num_parts // 2)
    best = one if state.room[one] >= state.room[other] else other
    state.room[best] -= found > 1
    return best


def _with_more_room(room, bits, word, start):  # type: ignore[no-untyped-def]
    """Of the next two parts from a place on in a word of parts; without branches, which nobody could foretell."""
    upper = ~np.uint64(0) << np.uint64(start & 63)
    first = bits & upper if bits & upper else bits
    rest = bits & ~(first & (~first + np.uint64(1)))
    rest = rest if rest else bits
    second = rest & upper if rest & upper else rest
    one, other = 64 * word + first_bit(first), 64 * word + first_bit(second)
    return one if room[one] >= room[other] else other
