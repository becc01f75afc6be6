"""Wall-clock seconds of named stretches of work."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Adds up seconds by name: ``with watch("read"): ...``; the sums stand in ``watch.seconds``."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin
