"""Exchanges of labels while a timeline runs: a span for each step of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cusp.runtime import timeline
from cusp.runtime.devices import finisher
from cusp.runtime.timeline import SYNC, WAIT, now
from gluon.exchange import Exchange
from gluon.transports.numbers import HIGHEST, LOWEST, SUM

if TYPE_CHECKING:
    from gluon.label import Label
    from gluon.plan import Lists
    from gluon.transports import Transport
    from gluon.transports.memory import Buffers

NAMES = {SUM: "total", LOWEST: "lowest", HIGHEST: "highest"}


class TracedExchange(Exchange):
    """An exchange in a span ``reduce`` or ``broadcast``; its steps are spans inside."""

    def __init__(self, transport: "Transport", device: str) -> None:
        self._traced = TracedTransport(transport, device)
        super().__init__(self._traced, device)

    def __call__(self, kind: str, labels: "tuple[Label, ...]", lists: "Lists", implied: float | None) -> list[int]:
        begin = now()
        sent = super().__call__(kind, labels, lists, implied)
        self._traced.end_step()
        if running := timeline.running():
            running.add(kind, SYNC, begin, now(), {"messages": len(sent), "bytes": sum(sent)})
        return sent


class TracedTransport:
    """A transport with spans for what it does, and for what is done between its calls.

    Whoever exchanges labels asks for buffers, extracts into them, exchanges, and combines: so between buffers and
    exchange is ``extract``, and after the exchange ``combine``.
    """

    def __init__(self, transport: "Transport", device: str) -> None:
        self._transport, self._finish, self.name = transport, finisher(device), transport.name
        self._step, self._begin = "", 0  # what is done now between two calls, and since when

    @staticmethod
    def why_unusable(comm: Any) -> str | None:
        """None: it is in use."""
        return None

    def buffers(self, out_words: tuple[int, ...], in_words: tuple[int, ...]) -> "tuple[Buffers, Buffers]":
        """See :class:`gluon.transports.table.Transport`. Collective."""
        buffers = self._transport.buffers
        found: tuple[Buffers, Buffers] = timeline.call("buffers", WAIT, None, buffers, out_words, in_words)
        self._step, self._begin = "extract", now()
        return found

    def exchange(
        self, out: "Buffers", out_words: Sequence[int], into: "Buffers", in_words: Sequence[int] | None = None
    ) -> Sequence[int]:
        """See :class:`gluon.transports.table.Transport`. Collective."""
        self.end_step()
        exchange = self._transport.exchange
        arrived: Sequence[int] = timeline.call("exchange", WAIT, self._finish, exchange, out, out_words, into, in_words)
        self._step, self._begin = "combine", now()
        return arrived

    def combine(self, how: int, *numbers: Any) -> tuple:
        """See :class:`gluon.transports.table.Transport`. Collective."""
        result: tuple = timeline.call(NAMES[how], WAIT, None, self._transport.combine, how, *numbers)
        return result

    def end_step(self) -> None:
        """What was done since the last call of this transport has come to its end."""
        if self._step and (running := timeline.running()):
            if self._finish:
                self._finish()
            running.add(self._step, SYNC, self._begin, now())
        self._step = ""
