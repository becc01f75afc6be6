"""What this rank does when: spans of time, kept while a timeline runs, which ``--trace`` asks for; else nothing is."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

now = time.perf_counter_ns  # on Linux CLOCK_MONOTONIC: the same for all processes of a host
PHASE, ROUND, OPERATOR, SYNC, WAIT, COMPILE = "phase", "round", "operator", "sync", "wait", "compile"  # kinds of spans


class Span:
    """A stretch of time, as a context; it is kept when it ends.

    Attributes
    ----------
    name, kind : str
    begin, end : int
        Nanoseconds on the clock of this host (CLOCK_MONOTONIC).
    waited : int
        Nanoseconds of it in which the main thread waited for other ranks.
    thread : int
    facts : dict
        Numbers and texts to show with it.
    """

    __slots__ = ("name", "kind", "begin", "end", "waited", "thread", "facts", "_timeline", "_finish")

    def __init__(
        self, timeline: "Timeline", name: str, kind: str, finish: Callable[[], object] | None, facts: dict[str, Any]
    ) -> None:
        self.name, self.kind, self.facts, self._timeline, self._finish = name, kind, facts, timeline, finish
        self.begin = self.end = self.waited = 0
        self.thread = get_ident()

    def __enter__(self) -> "Span":
        timeline = self._timeline
        if self.kind is WAIT:
            timeline.waits += 1
        self.waited = timeline.waited
        self.begin = now()
        if self.kind is PHASE:
            timeline.round_began, timeline.rounds = self.begin, 0
        return self

    def __exit__(self, *error: object) -> None:
        if self._finish:
            self._finish()
        self.end = now()
        timeline = self._timeline
        if self.kind is WAIT:
            timeline.waits -= 1
            if timeline.waits == 0:  # a wait inside a wait counts once
                timeline.waited += self.end - self.begin
        self.waited = timeline.waited - self.waited
        timeline.keep(self)

    def tell(self, **facts: Any) -> None:
        """Add facts, also after the end."""
        self.facts.update(facts)


class Nothing:
    """What takes the place of a span while no timeline runs."""

    def __enter__(self) -> "Nothing":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def tell(self, **facts: Any) -> None:
        """Forget them."""


class Timeline:
    """The spans of this rank.

    Attributes
    ----------
    spans : list of Span
        In the order in which they ended.
    left_out : int
        Spans that ended when there were as many as are kept.
    main : int
        The thread that made this object.
    waited : int
        Nanoseconds in which that thread has waited for other ranks.
    waits : int
        Waits that it is in, one inside the other.
    round_began, rounds : int
        Where the next round begins, and how many there were since the phase began.
    """

    def __init__(self, most: int) -> None:
        self.spans: list[Span] = []
        self.most, self.left_out, self.main = most, 0, get_ident()
        self.waited = self.waits = self.rounds = 0
        self.round_began = now()

    def keep(self, span: Span) -> None:
        """Keep a span; if there are too many, only a phase."""
        if len(self.spans) < self.most or span.kind is PHASE:
            self.spans.append(span)
        else:
            self.left_out += 1

    def end_round(self, **facts: Any) -> None:
        """A round ends now that began with the phase, or where the one before ended."""
        self.rounds += 1
        span = Span(self, f"round {self.rounds}", ROUND, None, facts)
        span.begin, span.end = self.round_began, now()
        self.round_began = span.end
        self.keep(span)

    def tell_last(self, kind: str, **facts: Any) -> None:
        """Add facts to the last span of a kind that has ended."""
        for span in reversed(self.spans):
            if span.kind == kind:
                return span.tell(**facts)


class _Running:
    timeline: Timeline | None = None


_NOTHING = Nothing()


def running() -> Timeline | None:
    """The timeline that runs, if one does."""
    return _Running.timeline


def span(name: str, kind: str, finish: Callable[[], object] | None = None, **facts: Any) -> Span | Nothing:
    """A context: the time that its block takes becomes a span of the timeline, if one runs.

    Parameters
    ----------
    name : str
    kind : PHASE, OPERATOR, SYNC, WAIT or COMPILE
        A span of a kind lies inside those around it; waits are added up.
    finish : function, optional
        Is called before the clock is read at the end: it waits until the device has done what it was asked for.
    facts
        Numbers and texts to show with it.
    """
    timeline = _Running.timeline
    return _NOTHING if timeline is None else Span(timeline, name, kind, finish, facts)


@contextmanager
def keeping(most: int) -> Iterator[Timeline]:
    """Run a timeline of at most so many spans; while numba compiles functions, these are spans too."""
    from numba.core import event

    class Compiling(event.Listener):  # type: ignore[misc]
        def __init__(self) -> None:
            self.begun: list[Span | Nothing] = []

        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            self.begun.append(span(f"compile {function.__name__}", COMPILE, module=function.__module__).__enter__())

        def on_end(self, event: Any) -> None:
            self.begun.pop().__exit__()

    compiling = Compiling()
    timeline = _Running.timeline = Timeline(most)
    event.register("numba:compile", compiling)
    try:
        yield timeline
    finally:
        event.unregister("numba:compile", compiling)
        _Running.timeline = None


class Watched:
    """A module whose functions leave spans with their names; everything else in it is as it was."""

    def __init__(self, module: Any, kind: str, finish: Callable[[], object] | None) -> None:
        self._module, self._kind, self._finish = module, kind, finish

    def __getattr__(self, name: str) -> Any:
        value, kind, finish = getattr(self._module, name), self._kind, self._finish
        if not callable(value) or isinstance(value, type):
            return value

        def call(*arguments: Any, **named: Any) -> Any:
            if _Running.timeline is None:  # somebody has kept this function for longer
                return value(*arguments, **named)
            with span(name, kind, finish):
                return value(*arguments, **named)

        setattr(self, name, call)
        return call
