"""The interface to the memory of a device, limited on a GPU: ``card_cpu`` and ``card_gpu``."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from numpy.typing import DTypeLike

from cusp.runtime.devices import Array


class Usage(NamedTuple):
    """Where the edges of a process are.

    Attributes
    ----------
    limit : int
        Bytes of the card that this process may use.
    resident, hosted : int
        Bytes of edge arrays that lie on the card, and that lie in page-locked memory of the host.
    rate : float
        Bytes per second that come over the link.
    """

    limit: int
    resident: int
    hosted: int
    rate: float


class Card(Protocol):
    """The card of this process."""

    def place(self) -> str:
        """Host and bus of the card: ranks that share it say the same."""

    def set_limit(self, limit: int | None, needed: int, sharing: int) -> None:
        """Use at most ``limit`` bytes of the card from now on; what does not fit lies in the host's memory.

        Parameters
        ----------
        limit : int or None
            None: this rank's part of what the card has free, less a reserve, if ``needed`` bytes are more than that;
            else there is no limit.
        needed : int
            Bytes that a graph takes while it is partitioned.
        sharing : int
            Ranks that use the card.

        Raises
        ------
        CardError
            The limit is more than the card has.
        """

    def empty(self, size: int, dtype: DTypeLike) -> Array:
        """A new array with an entry for each edge: of hosted memory, if there is a limit.

        Raises
        ------
        CardError
            Neither the card nor its host has so much memory.
        """

    def aside(self, size: int, dtype: DTypeLike) -> Array:
        """A new array with entries for nodes that is read in order, or seldom: hosted, if it is large."""

    def put_aside(self, array: Array) -> Array:
        """Such an array from one that may lie on the card: itself, or a copy."""

    def prefer(self, arrays: Sequence[Array], headroom: int = 0) -> None:
        """Keep the last rows of these arrays on the card, as many as fit, rather than those of others.

        Hubs come first, so the last rows are the short ones. They are asked for most often: a pull seldom looks at a
        hub, which is reached early, and most nodes are reached by their first neighbors. ``headroom`` bytes are left
        for what a run makes.
        """

    def settle(self, share: float = 1.0) -> None:
        """Bring back what had to make room for arrays that are gone, and give back what no array uses.

        ``share``: of the preferred arrays, at most so much is brought onto the card.
        """

    def at_once(self, most: int, entry_bytes: int) -> int:
        """How many entries, at most ``most``, to work on at a time if each needs ``entry_bytes``."""

    def usage(self) -> Usage | None:
        """Where the edges are; None without a limit."""
