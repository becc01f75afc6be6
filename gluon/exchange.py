"""Labels travel between ranks along the lists of a plan: one message per partner, for all labels together."""

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from cusp.runtime import timeline
from cusp.runtime.devices import backend, finisher
from cusp.runtime.timeline import SYNC, WAIT
from gluon.interfaces import Message, Route
from gluon.transports.memory import WORD, block_words

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.transports import Transport

Words = tuple[int, ...]  # of a message to, or from, each rank


class Exchange:
    """Reduces and broadcasts labels by a transport, whatever the devices of the ranks are."""

    def __init__(self, transport: "Transport", device: str) -> None:
        self.transport = transport
        self._message, self._finish = backend(Message, device), finisher(device)
        self._known: WeakKeyDictionary[Lists, tuple[dict[str, Route], dict[Any, tuple[Words, Words]]]]
        self._known = WeakKeyDictionary()

    def __call__(
        self, kind: str, labels: "tuple[Label, ...]", lists: "Lists", implied: float | None,
        meanwhile: Iterable[object] | None = None,
    ) -> list[int]:  # fmt: skip
        """Send what was updated on one side of the lists, combine what arrives into the other. Collective.

        Parameters
        ----------
        kind : {'reduce', 'broadcast'}
        labels : of one partition
        lists : Lists
            Of one plan.
        implied : number, optional
            The value of everything updated, if all ranks know it.
        meanwhile : iterable, optional
            Steps of other work, which are taken while messages are on their way.

        Returns
        -------
        list of int
            Bytes of each message sent.
        """
        if lists.empty or not labels:
            deque(meanwhile or (), maxlen=0)
            return []
        widths = tuple([label.values.itemsize if implied is None else 0 for label in labels])
        route, most_out, most_in = self._along(kind, lists, widths)
        running = timeline.running()
        step = running and running.steps(self._finish)
        out, into = self.transport.buffers(most_out, most_in)
        if step:
            step("buffers", WAIT)
        words, coming = route.pack(labels, implied is None, out)
        if step:
            step("extract", SYNC)
        if meanwhile is None:
            arrived = self.transport.exchange(out, words, into, coming)
        else:
            go_on = self.transport.begin(out, words, into, coming)
            for _ in meanwhile:
                go_on()
            step = running and running.steps(self._finish)  # those leave spans of their own
            arrived = self.transport.end()
        if step:
            step("exchange", WAIT)
        route.unpack(labels, implied, into, arrived)
        if step:
            step("combine", SYNC)
        return [WORD * count for count in words if count]

    def _along(self, kind: str, lists: "Lists", widths: tuple[int, ...]) -> tuple[Route, Words, Words]:
        """A kind of exchange along some lists, and words of the largest messages about values of so many bytes."""
        routes, words = self._known.setdefault(lists, ({}, {}))
        if kind not in routes:
            routes[kind] = self._message.Route(lists, kind)
        if (kind, widths) not in words:
            out, into = (tuple(_most_words(lids.size, widths) for lids in side) for side in lists.ends(kind))
            words[kind, widths] = out, into
        return routes[kind], *words[kind, widths]


def _most_words(entries: int, widths: tuple[int, ...]) -> int:
    return sum(block_words(entries, width) for width in widths) if entries else 0
