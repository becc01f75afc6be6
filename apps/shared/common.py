"""Common neighbours of pairs of nodes, whichever ranks have them.

The row of the end with more neighbours stays where it is, and those of the other ends travel to it. So a pair costs as
much as its end of lower degree has neighbours: for all edges, at most edges^1.5 (Chiba and Nishizeki, SIAM J. Comput.
1985).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from cusp import Partition
from cusp.apps.operators.interfaces import Undirected
from cusp.apps.operators.triangles.interfaces import Triangles
from cusp.kernels.arrays import compress, numbers, offsets_of, put, runs_of_rows, sizes_of, take
from cusp.kernels.interfaces import Build
from cusp.output.gid_order import at_gids, in_gid_order
from cusp.runtime.devices import backend, move, to_host, xp_of
from cusp.runtime.exchange import all_to_all, pieces
from cusp.runtime.mpi import MPI


class Table(NamedTuple):
    """Rows of neighbours, and which of some pairs need them.

    Attributes
    ----------
    pairs, rows : (n,) int64
        The pairs, ascending, and of each the row; on the host.
    offsets, targets : CSR
        Local ids on this rank; neighbours that have none are left out.
    values : (entries,) array, or None
        What came with the entries; None of the rows of this rank, which are those of the graph.
    counts : (entries,) int32, or None
        For what is to travel back.
    """

    pairs: np.ndarray
    rows: np.ndarray
    offsets: Any
    targets: Any
    values: Any = None
    counts: Any = None


def common_neighbours(graph: Partition, comm: MPI.Intracomm, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many neighbours pairs of nodes have in common, and each node alone. Collective.

    Parameters
    ----------
    graph : Partition
        Undirected, see :func:`~cusp.apps.shared.graphs.undirected.as_undirected`.
    pairs : (2, n) int64
        Global ids; a rank has pairs of its own.

    Returns
    -------
    common, degrees : (n,) int64, (2, n) int64
        On the host.
    """
    _, slab = in_gid_order(graph, to_host(graph.degrees) * comm.size + comm.rank, comm)
    known = at_gids(slab, pairs.ravel(), graph.num_nodes, comm).reshape(2, -1)
    degrees, keepers = np.divmod(known, comm.size)
    names = keepers * graph.num_nodes + pairs  # of nodes, as in nodes_of
    first_is_lower = (degrees[0] < degrees[1]) | ((degrees[0] == degrees[1]) & (names[0] < names[1]))
    lower, higher = np.where(first_is_lower, names, names[::-1])
    keeper = higher // graph.num_nodes
    order = np.argsort(keeper, kind="stable")
    ends = np.cumsum(np.bincount(keeper, minlength=comm.size))
    came = [all_to_all(comm, pieces(each[order], ends)) for each in (lower, higher)]
    lows, highs = map(np.concatenate, came)  # names, of which the second have their rows on this rank
    highs = graph.lid_map.lids(highs % graph.num_nodes)
    ascending, counts = np.argsort(highs, kind="stable"), np.empty(highs.size, np.int64)
    counts[ascending] = to_host(count_rows(graph, comm, highs[ascending], lows[ascending]))
    common = np.empty(keeper.size, np.int64)
    common[order] = np.concatenate(all_to_all(comm, pieces(counts, np.cumsum([each.size for each in came[0]]))))
    return common, degrees


def count_rows(graph: Partition, comm: MPI.Intracomm, highs: Any, names: np.ndarray) -> Any:
    """(n,) int64: how many neighbours masters of this rank have in common with any other nodes. Collective.

    Parameters
    ----------
    highs : (n,) integers, ascending
        Local ids of the masters.
    names : (n,) int64
        Of the others, as in ``nodes_of``; their rows travel.
    """
    ops, highs = backend(Triangles, graph.device), move(highs, graph.device).astype(np.int64)
    counts = xp_of(graph.device).empty(highs.size, np.int64)
    for table in tables_of(graph, comm, names):
        pairs, rows = (move(each, graph.device) for each in table[:2])
        here = take(highs, pairs)
        put(ops.count_common(graph.offsets, graph.targets, here, rows, table.offsets, table.targets), pairs, counts)
    return counts


def tables_of(
    graph: Partition, comm: MPI.Intracomm, names: np.ndarray, values_of: Callable[[Any], Any] | None = None,
    give_back: Callable[[Any, Any], None] | None = None,
) -> Iterator[Table]:  # fmt: skip
    """For pairs, the rows of one of their ends, in rounds of bounded size. Collective.

    Parameters
    ----------
    names : (n,) int64
        Of these ends, as in ``nodes_of``.
    values_of : function of (m,) int64 -> (m,) array, optional
        What is to travel with entries of this rank, by their places in the rows of the graph.
    give_back : function of (m,) int64 and (m,) int32, optional
        Takes places in the rows of this rank, and what another wrote into its ``counts`` of them.
    """
    keeper = names // graph.num_nodes
    own, others = np.flatnonzero(keeper == comm.rank), np.flatnonzero(keeper != comm.rank)
    lids = graph.lid_map.lids(move(names[own] % graph.num_nodes, graph.device))
    yield Table(own, to_host(lids).astype(np.int64), graph.offsets, graph.targets)
    needed, row = np.unique(names[others], return_inverse=True)
    order = np.argsort(row, kind="stable")
    for first, offsets, *entries in _rows_of(graph, comm, needed, values_of, give_back):
        last = first + offsets.size - 1
        some = np.sort(order[slice(*np.searchsorted(row, [first, last], sorter=order))])
        yield Table(others[some], row[some] - first, offsets, *entries)


def _rows_of(
    graph: Partition, comm: MPI.Intracomm, names: np.ndarray, values_of: Callable[[Any], Any] | None,
    give_back: Callable[[Any, Any], None] | None,
) -> Iterator[tuple[int, Any, Any, Any, Any]]:  # fmt: skip
    """The rows of some nodes, named as in ``nodes_of``, ascending: the first of them, and a table. Collective."""
    build, ends = backend(Build, graph.device), np.searchsorted(names, np.arange(1, comm.size + 1) * graph.num_nodes)
    came = all_to_all(comm, pieces(names % graph.num_nodes, ends))
    asked = [graph.lid_map.lids(move(gids, graph.device)).astype(np.int64) for gids in came]
    capacity = backend(Triangles, graph.device).ROWS_AT_ONCE // comm.size
    rounds = [runs_of_rows(sizes_of(graph.offsets, lids), capacity) for lids in asked]
    firsts = ends - np.diff(ends, prepend=0)
    for turn in range(max(comm.allgather(max(map(len, rounds))))):
        send = [lids[cuts[turn]] if turn < len(cuts) else lids[:0] for lids, cuts in zip(asked, rounds)]
        places = [places_of_edges(graph, lids) for lids in send]
        sizes = build.all_to_all(comm, [sizes_of(graph.offsets, lids) for lids in send])
        entries = build.all_to_all(comm, [take(graph.gids, take(graph.targets, some)) for some in places])
        values = build.all_to_all(comm, [values_of(some) for some in places]) if values_of else [None] * comm.size
        back = []
        for rank, (some, gids, those) in enumerate(zip(sizes, entries, values)):
            lids = graph.lid_map.lids(gids)
            here, counts = lids >= 0, build.xp.zeros(lids.size if give_back else 0, np.int32)
            rows = offsets_of(here)[offsets_of(some)], compress(here, lids)
            written = compress(here, counts) if give_back else None
            yield int(firsts[rank]), *rows, None if those is None else compress(here, those), written
            firsts[rank] += some.size
            if give_back:
                counts[here] = written
            back.append(counts)
        if give_back:
            for some, counts in zip(places, build.all_to_all(comm, back)):
                give_back(some, counts)


def places_of_edges(graph: Partition, lids: Any) -> Any:
    """(n,) int64: the places of the out-edges of some proxies, row after row."""
    begins = offsets_of(sizes_of(graph.offsets, lids))
    rows = backend(Undirected, graph.device).rows_of_edges(begins)
    return numbers(0, rows.size, np.int64, graph.device) + take(take(graph.offsets, lids) - begins[:-1], rows)
