"""From global to local ids without an array of all nodes and without a hash map.

One bit a node says whether it has a proxy here. Counting the bits below it gives its place among the
proxies in ascending global order, and a table of the proxies gives the local id (a rank-select
dictionary; Jacobson, FOCS 1989). Bits and counts stand side by side: one cache line a look-up.
"""

from dataclasses import dataclass

import numpy as np

from cusp.kernels.interfaces import Build
from cusp.runtime.devices import backend, device_of


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
        """Local ids, int32, of an array of global ids; -1 where there is no proxy here. Where ``gids`` are."""
        build = backend(Build, device_of(self.index))
        found = build.xp.empty(gids.size, np.int32)
        build.look_up(self.index, self.table, build.put(gids), found)
        return found if device_of(gids) == device_of(found) else build.get(found)
