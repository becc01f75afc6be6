"""Parts that grow along edges, one after the other; edges between two hubs by a hash of the lower one.

Hybrid edge partitioning (HEP; Mayer, Jacobsen, SIGMOD 2021). Nodes with more edges than ``--threshold`` are hubs. The
edges between two nodes that are none are collected on rank 0, where parts expand, see :mod:`expand`: the region of a
part is its nodes, a hub is in all. An edge is stored on the first part whose region has both of its ends; an edge
between two hubs, which have edges everywhere anyway, as DBH would store it. Bound: of the edges that have an end that
is no hub, each part gets its share, give or take those of one node. Weakness: rank 0 needs up to 16 bytes for each edge
that it collects, and 72 for each node, see :func:`memory`; a low threshold lowers the first, and the quality. The
paper's threshold is a multiple tau of the mean degree, or follows from a bound on memory: so does the default, with a
tau of at most 100.
"""

from collections import namedtuple

import numpy as np

from cusp.errors import together
from cusp.kernels.bits import first_bit
from cusp.policies.cuts.expand import by_degree, collect, expand
from cusp.policies.master_rules import scramble
from cusp.runtime.compiled_code import njit
from cusp.runtime.exchange import all_to_all, pieces

State = namedtuple("State", "regions")
combine = {"regions": "reader"}


def make_state(prop):  # type: ignore[no-untyped-def]
    """The parts in whose region a node is, as bits."""
    return State(np.zeros((prop.num_places, (prop.num_parts + 63) // 64), np.uint64))


def memory(prop, thresholds, comm):  # type: ignore[no-untyped-def]
    """Bytes of the arrays of :func:`finish` on rank 0, at most, and edges that are collected there.

    Two arrays have a number for each end of an edge; besides, there are seven numbers for each node, its region twice,
    and three for each edge of the node that has most, but for hubs.
    """
    largest = max(comm.allgather(int(prop.degrees.max(initial=0))))
    counts = np.zeros(min(int(thresholds[-1]), largest) + 1, np.int64)
    _count_higher_ends(prop, counts)
    edges = np.cumsum(comm.allreduce(counts))[np.minimum(thresholds, counts.size - 1)]
    of_node = 56 + 16 * ((prop.num_parts + 63) // 64)
    of_longest = 24 * np.minimum(thresholds, largest)
    return 4 * _type_of_ids(prop).itemsize * edges + of_node * prop.num_nodes + of_longest, edges


@njit(cache=True, nogil=True)
def _count_higher_ends(prop, counts):  # type: ignore[no-untyped-def]
    """Count the edges of this slice by the degree of that end which has the higher one, once of their two rows."""
    for row in range(prop.indptr.size - 1):
        node = prop.first_node + row
        for other in prop.all_neighbors(node):
            if node < other:
                higher = max(prop.degrees[row], prop.total_degree(other))
                if higher < counts.size:
                    counts[higher] += 1


def finish(prop, state, comm):  # type: ignore[no-untyped-def]
    """Collect, expand, and tell each rank the regions of the nodes that it reads."""
    rows = prop.indptr.size - 1
    is_hub = prop.degrees > prop.threshold
    counts = np.zeros((rows, 2), np.int64)
    ends = collect(prop, is_hub, counts[:, 0], counts[:, 1], _type_of_ids(prop))
    firsts = np.array(comm.allgather(int(prop.first_node)))
    all_counts, all_ends = (all_to_all(comm, [own, *[own[:0]] * (comm.size - 1)]) for own in (counts.reshape(-1), ends))
    del ends
    regions = np.empty((0, state.regions.shape[1]), np.uint64)
    with together(comm):
        if comm.rank == 0:
            graph = by_degree(*np.concatenate(all_counts).reshape(-1, 2).T, all_ends)
            del all_ends
            shares = np.array([prop.share(part) for part in range(prop.num_parts)], np.float64)
            regions = expand(*graph, shares, state.regions.shape[1])
    bounds = np.append(firsts, prop.num_nodes) if comm.rank == 0 else np.zeros(comm.size + 1, np.int64)
    mine = all_to_all(comm, [piece.reshape(-1) for piece in pieces(regions, bounds[1:])])[0]
    state.regions[:rows] = mine.reshape(rows, state.regions.shape[1])


def get_master(prop, node, state, masters):  # type: ignore[no-untyped-def]
    """The first part in whose region a node is; of hubs, and nodes without edges, the reader."""
    part = -1
    if prop.total_degree(node) <= prop.threshold:
        part = _first_common(state.regions, prop.place(node), prop.place(node))
    return prop.reader(node) if part < 0 else part


def get_edge_owner(prop, src, dst, src_master, dst_master, state):  # type: ignore[no-untyped-def]
    """The first part in whose region both ends are: a hub is in none of ``state``, and counts as in all."""
    part = _first_common(state.regions, prop.place(src), prop.place(dst))
    if part >= 0:
        return part
    mine, theirs = prop.total_degree(src), prop.total_degree(dst)
    if mine > prop.threshold and theirs > prop.threshold:
        return prop.pick(scramble(src if mine < theirs or (mine == theirs and src < dst) else dst))
    return dst_master if mine > prop.threshold else src_master


def _type_of_ids(prop):  # type: ignore[no-untyped-def]
    """A type that has room for all nodes."""
    return np.dtype(np.int32 if prop.num_nodes < 1 << 31 else np.int64)


def _first_common(regions, place, other):  # type: ignore[no-untyped-def]
    """The first part that has both nodes, by their places, in its region; -1 if there is none."""
    for word in range(regions.shape[1]):
        bits = regions[place, word] & regions[other, word]
        if bits:
            return 64 * word + first_bit(bits)
    return -1
