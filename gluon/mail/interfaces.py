"""What mail needs from every device."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cusp.runtime.devices import Array

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists


class Mailbox(Protocol):
    """What this rank has to send on one channel, and what others have sent: see :mod:`gluon.mail.post`.

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
    def has_unsent(self) -> bool:
        """Whether anything is left to write."""

    def mark_unsent(self, bits: Array) -> None:
        """Mark as unsent those of these proxies that are in the lists from which this channel sends."""

    def write(self, rank: int) -> np.ndarray | None:
        """A message with all that is unsent to a rank, (words,) uint64 in memory of the host; None if nothing is.

        It is valid until the next one to that rank.
        """

    def into(self, rank: int) -> np.ndarray:
        """Memory of the host for the largest message from a rank."""

    def read(self, rank: int, words: int) -> None:
        """Combine the message of so many words that :meth:`into` has got from a rank."""

    def admit(self) -> None:
        """Set the bits of the label that ``arrived`` has; it has none afterwards."""


class Mailboxes(Protocol):
    """Messages to ranks that do not wait for them."""

    def Memory(self) -> Any:  # noqa: N802
        """What mailboxes share; kept with the communicator."""

    def Mailbox(self, memory: Any, kind: str, label: "Label", lists: "Lists") -> Mailbox:  # noqa: N802
        """The mailbox of a channel, for one run."""


if TYPE_CHECKING:
    from gluon.mail import mailboxes_cpu, mailboxes_gpu

    _mailboxes_cpu: Mailboxes = mailboxes_cpu
    _mailboxes_gpu: Mailboxes = mailboxes_gpu
