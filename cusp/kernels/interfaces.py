"""The interface of the kernels on every device."""

from typing import Any, Protocol

import numpy as np

from cusp.errors import Intracomm
from cusp.runtime.devices import Array


class Build(Protocol):
    """The loops of phases 3 and 4: group edges by owner, number the proxies, build CSR and CSC.

    ``index`` and ``table`` are those of a :class:`~cusp.lid_map.LidMap`. Counts per rank are on the host.

    Attributes
    ----------
    xp : module
        The library of arrays of this device.
    CHUNK : int
        Edges of a slice that travel at a time.
    """

    xp: Any
    CHUNK: int

    def all_to_all(self, comm: Intracomm, arrays: list[Array]) -> list[Array]:
        """Give ``arrays[r]`` to rank r and return what each rank gave to this one. Collective."""

    def post(self, comm: Intracomm, send: list[Array], receive: list[Array]) -> list[Any]:
        """Start sending ``send[r]`` to each other rank r and receiving into ``receive[r]``, sizes being agreed."""

    def wait_all(self, posted: list[Any]) -> None:
        """Wait until all that was posted has been sent and received."""

    def count_rows(self, indptr: Array, owners: Array, num_parts: int) -> np.ndarray:
        """(num_parts,) int64: how many rows of the slice have edges for each rank."""

    def list_rows(
        self, first_node: int, indptr: Array, owners: Array, entry: np.ndarray, gids: Array, sizes: Array
    ) -> None:
        """Source and number of edges of every row for each rank.

        ``entry[r]``, the last entry made for rank r, moves on.
        """

    def count_owners(self, owners: Array, num_parts: int) -> np.ndarray:
        """(num_parts,) int64: edges for each rank."""

    def group_by_owner(self, values: Array, owners: Array, counts: np.ndarray, grouped: Array) -> None:
        """Copy ``values`` so that those for rank 0 come first, then those for rank 1; the order is kept within."""

    def mark(self, index: Array, gids: Array) -> None:
        """Set the bit of each global id in the index."""

    def count_below(self, index: Array) -> int:
        """Fill in how many bits are set before each word; returns how many there are in all."""

    def list_marked(self, index: Array, gids: Array) -> None:
        """Global ids of the set bits, ascending."""

    def clear_range(self, index: Array, first: int, last: int) -> None:
        """Clear the bits of the nodes ``first`` to ``last - 1``."""

    def rank_of(self, index: Array, gid: int) -> int:
        """Number of set bits below ``gid``, which may be one past the last node."""

    def test_bits(self, words: Array, gids: Array, found: Array) -> None:
        """``found[i]`` = bit ``gids[i]`` of ``words``."""

    def look_up(self, index: Array, table: Array, gids: Array, lids: Array) -> None:
        """``lids[i]`` = local id of ``gids[i]``, or -1."""

    def find_masters(self, gids: Array, my_nodes: Array, places: Array, mirrors: Array) -> None:
        """The place of each own node among the proxies, and those of the mirrors; all lists ascend."""

    def sort_masters(
        self, degrees: Array, highest: int, places: Array, ascending: Array, table: Array, gids: Array, by_lid: Array
    ) -> None:
        """Give masters local ids: higher degrees first, all from ``highest`` on being equal.

        A master's place is one in ``ascending``, the global ids of all proxies, and in the ``table`` of their local
        ids. ``gids`` and ``by_lid`` get global ids and degrees by local id.
        """

    def relabel(
        self, index: Array, table: Array, row_lids: Array, row_offsets: Array, arrived: Array, offsets: Array,
        targets: Array, fronts: Array, hubs_first: bool,
    ) -> None:  # fmt: skip
        """Write every row to its place in lid order, its targets as local ids.

        ``index``: empty where every node has a proxy, whose place in the table is its global id then. If hubs come
        first, the target with the lowest lid changes places with the first of its row; ``fronts[row]``: its place
        before.
        """

    def move_rows(
        self, row_lids: Array, row_offsets: Array, arrived: Array, offsets: Array, values: Array, fronts: Array
    ) -> None:
        """Write every row of weights to its place in lid order, in the order of its targets."""

    def count_in_edges(self, targets: Array, offsets: Array) -> None:
        """Add the in-edges of proxy v to ``offsets[v + 1]``."""

    def transpose(
        self, first_source: int, offsets: Array, targets: Array, weights: Array, first: int, last: int, place: Array,
        sources: Array, in_weights: Array,
    ) -> None:  # fmt: skip
        """Rows of a CSR -> the rows ``first`` to ``last - 1`` of the CSC, in which sources ascend.

        ``place``: where the next in-edge of each proxy goes, which moves on. ``weights`` and ``in_weights`` may both
        be empty. On a GPU, which holds all edges at once, these are always all rows.
        """
