"""Trussness of edges: the largest k for which each is in a k-truss; or the edges in the truss of one k.

``mpirun -n 4 python -m apps.truss graph.h5 --policy cvc --verify --output truss.csv``

>>> from cusp import partition_graph, truss
>>> found = truss(partition_graph(([0, 1, 2, 2], [1, 2, 0, 3]))).edges
>>> found["source"], found["target"], found["truss"]
(array([0, 0, 1, 2]), array([1, 2, 2, 3]), array([3, 3, 3, 2], dtype=int32))
"""

from dataclasses import replace
from typing import Any

import numpy as np

from cusp import ADD, Answer, App, Label, Partition, Sync, main, run_main
from cusp.apps.operators.triangles.interfaces import EdgeRows, Truss
from cusp.apps.shared.common import count_rows, tables_of
from cusp.apps.shared.graphs.edge_nodes import EdgeNodes, edge_nodes
from cusp.apps.shared.graphs.undirected import as_undirected
from cusp.apps.verify.truss import verify_truss
from cusp.kernels.arrays import compress, numbers, offsets_of, take
from cusp.program.cli import positive
from cusp.runtime.devices import backend, move, to_host, xp_of
from cusp.runtime.mpi import MPI
from gluon.reduction import ASSIGN

LEFT = int(np.iinfo(np.int32).max)  # in place of the round in which an edge is removed


def truss(sync: Sync, nodes: EdgeNodes, k: int | None = None) -> Answer:
    """Trussness: the largest k so that an edge is in a k-truss, whose edges have k - 2 triangles in it. Collective.

    Edges are removed by ascending support, the number of triangles that are left to them (Wang and Cheng, VLDB 2012),
    all of the lowest support at once (Kabir and Madduri, HPEC 2017). Edges are the nodes of a partition here: one rank
    finds the triangles that an edge takes with it, and ranks then add up what others have lost.

    Parameters
    ----------
    nodes : EdgeNodes
        The edges of the graph, see :func:`prepare`.
    k : int, optional
        Only remove the edges that are not in the k-truss.

    Returns
    -------
    Answer
        Of edges, without directions, loops and parallel ones, ``source`` and ``target`` (int64), the lower node first:
        ``truss`` (int32, from 2), and the highest as the figure ``highest``. With ``k``, only the edges in that truss,
        and their number as the figure ``members``.
    """
    sync, xp = sync.on(nodes.plan), xp_of(nodes.part.device)
    first, last = (0, LEFT - 1) if k is None else (min(k, LEFT) - 3,) * 2
    support, removed = Label(nodes.part, np.int32, 0, ADD), Label(nodes.part, np.int32, LEFT, ASSIGN)
    supports, own, graph = support.masters(), removed.masters(), nodes
    supports[:] = count_triangles(nodes, sync.comm)
    left, stay, levels = xp.arange(own.size, dtype=np.int32), nodes.part.num_nodes, list[int]()
    ready, kept = left[:0], stay
    while True:
        (going,) = sync.total(ready.size)
        if going == 0:
            left = compress(take(own, left) == LEFT, left)
            those = take(supports, left)
            level = max(first, int(sync.lowest(int(those.min()) if left.size else LEFT)))
            if level > last:
                break
            ready = compress(those <= level, left)
            continue
        own[ready] = len(levels)
        removed.mark(ready)
        sync.broadcast(removed, read="any")
        removed.swap_updated()
        remove_triangles(graph, sync.comm, len(levels), ready, removed, support)
        sync.reduce(support, write="any")
        levels.append(level + 2)
        stay -= going
        if 2 * stay < kept:
            graph, kept = without(graph, removed.values != LEFT), stay
        fewer = support.take_updated()
        fewer = fewer[fewer < own.size]
        ready = compress((take(own, fewer) == LEFT) & (take(supports, fewer) <= level), fewer)
        sync.end_round()
    return _answer(nodes, sync, own, levels, k)


def _answer(nodes: EdgeNodes, sync: Sync, removed: Any, levels: list[int], k: int | None) -> Answer:
    """From the round in which each edge was removed, and the truss that was left with it."""
    gids, xp = nodes.graph.gids, xp_of(nodes.part.device)
    some = slice(None) if k is None else removed == LEFT
    ends = [take(gids, each[some]) for each in (nodes.highs, nodes.lows)]
    edges = {"source": xp.minimum(*ends), "target": xp.maximum(*ends)}
    if k is not None:
        return Answer({}, None, len(levels), {"members": sync.total(ends[0].size)[0]}, edges)
    edges["truss"] = take(move(np.array([*levels, 0], np.int32), nodes.part.device), removed)
    return Answer({}, None, len(levels), {"highest": max(levels, default=0)}, edges)


def prepare(part: Partition, sync: Sync) -> EdgeNodes:
    """The edges of the graph without directions, loops and parallel edges. Collective."""
    return edge_nodes(as_undirected(part, sync.comm, weights=False), sync)


def count_triangles(nodes: EdgeNodes, comm: MPI.Intracomm) -> Any:
    """(masters of ``nodes.part``,) int64: in how many triangles each edge is. Collective."""
    return count_rows(nodes.graph, comm, nodes.highs, to_host(take(nodes.names, nodes.lows)))


def remove_triangles(
    nodes: EdgeNodes, comm: MPI.Intracomm, turn: int, edges: Any, removed: Label, support: Label
) -> None:
    """Take the triangles of edges that are removed from the support of those that stay, or their mirrors. Collective.

    A triangle whose edges are removed in the same round counts once (Kabir and Madduri, HPEC 2017).

    Parameters
    ----------
    turn : int
        The number of the round.
    edges : (n,) int32, ascending
        Masters of ``nodes.part`` that are removed in it.
    removed : Label, int32
        The round in which each edge is removed, at all its proxies; a higher number than ``turn`` until then.
    support : Label, int32, reduced by ADD
    """
    graph, device, ops = nodes.graph, nodes.graph.device, backend(Truss, nodes.graph.device)
    highs, lows = take(nodes.highs, edges), take(nodes.lows, edges)
    own = EdgeRows(graph.offsets, graph.targets, nodes.edges, removed.values, support.values, support.updated)

    def lose(entries: Any, lost: Any) -> None:
        some = lost.nonzero()[0]
        fewer = take(nodes.edges, take(entries, some))
        xp_of(device).add.at(support.values, fewer, take(lost, some))
        support.mark(fewer)

    names = to_host(take(nodes.names, lows))
    for table in tables_of(graph, comm, names, lambda entries: take(removed.values, take(nodes.edges, entries)), lose):
        pairs, rows = (move(each, device) for each in (table.pairs, table.rows))
        given = own
        if table.counts is not None:
            every = numbers(0, table.counts.size, np.int32, device)
            bits = support.device.no_bits(every.size)
            given = EdgeRows(table.offsets, table.targets, every, table.values, table.counts, bits)
        ops.remove_triangles(turn, nodes.places, take(highs, pairs), take(lows, pairs), rows, own, given)


def without(nodes: EdgeNodes, gone: Any) -> EdgeNodes:
    """The same edges, of which those that are gone, (proxies of ``nodes.part``,) bool, are in no rows."""
    kept = take(~gone, nodes.edges)
    offsets = take(offsets_of(kept), nodes.graph.offsets)
    graph = replace(nodes.graph, offsets=offsets, targets=compress(kept, nodes.graph.targets))
    return replace(nodes, graph=graph, edges=compress(kept, nodes.edges))


APP = App(
    name="truss",
    summary="trussness of every edge, or one k-truss, ignoring edge direction",
    prepare=lambda part, sync, options: prepare(part, sync),
    run=lambda part, sync, source, nodes, options: truss(sync, nodes, options.k),
    verify=lambda part, sync, source, answer, nodes, options: verify_truss(nodes.graph, sync, answer, options.k),
    add_options=lambda parser: parser.add_argument(
        "--k", type=positive, help="only find the edges of the truss of this k (default: trussness of all)"
    ),
    needs_source=False,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
