"""Wall-clock seconds of named stretches of work, and of what is done from time to time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cusp.runtime import timeline, watchdog


class Stopwatch:
    """Adds up seconds by name: ``with watch("read"): ...``; the sums are in ``watch.seconds``.

    ``tell`` is called with the name whenever a stretch begins. A timeline that runs gets a span for each.

    >>> watch = Stopwatch(print)
    >>> with watch("read"):
    ...     pass
    read
    >>> list(watch.seconds)
    ['read']
    """

    def __init__(self, tell: Callable[[str], None] = lambda name: None) -> None:
        self.seconds: dict[str, float] = {}
        self.tell = tell

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self.tell(name)
        watchdog.phase(name)
        begin = time.perf_counter()
        try:
            with timeline.phase(name):
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin


class Interval:
    """Whether so many seconds have passed since it was made, or restarted."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.restart()

    def restart(self) -> None:
        """Begin anew."""
        self._began = time.perf_counter()

    def passed(self) -> bool:
        """Whether they have."""
        return time.perf_counter() - self._began >= self._seconds
