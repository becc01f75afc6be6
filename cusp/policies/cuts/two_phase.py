"""Clusters first, then nodes by descending degree, each where most of its neighbours have edges already.

Phase one is that of 2PS (Mayer et al., ICDE 2022): nodes join clusters of bounded volume along their edges, and
clusters are dealt to the parts. In phase two a node chooses a part for its edges to nodes of higher degree::

    score(r) = neighbours of higher degree that have edges on r + (has the node itself edges on r)

The part of its cluster decides between equal ones, then the load. So an edge is stored with the master of its end of
lower degree: of hubs, the edges are where their neighbours are. Bound: a part has room for 1.05 times its share of the
edges; a node that fits nowhere goes where most room is left. Weakness: ten bytes of state for each node of the graph,
on each rank.
"""

import heapq
from collections import namedtuple

import numpy as np

State = namedtuple("State", "cluster volume part replicas room score")
combine = {"cluster": "reader", "part": "local", "replicas": "or", "room": "split", "score": "local"}
order = "degree"


def make_state(prop):  # type: ignore[no-untyped-def]
    """Of a node that this rank touches: its cluster, -1 before its first visit, and the parts that have edges of it,
    as bits. Of a cluster, which has the name of a node: the edges of its nodes, its part. Of a part: for how many more
    edges of this rank it has room; a score.
    """
    words = (prop.num_parts + 63) // 64
    return State(
        np.full(prop.num_places, -1, np.int64),
        np.zeros(prop.num_nodes, np.int64),
        np.zeros(prop.num_nodes, np.int16),
        np.zeros((prop.num_places, words), np.uint64),
        np.zeros(prop.num_parts, np.int64),
        np.zeros(prop.num_parts, np.int64),
    )


def visit(prop, node, state):  # type: ignore[no-untyped-def]
    """Of the two ends of each edge, that of the smaller cluster joins the other's, if its volume allows."""
    most = 0.3 * prop.num_edges / prop.num_parts
    here, mine = prop.place(node), prop.total_degree(node)
    _found(state.cluster, state.volume, node, here, mine)
    for other in prop.all_neighbors(node):
        there, theirs, is_ours = prop.place(other), prop.total_degree(other), prop.out_degree(other) >= 0
        if is_ours:
            _found(state.cluster, state.volume, other, there, theirs)
        a, b = state.cluster[here], state.cluster[there]
        if a == b or b < 0 or state.volume[a] > most or state.volume[b] > most:
            continue
        if state.volume[a] - mine <= state.volume[b] - theirs:
            if state.volume[b] + mine <= most:
                state.volume[a] -= mine
                state.volume[b] += mine
                state.cluster[here] = b
        elif is_ours and state.volume[a] + theirs <= most:
            state.volume[b] -= theirs
            state.volume[a] += theirs
            state.cluster[there] = a


def _found(cluster, volume, node, place, degree):  # type: ignore[no-untyped-def]
    """A node that is seen for the first time is a cluster."""
    if cluster[place] < 0:
        cluster[place] = node
        volume[node] += degree


def finish(prop, state, comm):  # type: ignore[no-untyped-def]
    """The largest clusters first, each to the part that has least for its share."""
    shares = [prop.share(part) for part in range(prop.num_parts)]
    edges = 1.05 * state.volume.sum() / 2 / prop.all_shares / comm.size
    state.room[:] = [edges * share if share else -prop.num_edges for share in shares]
    loads = [(0.0, part) for part, share in enumerate(shares) if share]
    clusters = np.flatnonzero(state.volume)
    for cluster in clusters[np.argsort(-state.volume[clusters], kind="stable")].tolist():
        load, part = loads[0]
        state.part[cluster] = part
        heapq.heapreplace(loads, (load + int(state.volume[cluster]) / shares[part], part))


def get_master(prop, node, state, masters):  # type: ignore[no-untyped-def]
    """The part that has edges of most of those that a node's edges lead to."""
    here, mine = prop.place(node), prop.total_degree(node)
    if mine == 0:
        return prop.reader(node)
    state.score[:] = 0
    own = 0
    for other in prop.all_neighbors(node):
        if _is_lower(node, mine, other, prop.total_degree(other)):
            own += 1
            _count(state.replicas, prop.place(other), state.score)
        elif masters[other] >= 0:
            _mark(state.replicas, here, masters[other])  # by the pass before
    _count(state.replicas, here, state.score)
    state.score[state.part[state.cluster[here]]] += 1
    if masters[node] >= 0:
        state.score[masters[node]] += 1
    best = np.argmax(state.room)
    for part in range(prop.num_parts):
        if state.room[part] >= own:
            more = state.score[part] - state.score[best]
            if more > 0 or (more == 0 and state.room[part] > state.room[best]):
                best = part
    state.room[best] -= own
    _mark(state.replicas, here, best)
    for other in prop.all_neighbors(node):
        if _is_lower(node, mine, other, prop.total_degree(other)):
            _mark(state.replicas, prop.place(other), best)
    return best


def get_edge_owner(prop, src, dst, src_master, dst_master, state):  # type: ignore[no-untyped-def]
    """The master of the end of lower degree."""
    return src_master if _is_lower(src, prop.total_degree(src), dst, prop.total_degree(dst)) else dst_master


def _is_lower(node, degree, other, degree_of_other):  # type: ignore[no-untyped-def]
    """Whether a node comes after another in the order of get_master."""
    return degree < degree_of_other or (degree == degree_of_other and node > other)


def _count(replicas, place, score):  # type: ignore[no-untyped-def]
    """Two points for each part that has edges of a node; one can decide between equals."""
    for word in range(replicas.shape[1]):
        bits = replicas[place, word]
        first = 64 * word
        for bit in range(min(64, score.size - first)):
            score[first + bit] += np.int64((bits >> np.uint64(bit)) & np.uint64(1)) * 2


def _mark(replicas, place, part):  # type: ignore[no-untyped-def]
    """A part has edges of a node."""
    replicas[place, part >> 6] |= np.uint64(1) << np.uint64(part & 63)
