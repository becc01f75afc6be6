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


class Exchange(Protocol):
    """How labels travel between devices of one kind."""

    def Exchange(self, comm: "Intracomm", transport: "Transport") -> LabelExchange:  # noqa: N802
        """What carries labels by a transport, as :func:`gluon.transports.open_transport` returned it."""


if TYPE_CHECKING:
    from gluon import device_cpu, device_gpu, exchange_cpu, exchange_gpu

    _device_cpu: Device = device_cpu
    _device_gpu: Device = device_gpu
    _exchange_cpu: Exchange = exchange_cpu
    _exchange_gpu: Exchange = exchange_gpu
