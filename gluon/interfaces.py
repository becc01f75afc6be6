"""What the sync layer needs from every device."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cusp.runtime.devices import Array

if TYPE_CHECKING:
    from cusp.partition import Partition
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.transports.memory import Buffers


class Device(Protocol):
    """Values and bits of labels.

    Attributes
    ----------
    xp : module
        The library of arrays of this device.
    """

    xp: Any

    def full(self, size: int, fill: float, dtype: np.dtype) -> Array:
        """An array with the same value everywhere."""

    def no_bits(self, size: int) -> Array:
        """Words for ``size`` bits, none set: a whole number of 64, uint64 on the host and uint32 on a GPU."""

    def clear(self, words: Array) -> None:
        """Clear all bits."""

    def write(self, part: "Partition", gid: int, value: float, values: Array, updated: Array) -> None:
        """Give a node a value if it has a proxy here."""

    def set_bits(self, places: Array, words: Array) -> None:
        """Set the bits at these places, (n,) int32."""

    def count_bits(self, words: Array, size: int) -> int:
        """How many of the first ``size`` bits are set."""

    def take_bits(self, words: Array, size: int) -> Array:
        """Places, int32, ascending, of the set bits; they are cleared."""

    def signed(self, values: Array, nothing: np.generic, dtype: np.dtype) -> Array:
        """The values as integers of another type, which has negative ones: -1 where they are ``nothing``."""

    def wait(self) -> None:
        """Return when the device has done all that was asked of it."""


class Route(Protocol):
    """The lists along which labels are reduced or broadcast, as a device needs them."""

    def pack(
        self, labels: "tuple[Label, ...]", with_values: bool, out: "Buffers"
    ) -> tuple[Sequence[int], Sequence[int] | None]:
        """Write the message about what was updated of labels to each rank; values may be left out.

        Values that must not count again become the identity, and are no longer updated.

        Returns
        -------
        Words of the message to each rank, and from each if this device can know them already: else None.
        """

    def unpack(
        self, labels: "tuple[Label, ...]", implied: float | None, into: "Buffers", arrived: Sequence[int]
    ) -> None:
        """Combine the messages that have arrived, of so many words from each rank, into labels.

        ``implied`` is the value of all that was updated, if it was left out.
        """


class Outgoing(Protocol):
    """What a rank has to send to one other on a channel of mail: see :mod:`gluon.mail.post`.

    Attributes
    ----------
    marked : bool
        Whether there may be something.
    """

    marked: bool

    def mark(self, bits: Array) -> None:
        """Mark as unsent those of these proxies that are in the list from which the channel sends."""

    def write(self) -> np.ndarray | None:
        """A message with all that is unsent, (words,) uint64 in memory of the host; None if nothing is.

        It is valid until the next one.
        """


class Incoming(Protocol):
    """What comes from one rank on a channel of mail."""

    @property
    def landing(self) -> np.ndarray:
        """(words,) uint64: memory of the host for the largest message."""

    def read(self, words: int, arrived: Array) -> None:
        """Combine the message of so many words that ``landing`` has got; bits of ``arrived`` say what that changes."""


class Message(Protocol):
    """Messages about labels; :mod:`gluon.message_cpu` describes their form, which is the same on all devices."""

    def Route(self, lists: "Lists", kind: str) -> Route:  # noqa: N802
        """What packs and unpacks messages of a kind of exchange, ``reduce`` or ``broadcast``, along some lists."""

    def listed(self, lids: Array) -> Any:
        """A list of a plan in the form that :meth:`Outgoing` and :meth:`Incoming` take, to be kept."""

    def Outgoing(self, where: Any, kind: str, label: "Label", /) -> Outgoing:  # noqa: N802
        """For one run, from a list."""

    def Incoming(self, where: Any, label: "Label", /) -> Incoming:  # noqa: N802
        """For one run, into a list."""
