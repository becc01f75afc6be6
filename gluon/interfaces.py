"""What the sync layer needs from every device."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cusp.runtime.devices import Array

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from cusp.partition import Partition
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.transports import Transport


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

    def count_bits(self, words: Array, size: int) -> int:
        """How many of the first ``size`` bits are set."""

    def take_bits(self, words: Array, size: int) -> Array:
        """Places, int32, ascending, of the set bits; they are cleared."""

    def wait(self) -> None:
        """Return when the device has done all that was asked of it."""


class LabelExchange(Protocol):
    """Carries labels along lists of local ids that both sides know."""

    transport: "Transport"

    def __call__(self, kind: str, labels: "tuple[Label, ...]", lists: "Lists", implied: float | None) -> list[int]:
        """Send what was updated on one side of the lists, combine what arrives into the other. Collective.

        Parameters
        ----------
        kind : {'reduce', 'broadcast'}
        labels : of one partition
        lists : Lists
            Of one plan.
        implied : number, optional
            The value of everything updated, if all ranks know it.

        Returns
        -------
        list of int
            Bytes of each message sent.
        """


class Mailbox(Protocol):
    """What this rank owes to others on one channel, and what they have sent: see :mod:`gluon.mail`.

    Attributes
    ----------
    kind : {'reduce', 'broadcast'}
    label : Label
    targets : list of int
        Ranks to which this one may have to send.
    arrived : bits of proxies
        Those whose values have been changed by what was read.
    """

    kind: str
    label: "Label"
    targets: list[int]
    arrived: Array

    @property
    def owes(self) -> bool:
        """Whether anything is left to write."""

    def owe(self, bits: Array) -> None:
        """Of these proxies, owe those to others that are in the lists from which this channel sends."""

    def write(self, rank: int) -> np.ndarray | None:
        """A message with all that is owed to a rank, (words,) uint64 in memory of the host; None if that is nothing.

        It is valid until the next one to that rank.
        """

    def into(self, rank: int) -> np.ndarray:
        """Memory of the host for the largest message from a rank."""

    def read(self, rank: int, words: int) -> None:
        """Combine the message of so many words that :meth:`into` has got from a rank."""

    def admit(self) -> None:
        """Set the bits of the label that ``arrived`` has; it has none afterwards."""


class Mail(Protocol):
    """Messages to ranks that do not wait for them."""

    def Memory(self) -> Any:  # noqa: N802
        """What mailboxes share; kept with the communicator."""

    def Mailbox(self, memory: Any, kind: str, label: "Label", lists: "Lists") -> Mailbox:  # noqa: N802
        """The mailbox of a channel, for one run."""


class Exchange(Protocol):
    """How labels travel between devices of one kind."""

    def Exchange(self, comm: "Intracomm", transport: "Transport") -> LabelExchange:  # noqa: N802
        """What carries labels by a transport, as :func:`gluon.transports.open_transport` returned it."""


if TYPE_CHECKING:
    from gluon import device_cpu, device_gpu, exchange_cpu, exchange_gpu, mail_cpu, mail_gpu

    _device_cpu: Device = device_cpu
    _device_gpu: Device = device_gpu
    _mail_cpu: Mail = mail_cpu
    _mail_gpu: Mail = mail_gpu
    _exchange_cpu: Exchange = exchange_cpu
    _exchange_gpu: Exchange = exchange_gpu
