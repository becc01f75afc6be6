"""What a rank may know of nodes that other ranks read: one value for each node that its edges point to."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cusp.input.edge_slice import EdgeSlice
from cusp.kernels.interfaces import Build
from cusp.policies.compile_rules import Rules
from cusp.policies.prop import Prop
from cusp.runtime.devices import backend, device_of, xp_of
from cusp.runtime.exchange import pieces

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


@dataclass(frozen=True)
class Neighbors:
    """Nodes of other slices that this slice's edges point to, and who asked for nodes of this one.

    Attributes
    ----------
    index : (2 * ceil(N / 64),) uint64
        Bits of the neighbours, with counts, as in :class:`cusp.lid_map.LidMap`: the place of a
        neighbour is the number of bits below its own.
    starts : (ranks + 1,) int64
        Neighbours that rank r reads have the places ``starts[r] : starts[r + 1]``, by ascending gid.
    asked : list of (n_r,) int64
        Rows of this slice, ascending, whose values rank r wants.
    """

    index: np.ndarray
    starts: np.ndarray
    asked: list[np.ndarray]

    @property
    def size(self) -> int:
        """Number of neighbours."""
        return int(self.starts[-1])


def find_neighbors(edges: EdgeSlice, comm: "Intracomm") -> Neighbors:
    """Ask every reader for the nodes of its slice that this one points to. Collective."""
    build = backend(Build, edges.device)
    index = build.xp.zeros(2 * (-(-edges.num_nodes // 64)), np.uint64)
    for part in edges.storage.parts(edges.targets.size):
        build.mark(index, edges.targets[part])
    build.clear_range(index, edges.first_node, edges.first_node + edges.indptr.size - 1)
    gids = build.xp.empty(build.count_below(index), np.int64)
    build.list_marked(index, gids)
    starts = _places_of(edges.bounds, gids)
    wanted = pieces(gids, starts[1:])
    return Neighbors(index, starts, [asked - edges.first_node for asked in build.all_to_all(comm, wanted)])


def meet_neighbors(edges: EdgeSlice, rules: Rules, prop: Prop, comm: "Intracomm") -> Neighbors:
    """Find the neighbours, and let rules ask ``prop`` about them. Collective."""
    neighbors = find_neighbors(edges, comm)
    prop.neighbor_index = neighbors.index
    prop.num_places += neighbors.size
    if rules.uses_degrees:
        xp = xp_of(edges.device)
        prop.neighbor_degrees = xp.empty(neighbors.size, np.int64)
        slices = np.stack([edges.bounds[:-1], edges.bounds[1:]], axis=1)
        tell_neighbors(neighbors, xp.diff(edges.indptr), prop.neighbor_degrees, slices, 0, comm)
    return neighbors


def tell_neighbors(
    neighbors: Neighbors, values: np.ndarray, table: np.ndarray, blocks: np.ndarray, block: int, comm: "Intracomm"
) -> None:
    """Send the values of one block of rows to those who asked; store what comes in ``table``. Collective.

    Both sides know which nodes were asked for and where the blocks of each slice begin, so that
    nothing but values travels.

    Parameters
    ----------
    values : (nodes of the slice,) any type
    table : (neighbours,) of the same type
        Changed in place.
    blocks : (ranks, blocks + 1) int64
        First node of each block of each rank's slice, global ids; the last entry ends the slice.
    block : int
    """
    build = backend(Build, device_of(values))
    first = blocks[comm.rank, 0]
    begin, end = blocks[:, block], blocks[:, block + 1]
    send = []
    for rows in neighbors.asked:
        part = _places_of(np.array([begin[comm.rank] - first, end[comm.rank] - first]), rows)
        send.append(values[rows[part[0] : part[1]]])
    for rank, came in enumerate(build.all_to_all(comm, send)):
        if came.size:
            at = int(build.rank_of(neighbors.index, begin[rank]))
            table[at : at + came.size] = came


def ask_readers(gids: np.ndarray, bounds: np.ndarray, values: np.ndarray, comm: "Intracomm") -> np.ndarray:
    """Values of any nodes, from the ranks that read them. Collective.

    Parameters
    ----------
    gids : (n,) int64, ascending
    bounds : (ranks + 1,) int64
        Rank r reads the nodes ``bounds[r] : bounds[r + 1]``.
    values : (nodes of the slice,) any type
    """
    build = backend(Build, device_of(values))
    asked = build.all_to_all(comm, pieces(gids, _places_of(bounds[1:], gids)))
    first = int(bounds[comm.rank])
    return build.xp.concatenate(build.all_to_all(comm, [values[rows - first] for rows in asked]))


def _places_of(nodes: np.ndarray, ascending: Any) -> np.ndarray:
    """On the host: how many entries of an ascending list are below each of a few nodes."""
    build = backend(Build, device_of(ascending))
    return build.get(build.xp.searchsorted(ascending, build.put(nodes)))
