"""Edge rules: which rank stores an edge.

Each rule is ``get_edge_owner(prop, src, dst, src_master, dst_master, estate) -> rank``; see
:mod:`cusp.policies`.
"""


def source(prop, src, dst, src_master, dst_master, estate):  # type: ignore[no-untyped-def]
    """All out-edges of a node at its master: outgoing edge-cut (CuSP, IPDPS 2019, rule Source).

    ::

                    dst: r0 r1 r2 r3
        src  r0           0  0  0  0        Mirrors have no out-edges, so nothing is ever
             r1           1  1  1  1        broadcast to be read at a source.
             r2           2  2  2  2
             r3           3  3  3  3

    A node has up to one proxy a rank. Weakness: every rank may talk to every other one, and the
    in-edges of a hub lie everywhere.
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

    A node has up to one proxy a rank. Weakness: as for ``source``, with the roles exchanged; and
    edges travel at partition time, since they are read by source.
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
    ``source``; another grid can be asked for.
    """
    return src_master // prop.columns * prop.columns + dst_master % prop.columns


def hybrid(prop, src, dst, src_master, dst_master, estate):  # type: ignore[no-untyped-def]
    """Spread the out-edges of hubs, keep all others whole (PowerLyra, EuroSys 2015; CuSP, rule Hybrid).

    ::

        src with many out-edges (degree > threshold)   ->  master of dst
        src with few                                   ->  master of src

    The edges of a hub lie where their other end is, so a hub costs a mirror a rank and its
    neighbours cost none. Weakness: the threshold has to fit the graph.
    """
    if prop.out_degree(src) > prop.threshold:
        return dst_master
    return src_master
