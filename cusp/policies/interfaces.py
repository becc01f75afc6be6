"""The interface of a policy's streaming loops on every device: compiled on the host, translated for a GPU."""

from typing import Any, Protocol

from cusp.runtime.devices import Array


class Loops(Protocol):
    """The rules of one policy in loops over a slice; ``prop`` is what a rule may ask.

    Where a rule raises, ``at[0]`` is the row, the node's place or the edge that it was asked about. Where what it
    says is not a rank, ``at[1]`` is that, on a CPU.
    """

    def assign_masters(
        self, prop: Any, begin: int, end: int, num_parts: int, mstate: Any, masters: Any, own: Array, at: Array
    ) -> int:
        """First row, of those from ``begin`` to ``end - 1``, whose master is not a rank; -1 if there is none.

        If the policy has an order: of the first ``end`` rows of the array ``begin``.
        """

    def masters_of(self, prop: Any, nodes: Array, masters: Array, at: Array) -> None:
        """Masters of any nodes."""

    def assign_edges(
        self, prop: Any, begin: int, end: int, num_parts: int, masters: Any, own: Array, estate: Any, owners: Array,
        at: Array,
    ) -> int:  # fmt: skip
        """First edge of the rows from ``begin`` to ``end - 1`` whose owner is not a rank; -1 if there is none."""
