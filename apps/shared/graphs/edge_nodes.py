"""Undirected edges as the nodes of a partition of their own: so they have labels, which are synced like those of nodes.

The master of an edge is on the rank that has its end of higher degree; the rank of its other end has a mirror of it,
or the same proxy, if it is the same rank.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cusp import Partition, Sync
from cusp.apps.operators.interfaces import Undirected
from cusp.apps.shared.graphs.oriented import place_by_degree
from cusp.apps.shared.graphs.undirected import nodes_of, nodes_of_rank
from cusp.errors import InputError, together
from cusp.kernels.arrays import by_rank, compress, mapped, put, take
from cusp.kernels.interfaces import Build
from cusp.lid_map import map_lids
from cusp.partition import transpose
from cusp.runtime.devices import backend, move, to_host, xp_of
from cusp.runtime.mpi import MPI
from cusp.runtime.storage import memory_of
from gluon.plan import SyncPlan, make_plan

MOST = 2**31 - 1  # edges of a rank: local ids are int32


@dataclass(frozen=True)
class EdgeNodes:
    """The edges of an undirected graph.

    Attributes
    ----------
    graph : Partition
        Of :func:`~cusp.apps.shared.graphs.undirected.as_undirected`.
    part : Partition
        Its nodes are the edges of ``graph``; it has no edges.
    plan : SyncPlan
        Of ``part``.
    names : (proxies of graph,) int64
        Of nodes, as in :func:`.nodes_of`.
    places : (proxies of graph,) uint32 or uint64
        The higher the degree of a node, the lower its place; see :func:`.place_by_degree`.
    highs, lows : (masters of part,) int32
        The ends of each edge of this rank, as local ids; ``highs`` ascend, and have the lower places.
    edges : (entries of graph,) int32
        Which edge each entry of a row is: its local id in ``part``.
    """

    graph: Partition
    part: Partition
    plan: SyncPlan
    names: Any
    places: Any
    highs: Any
    lows: Any
    edges: Any


def edge_nodes(graph: Partition, sync: Sync) -> EdgeNodes:
    """Number the edges of an undirected graph. Collective.

    Raises
    ------
    InputError
        On every rank: one has too many edges.
    """
    comm, xp, names = sync.comm, xp_of(graph.device), nodes_of(graph)
    places, rows = place_by_degree(graph, sync), backend(Undirected, graph.device).rows_of_edges(graph.offsets)
    own = mapped(np.less, take(places, rows), take(places, graph.targets), dtype=np.bool_)
    highs, lows = compress(own, rows).astype(np.int32), compress(own, graph.targets)
    firsts = np.cumsum([0, *comm.allgather(highs.size)])
    numbers = xp.where(own, firsts[comm.rank] + xp.cumsum(own) - 1, -1)
    numbers = mapped(np.maximum, numbers, _told_by_other_ends(graph, numbers, names, comm))
    mirrors = xp.sort(numbers[(numbers < firsts[comm.rank]) | (numbers >= firsts[comm.rank + 1])])
    with together(comm):
        if highs.size + mirrors.size > MOST:
            raise InputError(
                f"rank {comm.rank} has {highs.size + mirrors.size:,} edges, and at most {MOST:,} can have labels; "
                "run more ranks"
            )
    gids = xp.concatenate([xp.arange(firsts[comm.rank], firsts[comm.rank + 1]), mirrors])
    starts = highs.size + to_host(xp.searchsorted(mirrors, move(firsts, graph.device)))
    lid_map = map_lids(int(firsts[-1]), gids)
    part = Partition(
        comm.rank, comm.size, int(firsts[-1]), 0, True, highs.size, starts, gids, xp.zeros(gids.size + 1, np.int64),
        xp.empty(0, np.int32), None, xp.ones(gids.size, np.bool_), xp.zeros(highs.size, np.int64), lid_map,
        storage=memory_of(graph.device), device=graph.device,
    )  # fmt: skip
    plan = make_plan(part, comm, sync.plan.transport)
    return EdgeNodes(graph, part, plan, names, places, highs, lows, lid_map.lids(numbers))


def _told_by_other_ends(graph: Partition, numbers: Any, names: Any, comm: MPI.Intracomm) -> Any:
    """(entries,) int64: the number that each edge has in the row of its other end. Collective.

    Mirrors are in the order of their masters. So what of a rank's rows leads to another rank is, transposed there, what
    leads back, in the same order.
    """
    csc, build = transpose(replace(graph, weights=numbers)), backend(Build, graph.device)
    assert csc.weights is not None
    bounds = (nodes_of_rank(graph, rank) for rank in range(comm.size))
    send = [csc.weights[int(csc.offsets[first]) : int(csc.offsets[last])] for first, last in bounds]
    came = build.xp.concatenate(build.all_to_all(comm, send))
    told = build.xp.empty_like(numbers)
    order, _ = by_rank(take(names // graph.num_nodes, graph.targets), comm.size)
    put(came, order, told)
    return told
