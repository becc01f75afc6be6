"""From global to local ids without an array of all nodes and without a hash map.

One bit per node says whether it has a proxy here. Counting the bits below it gives its place among the
proxies in ascending global order, and a table gives the local id of the proxy in that place (a rank-select
dictionary; Jacobson, FOCS 1989). Bits and counts are side by side: a look-up touches one cache line of them.
"""

from dataclasses import dataclass

import numpy as np

from cusp.errors import PolicyError, together
from cusp.kernels.arrays import total
from cusp.kernels.interfaces import Build
from cusp.runtime.devices import Array, backend, device_of, move
from cusp.runtime.exchange import pieces
from cusp.runtime.mpi import MPI


@dataclass(frozen=True)
class LidMap:
    """Global -> local ids of the proxies of one rank.

    Attributes
    ----------
    index : (2 * ceil(N / 64),) uint64
        For each 64 nodes: which have a proxy (bits), and how many proxies come before (count).
    table : (proxies,) int32
        Local id of each proxy, in ascending order of global ids.
    """

    index: np.ndarray
    table: np.ndarray

    def lids(self, gids: np.ndarray) -> np.ndarray:
        """Local ids, int32, of an array of global ids, on its device; -1 for those without a proxy here."""
        build = backend(Build, device_of(self.index))
        lids = build.xp.empty(gids.size, np.int32)
        build.look_up(self.index, self.table, move(gids, device_of(self.index)), lids)
        return move(lids, device_of(gids))


def map_lids(num_nodes: int, gids: Array) -> LidMap:
    """The map of the local ids 0, 1, 2 ... of distinct ``gids`` in any order, on their device.

    >>> map_lids(100, np.array([70, 3, 41])).lids(np.array([41, 5, 70]))
    array([ 2, -1,  0], dtype=int32)
    """
    build = backend(Build, device_of(gids))
    xp = build.xp
    index = xp.zeros(2 * (-(-num_nodes // 64)), np.uint64)
    build.mark(index, gids)
    build.count_below(index)
    lids, places, table = xp.arange(gids.size, dtype=np.int32), *(xp.empty(gids.size, np.int32) for _ in range(2))
    build.look_up(index, lids, gids, places)
    table[places] = lids
    return LidMap(index, table)


def order_of_masters(gids: Array, ends: np.ndarray, lid_map: LidMap, comm: MPI.Intracomm) -> Array:
    """Mirrors in the order of their masters, so that ranks read and write what they exchange in order. Collective.

    Parameters
    ----------
    gids : (mirrors,) uint32, uint64 or int64
        Those of rank 0, then those of rank 1.
    ends : (ranks,) int64
        Those of rank r end here.
    lid_map : LidMap
        Knows the masters of this rank.

    Returns
    -------
    (mirrors,) int32
        Indices into ``gids``, by rank and then by local id there.

    Raises
    ------
    PolicyError
        On every rank: one takes another to be the master of a node, but it is not.
    """
    build = backend(Build, device_of(gids))
    xp = build.xp
    asked = build.all_to_all(comm, pieces(gids, ends))
    lids = [lid_map.lids(group) for group in asked]
    with together(comm):
        for rank, (found, group) in enumerate(zip(lids, asked)):
            check_masters(comm.rank, rank, found, group)
    order = xp.arange(gids.size, dtype=np.int32)
    for group, there in zip(pieces(order, ends), build.all_to_all(comm, lids)):
        if group.size:
            at = xp.full(int(there.max()) + 1, -1, np.int32)
            at[there] = group
            group[:] = at[at >= 0]
    return order


def check_masters(rank: int, asking: int, lids: Array, gids: Array) -> None:
    """All ranks must agree on the master of a node; a rule that depends on the rank that asks breaks that.

    Parameters
    ----------
    rank, asking : int
        This rank, and one that takes it to be the master of ``gids``.
    lids : (nodes,) int32
        Their local ids here, -1 for those that are no masters.

    Raises
    ------
    PolicyError
    """
    wrong = lids < 0
    if total(wrong):
        raise PolicyError(
            f"rank {asking} takes rank {rank} to be the master of node {int(gids[int(wrong.argmax())]):,}, "
            "but it is not: get_master must give the same answer on every rank"
        )
