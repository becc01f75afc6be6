"""Threads over kernels that release Python's lock: how many this rank may use, and a map that keeps the order."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from cusp.runtime.environment import local_ranks

Item = TypeVar("Item")
Result = TypeVar("Result")


def num_threads() -> int:
    """Threads for this rank: its share of the cores that the process may use, at least one."""
    return max(1, len(os.sched_getaffinity(0)) // local_ranks())


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None
) -> Iterator[Result]:
    """Yield ``function(item)`` in the order of the items.

    At most ``threads + 1`` results are in progress or waiting. The calling thread consumes ``items`` and gets
    the first exception of a call.
    """
    threads = threads or num_threads()
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
