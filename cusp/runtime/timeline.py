"""Clocks: seconds of stretches of work, and the timeline, named spans of time that are recorded with ``--trace``."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import Any, NamedTuple

from cusp.runtime import watchdog

now = time.perf_counter_ns  # on Linux CLOCK_MONOTONIC: the same for all processes of a host
PHASE, ROUND, OPERATOR, SYNC, WAIT, COMPILE = "phase", "round", "operator", "sync", "wait", "compile"  # kinds of spans
Finish = Callable[[], object] | None


class Span(NamedTuple):
    """A stretch of time.

    Attributes
    ----------
    name, kind : str
    begin, end : int
        Nanoseconds on the clock of this host.
    thread : int
    facts : dict or None
        Numbers and texts to show with it.
    """

    name: str
    kind: str
    begin: int
    end: int
    thread: int
    facts: dict[str, Any] | None


class Timeline:
    """The spans of this rank. On each thread they lie one after the other, or one inside the other.

    Attributes
    ----------
    spans : list of tuple
        Fields of :class:`Span`, in the order in which they ended.
    left_out : int
        Spans that ended when there were as many as are kept.
    main : int
        The thread that made this object.
    waited : int
        Nanoseconds in which that thread has waited for other ranks.
    rounds : int
        Those that have ended since the phase began.
    """

    def __init__(self, most: int) -> None:
        self.spans: list[tuple] = []
        self.most, self.left_out, self.main = most, 0, get_ident()
        self.waited = self.rounds = 0
        self._waiting, self._round_began = False, now()

    def add(self, name: str, kind: str, begin: int, end: int, facts: dict[str, Any] | None = None) -> None:
        """Keep a span; if there are too many, only a phase."""
        if len(self.spans) < self.most or kind is PHASE:
            self.spans.append((name, kind, begin, end, get_ident(), facts))
        else:
            self.left_out += 1

    def call(self, name: str, kind: str, finish: Finish, function: Callable, /, *arguments: Any, **named: Any) -> Any:
        """Call a function; see the function ``call`` of this module."""
        outermost = kind is WAIT and not self._waiting
        if outermost:  # a wait inside a wait counts once
            self._waiting = True
        begin = now()
        try:
            result = function(*arguments, **named)
            if finish:
                finish()
            return result
        finally:
            end = now()
            if outermost:
                self._waiting = False
                self.waited += end - begin
            self.add(name, kind, begin, end)

    def steps(self, finish: Finish) -> Callable[[str, str], None]:
        """A function that ends a step of name and kind, which began now or where the one before ended."""
        began = now()

        def end_step(name: str, kind: str) -> None:
            nonlocal began
            if finish:
                finish()
            begin, began = began, now()
            self.waited += began - begin if kind is WAIT and not self._waiting else 0
            self.add(name, kind, begin, began)

        return end_step

    def begin_phase(self) -> int:
        """Rounds are counted from here on; returns the time."""
        self.rounds, self._round_began = 0, now()
        return self._round_began

    def end_round(self, **facts: Any) -> None:
        """A round ends now that began with the phase, or where the one before ended."""
        self.rounds += 1
        begin, self._round_began = self._round_began, now()
        self.add(f"round {self.rounds}", ROUND, begin, self._round_began, facts)

    def annotate_last(self, kind: str, **facts: Any) -> None:
        """Add facts to the last span of a kind that has ended."""
        for place in reversed(range(len(self.spans))):
            if self.spans[place][1] == kind:
                self.spans[place] = (*self.spans[place][:-1], facts)
                return


class _Running:
    timeline: Timeline | None = None


def running() -> Timeline | None:
    """The timeline that runs, if one does."""
    return _Running.timeline


def call(name: str, kind: str, finish: Finish, function: Callable, /, *arguments: Any, **named: Any) -> Any:
    """Call a function, and return what it returns; the time it takes becomes a span if a timeline runs.

    Parameters
    ----------
    name : str
    kind : OPERATOR, SYNC or WAIT
        Waits are added up.
    finish : function, optional
        Is called before the clock is read at the end: it waits until the device has done what it was asked for.
    """
    if _Running.timeline is None:
        return function(*arguments, **named)
    return _Running.timeline.call(name, kind, finish, function, *arguments, **named)


@contextmanager
def phase(name: str, **facts: Any) -> Iterator[dict[str, Any]]:
    """A phase of the program, also for the watchdog. It gives a dict of facts, to which more may be added, also later.

    The fact ``waited_us`` is for how many microseconds this rank waited for others.
    """
    watchdog.phase(name)
    timeline = _Running.timeline
    if timeline is None:
        yield facts
        return
    waited, begin = timeline.waited, timeline.begin_phase()
    try:
        yield facts
    finally:
        facts["waited_us"] = (timeline.waited - waited) / 1e3
        timeline.add(name, PHASE, begin, now(), facts)


@contextmanager
def keeping(most: int) -> Iterator[Timeline]:
    """Run a timeline of at most so many spans; while numba compiles functions, these are spans too."""
    from numba.core import event

    timeline = _Running.timeline = Timeline(most)

    class Compiling(event.Listener):  # type: ignore[misc]
        def __init__(self) -> None:
            self.begun: list[int] = []

        def on_start(self, event: Any) -> None:
            self.begun.append(now())

        def on_end(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            facts = {"module": function.__module__}
            timeline.add(f"compile {function.__name__}", COMPILE, self.begun.pop(), now(), facts)

    compiling = Compiling()
    event.register("numba:compile", compiling)
    try:
        yield timeline
    finally:
        event.unregister("numba:compile", compiling)
        _Running.timeline = None


class Watched:
    """A module whose functions leave spans with their names; everything else in it is as it was."""

    def __init__(self, module: Any, kind: str, finish: Finish) -> None:
        self._module, self._kind, self._finish = module, kind, finish

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if callable(value) and not isinstance(value, type):
            value = partial(call, name, self._kind, self._finish, value)
            setattr(self, name, value)
        return value


class Stopwatch:
    """Adds up seconds by name: ``with watch("read"): ...``; the sums are in ``watch.seconds``.

    ``announce`` is called with the name whenever a stretch begins. A timeline that runs gets a span for each.

    >>> watch = Stopwatch(print)
    >>> with watch("read"):
    ...     pass
    read
    >>> list(watch.seconds)
    ['read']
    """

    def __init__(self, announce: Callable[[str], None] = lambda name: None) -> None:
        self.seconds: dict[str, float] = {}
        self.announce = announce

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self.announce(name)
        begin = time.perf_counter()
        try:
            with phase(name):
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin
