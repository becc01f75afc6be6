"""Exchanges of labels while a timeline runs: a span for each step of them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cusp.runtime.devices import finisher
from cusp.runtime.timeline import SYNC, WAIT, Nothing, Span, span
from gluon.interfaces import LabelExchange
from gluon.transports.numbers import HIGHEST, LOWEST, SUM

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.transports import Transport
    from gluon.transports.memory import Buffers

NAMES = {SUM: "total", LOWEST: "lowest", HIGHEST: "highest"}


class TracedExchange:
    """What ``make`` makes of a transport, in a span ``reduce`` or ``broadcast``; its steps are spans inside."""

    def __init__(self, make: Callable[["Transport"], LabelExchange], transport: "Transport", device: str) -> None:
        self._traced = TracedTransport(transport, device)
        self.transport: Transport = self._traced
        self._exchange = make(self._traced)

    def __call__(self, kind: str, labels: "tuple[Label, ...]", lists: "Lists", implied: float | None) -> list[int]:
        """See :class:`gluon.interfaces.LabelExchange`. Collective."""
        with span(kind, SYNC) as whole:
            sent = self._exchange(kind, labels, lists, implied)
            self._traced.end_step()
            whole.tell(messages=len(sent), bytes=sum(sent))
        return sent


class TracedTransport:
    """A transport with spans for what it does, and for what is done between its calls.

    Whoever exchanges labels asks for buffers, extracts into them, exchanges, and combines: so between buffers and
    exchange is ``extract``, and after the exchange ``combine``.
    """

    def __init__(self, transport: "Transport", device: str) -> None:
        self._transport, self._finish = transport, finisher(device)
        self.name = transport.name
        self._step: Span | Nothing | None = None
        self._combining = False

    @staticmethod
    def why_unusable(comm: Any) -> str | None:
        """None: it is in use."""
        return None

    def buffers(self, direction: str, words: tuple[int, ...]) -> "Buffers":
        """See :class:`gluon.transports.table.Transport`. Collective."""
        if self._combining:
            self.end_step()
        with span("buffers", WAIT):
            found = self._transport.buffers(direction, words)
        self._step = span("extract", SYNC, self._finish).__enter__()
        return found

    def exchange(
        self, out: "Buffers", out_words: Sequence[int], into: "Buffers", in_words: Sequence[int] | None = None
    ) -> Sequence[int]:
        """See :class:`gluon.transports.table.Transport`. Collective."""
        self.end_step()
        with span("exchange", WAIT, self._finish):
            arrived = self._transport.exchange(out, out_words, into, in_words)
        self._step, self._combining = span("combine", SYNC, self._finish).__enter__(), True
        return arrived

    def combine(self, how: int, *numbers: Any) -> tuple:
        """See :class:`gluon.transports.table.Transport`. Collective."""
        with span(NAMES[how], WAIT):
            return self._transport.combine(how, *numbers)

    def end_step(self) -> None:
        """What was done since the last call of this transport has come to its end."""
        if self._step is not None:
            self._step.__exit__()
            self._step, self._combining = None, False
