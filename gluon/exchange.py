"""Labels travel between ranks along the lists of a plan: one message per partner, for all labels together."""

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from cusp.runtime.devices import backend
from gluon.interfaces import Message, Route
from gluon.transports.memory import WORD

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.transports import Transport


class Exchange:
    """Reduces and broadcasts labels by a transport, whatever the devices of the ranks are."""

    def __init__(self, transport: "Transport", device: str) -> None:
        self.transport = transport
        self._message = backend(Message, device)
        self._known: WeakKeyDictionary[Lists, dict[str, Along]] = WeakKeyDictionary()

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
        if lists.empty or not labels:
            return []
        along = self._along(kind, lists)
        out, into = self.transport.buffers(*along.buffers(labels, implied is None))
        words, coming = along.route.pack(labels, implied is None, out)
        arrived = self.transport.exchange(out, words, into, coming)
        along.route.unpack(labels, implied, into, arrived)
        return [WORD * count for count in words if count]

    def _along(self, kind: str, lists: "Lists") -> "Along":
        known = self._known.setdefault(lists, {})
        if kind not in known:
            out, into = map(sizes_of, lists.ends(kind))
            known[kind] = Along(self._message.Route(lists, kind), out, into, {})
        return known[kind]


class Along(NamedTuple):
    """One kind of exchange along some lists.

    Attributes
    ----------
    route : Route
    out, into : (ranks,) int
        Entries of the lists for which this rank sends to each other one, and receives.
    words : dict
        By the bytes of each label's values that are sent: words of the largest message to each rank, and from each.
    """

    route: Route
    out: tuple[int, ...]
    into: tuple[int, ...]
    words: dict[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]]

    def buffers(self, labels: "tuple[Label, ...]", with_values: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Words of the largest message to, and from, each rank."""
        widths = tuple([label.values.itemsize if with_values else 0 for label in labels])
        if widths not in self.words:
            to_each, from_each = (
                tuple(sum(block_words(entries, width) for width in widths) if entries else 0 for entries in side)
                for side in (self.out, self.into)
            )
            self.words[widths] = to_each, from_each
        return self.words[widths]


def sizes_of(lists: tuple) -> tuple[int, ...]:
    """Entries of each list."""
    return tuple(lids.size for lids in lists)


def block_words(entries: int, width: int) -> int:
    """Words of the largest block of a message for a list, with values of so many bytes."""
    return 1 + -(-entries // 64) + -(-entries * width // WORD)
