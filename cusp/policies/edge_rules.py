"""Edge rules: which rank stores an edge.

Each rule is ``get_edge_owner(prop, src, dst, src_master, dst_master, estate) -> rank``; see
:mod:`cusp.policies`.
"""

from collections import namedtuple

import numpy as np

from cusp.policies.master_rules import scramble


def source(prop, src, dst, src_master, dst_master, estate):  # type: ignore[no-untyped-def]
    """All out-edges of a node at its master: outgoing edge-cut (CuSP, IPDPS 2019, rule Source).

    ::

                    dst: r0 r1 r2 r3
        src  r0           0  0  0  0        Mirrors have no out-edges, so nothing is ever
             r1           1  1  1  1        broadcast to be read at a source.
             r2           2  2  2  2
             r3           3  3  3  3

    A node has at most one proxy per rank. Weakness: every rank may talk to every other one, and the
    in-edges of a hub are everywhere.
    """
    return src_master


def destination(prop, src, dst, src_master, dst_master, estate):  # type: ignore[no-untyped-def]
    """All in-edges of a node at its master: incoming edge-cut (CuSP, IPDPS 2019, on the transpose).

    ::

                    dst: r0 r1 r2 r3
        src  r0           0  1  2  3        Mirrors have no in-edges, so nothing that was
             r1           0  1  2  3        written at a destination is ever reduced.
             r2           0  1  2  3
             r3           0  1  2  3

    A node has at most one proxy per rank. Weakness: as for ``source``, with the roles exchanged; and
    edges travel while the graph is partitioned, since they are read by source.
    """
    return dst_master


def cartesian(prop, src, dst, src_master, dst_master, estate):  # type: ignore[no-untyped-def]
    """Cut the adjacency matrix in two dimensions (CuSP, IPDPS 2019, rule Cartesian).

    Four ranks in a 2 x 2 grid; rows by the source's master, columns by the destination's::

                    dst: r0 r1 r2 r3
        src  r0           0  1  0  1        A node has out-edges in one grid row and
             r1           0  1  0  1        in-edges in one grid column, so it has at
             r2           2  3  2  3        most rows + columns - 1 proxies.
             r3           2  3  2  3

    Weakness: with a prime number of ranks the default grid has one column and the cut is that of
    ``source``; ``--grid`` chooses another.
    """
    return src_master // prop.columns * prop.columns + dst_master % prop.columns


def hybrid(prop, src, dst, src_master, dst_master, estate):  # type: ignore[no-untyped-def]
    """Spread the out-edges of hubs, keep all others whole (PowerLyra, EuroSys 2015; CuSP, rule Hybrid).

    ::

        src with many out-edges (degree > threshold)   ->  master of dst
        src with few                                   ->  master of src

    The edges of a hub are where their other end is, so a hub costs one mirror per rank and its
    neighbours cost none. Weakness: the threshold has to suit the graph.
    """
    if prop.out_degree(src) > prop.threshold:
        return dst_master
    return src_master


def degree_hashed(prop, src, dst, src_master, dst_master, estate):  # type: ignore[no-untyped-def]
    """By a hash of the end with fewer out-edges: hubs are cut, other nodes are not (DBH; Xie et al., NIPS 2014).

    ::

        src (degree 3)  -> dst (degree 900)   ->  hash(src)
        src (degree 50) -> dst (degree 2)     ->  hash(dst)

    Bound: on power laws, the expected replication is below that of a random vertex-cut. Weakness: takes no
    account of who is whose neighbour.
    """
    if prop.neighbor_degree(src) < prop.neighbor_degree(dst):
        return prop.pick(scramble(src))
    return prop.pick(scramble(dst))


HdrfState = namedtuple("HdrfState", "edges degree replicas")
HDRF_COMBINE = {"degree": "local", "replicas": "local"}


def hdrf_state(prop):  # type: ignore[no-untyped-def]
    """Edges of each rank; for each node met here, its edges so far and the ranks that hold any of them."""
    words = (prop.num_parts + 63) // 64
    return HdrfState(
        np.zeros(prop.num_parts, np.int64),
        np.zeros(prop.num_places, np.int64),
        np.zeros(prop.num_places * words, np.uint64),
    )


def hdrf(prop, src, dst, src_master, dst_master, estate):  # type: ignore[no-untyped-def]
    """Where an end already is; the end with fewer edges counts more (HDRF; Petroni et al., CIKM 2015).

    ::

        score(r) = g(src, r) + g(dst, r) + (max - edges(r)) / (1 + max - min)
        g(v, r)  = 2 - degree(v) / (degree(src) + degree(dst)) if v has an edge on r, else 0

    Degrees are those seen so far by this rank. A rank gets no edge while it is above the mean so far by more
    than a tenth of that mean plus a tenth of its final share, all in proportion to the shares of ranks: without
    this limit, a stream in which neighbours follow each other, as in a mesh, goes to one rank. Bound: edge balance
    of 1.2, plus what ranks assign between two rounds without hearing of each other. Weakness: ranks know only
    their own replicas, so the more ranks, the less they find; it costs num_parts steps per edge.
    """
    words = (prop.num_parts + 63) // 64
    a, b = prop.place(src), prop.place(dst)
    estate.degree[a] += 1
    estate.degree[b] += 1
    share = estate.degree[a] / (estate.degree[a] + estate.degree[b])
    most = estate.edges[0]
    least = estate.edges[0]
    total = estate.edges[0]
    for rank in range(1, prop.num_parts):
        most = max(most, estate.edges[rank])
        least = min(least, estate.edges[rank])
        total += estate.edges[rank]
    best = 0
    best_score = -1.0
    for rank in range(prop.num_parts):
        part = prop.share(rank)
        if part == 0 or 10 * estate.edges[rank] * prop.all_shares > part * (11 * total + prop.num_edges):
            continue
        bit = np.uint64(1) << np.uint64(rank & 63)
        score = (most - estate.edges[rank]) / (1.0 + most - least)
        if estate.replicas[a * words + (rank >> 6)] & bit:
            score += 2.0 - share
        if estate.replicas[b * words + (rank >> 6)] & bit:
            score += 1.0 + share
        if score > best_score:
            best, best_score = rank, score
    bit = np.uint64(1) << np.uint64(best & 63)
    estate.replicas[a * words + (best >> 6)] |= bit
    estate.replicas[b * words + (best >> 6)] |= bit
    estate.edges[best] += 1
    return best
