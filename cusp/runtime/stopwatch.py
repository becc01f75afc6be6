"""Wall-clock seconds of named stretches of work."""

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
