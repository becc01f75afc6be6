"""Triangles of edges, whichever ranks have them: how many each edge has, and those that go when edges are removed."""

from dataclasses import replace
from typing import Any

import numpy as np

from cusp.apps.operators.triangles.interfaces import EdgeRows, Truss
from cusp.apps.shared.common import count_rows, tables_of
from cusp.apps.shared.graphs.edge_nodes import EdgeNodes
from cusp.kernels.arrays import compress, numbers, offsets_of, take
from cusp.runtime.devices import backend, move, to_host, xp_of
from cusp.runtime.mpi import MPI
from gluon.label import Label


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

    def removed_of(entries: Any) -> Any:
        return take(removed.values, take(nodes.edges, entries))

    def lose(entries: Any, lost: Any) -> None:
        some = lost.nonzero()[0]
        fewer = take(nodes.edges, take(entries, some))
        xp_of(device).add.at(support.values, fewer, take(lost, some))
        support.mark(fewer)

    for table in tables_of(graph, comm, to_host(take(nodes.names, lows)), removed_of, lose):
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
