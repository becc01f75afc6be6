"""From global to local ids without an array of all nodes and without a hash map.

One bit per node says whether it has a proxy here. The number of bits below it is its place among the
proxies in ascending global order, and a table of the proxies gives the local id (a rank-select
dictionary; Jacobson, FOCS 1989). Bits and counts are side by side: one cache line per look-up.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload

from cusp.runtime.devices import backend, device_of


def popcount(word):  # type: ignore[no-untyped-def]
    """Number of set bits of a uint64."""
    return int(word).bit_count()


@intrinsic
def _ctpop(typing_context, word):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@overload(popcount, inline="always")
def _compiled_popcount(word):  # type: ignore[no-untyped-def]
    return lambda word: _ctpop(word)


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
        """Local ids, int32, of an array of global ids; -1 where there is no proxy here. On the device of ``gids``."""
        build = backend("cusp.kernels.build", device_of(self.index))
        lids = build.xp.empty(gids.size, np.int32)
        build.look_up(self.index, self.table, build.put(gids), lids)
        return lids if device_of(gids) == device_of(lids) else build.get(lids)


@njit(cache=True, nogil=True, inline="always")
def lid_of(index, table, gid):  # type: ignore[no-untyped-def]
    """Local id of a node that has a proxy here."""
    word = gid >> np.uint64(6)
    below = index[2 * word] & ((np.uint64(1) << (gid & np.uint64(63))) - np.uint64(1))
    return table[index[2 * word + 1] + popcount(below)]


@njit(cache=True, nogil=True)
def look_up(index, table, gids, lids):  # type: ignore[no-untyped-def]
    """``lids[i]`` = local id of ``gids[i]``, or -1."""
    for i in range(gids.size):
        gid = np.uint64(gids[i])
        present = (index[2 * (gid >> np.uint64(6))] >> (gid & np.uint64(63))) & np.uint64(1)
        lids[i] = lid_of(index, table, gid) if present else -1
