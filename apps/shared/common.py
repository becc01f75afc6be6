"""Common neighbours of pairs of nodes, whichever ranks have them.

The row of the end with more neighbours stays where it is, and those of the other ends travel to it. So a pair costs as
much as its end of lower degree has neighbours: for all edges, at most edges^1.5 (Chiba and Nishizeki, SIAM J. Comput.
1985).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from cusp import Partition
from cusp.apps.operators.interfaces import Undirected
from cusp.apps.operators.structure.interfaces import Triangles
from cusp.kernels.arrays import compress, numbers, offsets_of, runs_of_rows, sizes_of, take
from cusp.kernels.interfaces import Build
from cusp.output.gid_order import at_gids, in_gid_order
from cusp.runtime.devices import backend, move, to_host
from cusp.runtime.exchange import all_to_all, pieces
from cusp.runtime.mpi import MPI


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
    counts = _count_here(graph, comm, *map(np.concatenate, came))
    common = np.empty(keeper.size, np.int64)
    common[order] = np.concatenate(all_to_all(comm, pieces(counts, np.cumsum([each.size for each in came[0]]))))
    return common, degrees


def _count_here(graph: Partition, comm: MPI.Intracomm, lower: np.ndarray, higher: np.ndarray) -> np.ndarray:
    """(n,) int64: the common neighbours of pairs of names, of which ``higher`` has its row on this rank. Collective.

    Equal pairs are counted once.
    """
    ops, rows = backend(Triangles, graph.device), graph.num_proxies
    needed, row = np.unique(lower, return_inverse=True)
    highs = to_host(graph.lid_map.lids(move(higher % graph.num_nodes, graph.device)))
    distinct, place = np.unique(row * rows + highs, return_inverse=True)
    row, highs = np.divmod(distinct, rows)
    counts = np.empty(row.size, np.int64)
    for first, begins, entries in _rows_of(graph, comm, needed):
        some = slice(*np.searchsorted(row, [first, first + begins.size - 1]))
        order = np.argsort(highs[some], kind="stable")
        here, there = (move(each[some][order], graph.device) for each in (highs, row - first))
        counts[some][order] = to_host(ops.count_common(graph.offsets, graph.targets, here, there, begins, entries))
    return counts[place]


def _rows_of(graph: Partition, comm: MPI.Intracomm, names: np.ndarray) -> Iterator[tuple[int, Any, Any]]:
    """The rows of some nodes, named as in ``nodes_of``, ascending, in rounds of bounded size. Collective.

    Yields
    ------
    first, begins, entries : int, (rows + 1,) int64, (entries,) int32
        Row i, of ``names[first + i]``, is ``entries[begins[i] : begins[i + 1]]``: its local ids, those that are here.
    """
    build, ends = backend(Build, graph.device), np.searchsorted(names, np.arange(1, comm.size + 1) * graph.num_nodes)
    came = all_to_all(comm, pieces(names % graph.num_nodes, ends))
    asked = [graph.lid_map.lids(move(gids, graph.device)).astype(np.int64) for gids in came]
    capacity = backend(Triangles, graph.device).ROWS_AT_ONCE // comm.size
    rounds = [runs_of_rows(sizes_of(graph.offsets, lids), capacity) for lids in asked]
    firsts = ends - np.diff(ends, prepend=0)
    for turn in range(max(comm.allgather(max(map(len, rounds))))):
        send = [lids[cuts[turn]] if turn < len(cuts) else lids[:0] for lids, cuts in zip(asked, rounds)]
        sizes = build.all_to_all(comm, [sizes_of(graph.offsets, lids) for lids in send])
        entries = build.all_to_all(comm, [_neighbours(graph, lids) for lids in send])
        for rank, (some, gids) in enumerate(zip(sizes, entries)):
            lids = graph.lid_map.lids(gids)
            yield int(firsts[rank]), offsets_of(lids >= 0)[offsets_of(some)], compress(lids >= 0, lids)
            firsts[rank] += some.size


def _neighbours(graph: Partition, lids: Any) -> Any:
    """The global ids of the neighbours of some masters, row after row."""
    begins = offsets_of(sizes_of(graph.offsets, lids))
    rows = backend(Undirected, graph.device).rows_of_edges(begins)
    places = numbers(0, rows.size, np.int64, graph.device) + take(take(graph.offsets, lids) - begins[:-1], rows)
    return take(graph.gids, take(graph.targets, places))
