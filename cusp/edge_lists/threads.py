"""Threads over kernels that release Python's lock: how many this rank may use, and a map that keeps order."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def num_local_ranks() -> int:
    """Ranks of this job on this computer, as the launcher (MPICH's hydra or Open MPI) tells."""
    for name in ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"):
        if name in os.environ:
            return max(1, int(os.environ[name]))
    return 1


def num_threads() -> int:
    """Threads for this rank: its share of the cores that the process may use, at least one."""
    return max(1, len(os.sched_getaffinity(0)) // num_local_ranks())


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None
) -> Iterator[Result]:
    """Yield ``function(item)`` in the order of the items.

    At most ``threads + 1`` results are under way or waiting. The calling thread consumes ``items``; the
    first exception of a call is raised to it.
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
