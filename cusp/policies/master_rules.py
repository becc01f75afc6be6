"""Master rules: which rank holds the one true value of a node.

Each rule is ``get_master(prop, node, mstate, masters) -> rank``; see :mod:`cusp.policies`.
"""

import math
from collections import namedtuple

import numpy as np


def contiguous(prop, node, mstate, masters):  # type: ignore[no-untyped-def]
    """Blocks of consecutive nodes with equal numbers of edges (CuSP, IPDPS 2019, rule ContiguousEB).

    ::

        nodes   0 ........ a | a ...... b | b ............. c | c ... N
        master        0      |     1      |        2          |    3

    A node's master is the rank that read it, so masters never travel. Balance is that of the
    reading split: perfect up to the degree of one node. Weakness: of who is whose neighbour it knows only
    what the order of the nodes in the file says.
    """
    return prop.reader(node)


def scramble(node):  # type: ignore[no-untyped-def]
    """A random-looking number of 31 bits for a node (the finaliser of MurmurHash3)."""
    bits = np.uint64(node)
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.int64(bits >> np.uint64(33))


def hashed(prop, node, mstate, masters):  # type: ignore[no-untyped-def]
    """Any rank, by a hash of the node: what other rules are measured against.

    ::

        nodes   0  1  2  3  4  5  6  7
        master  2  0  3  3  1  0  2  1

    Balanced in nodes, and in edges where no hub holds a large share. Weakness: cuts nearly all edges.
    """
    return prop.pick(scramble(node))


def mapped(prop, node, mstate, masters):  # type: ignore[no-untyped-def]
    """What a file says (``--node-map``): for the results of METIS, KaHIP or any other offline partitioner.

    ::

        file    2      0      0      1        one rank per node, in the order of the nodes
        master  2      0      0      1

    As good as the file.
    """
    return prop.mapped(node)


FennelState = namedtuple("FennelState", "nodes edges score per_node")
FENNEL_COMBINE = {"score": "local", "per_node": "local"}


def fennel_state(prop):  # type: ignore[no-untyped-def]
    """Nodes and edges of which each rank is the master so far, scratch space for one score per rank, and what a node
    weighs on each: 1, or where ranks have shares, the mean share / its own, and infinity where that is 0.
    """
    parts = prop.num_parts
    shares = np.array([prop.share(rank) for rank in range(parts)])
    with np.errstate(divide="ignore"):
        per_node = prop.all_shares / parts / shares
    return FennelState(np.zeros(parts, np.int64), np.zeros(parts, np.int64), np.zeros(parts), per_node)


def scaled(load, per_node):  # type: ignore[no-untyped-def]
    """A load as it counts on a rank; without a share, any is too much."""
    return load * per_node if per_node < math.inf else math.inf


def fennel(prop, node, mstate, masters):  # type: ignore[no-untyped-def]
    """Where most neighbours are, minus a price for load (Tsourakakis et al., WSDM 2014; CuSP, rule FennelEB).

    ::

        score(r) = neighbours with master r - alpha * gamma * sqrt(load(r))
        load(r)  = (nodes(r) + edges(r) * N / E) / 2,   gamma = 1.5,   alpha = E * sqrt(P / N**3)

    Nodes above the threshold stay with their reader, but count as load. Where ranks have shares, a load counts for
    more on a rank with a small one. Bound: none. The sum of nodes
    and edges is balanced, not each: on a Kronecker graph one rank can get twice the mean number of edges.
    Weakness: ranks see each other's choices only between rounds.
    """
    degree = prop.out_degree(node)
    best = prop.reader(node)
    if degree <= prop.threshold:
        price = 1.5 * prop.num_edges * math.sqrt(prop.num_parts / prop.num_nodes) / prop.num_nodes
        nodes_an_edge = prop.num_nodes / max(prop.num_edges, 1)
        for rank in range(prop.num_parts):
            mstate.score[rank] = 0.0
        for neighbor in prop.out_neighbors(node):
            master = masters[neighbor]
            if master >= 0:
                mstate.score[master] += 1.0
        best = 0
        for rank in range(prop.num_parts):
            load = (mstate.nodes[rank] + nodes_an_edge * mstate.edges[rank]) / 2
            if prop.has_shares:
                load = scaled(load, mstate.per_node[rank])
            mstate.score[rank] -= price * math.sqrt(load)
            if mstate.score[rank] >= mstate.score[best]:
                best = rank
    mstate.nodes[best] += 1
    mstate.edges[best] += degree
    return best


def ldg(prop, node, mstate, masters):  # type: ignore[no-untyped-def]
    """Where most neighbours are, scaled by the capacity left (linear deterministic greedy; Stanton, Kliot, KDD 2012).

    ::

        score(r) = (1 + neighbours with master r) * (1 - load(r) / capacity),   capacity = 1.1 * mean load

    Load is counted as in ``fennel``, where ranks have shares, too. Bound: no rank above its capacity, as far as
    the loads after the last round show, in the sum of nodes and edges, not in each. Weakness: as for ``fennel``,
    and the order of the stream matters more.
    """
    degree = prop.out_degree(node)
    nodes_an_edge = prop.num_nodes / max(prop.num_edges, 1)
    capacity = 1.1 * prop.num_nodes / prop.num_parts
    for rank in range(prop.num_parts):
        mstate.score[rank] = 1.0
    for neighbor in prop.out_neighbors(node):
        master = masters[neighbor]
        if master >= 0:
            mstate.score[master] += 1.0
    best = 0
    best_score = -math.inf
    for rank in range(prop.num_parts):
        load = (mstate.nodes[rank] + nodes_an_edge * mstate.edges[rank]) / 2
        if prop.has_shares:
            load = scaled(load, mstate.per_node[rank])
        left = 1.0 - load / capacity
        score = mstate.score[rank] * left if left > 0.0 else left
        if score > best_score:
            best, best_score = rank, score
    mstate.nodes[best] += 1
    mstate.edges[best] += degree
    return best
