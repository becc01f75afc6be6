"""Work on the GPU that goes on beside other work: long kernels, and what is urgent meanwhile."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy as cp


@functools.cache
def _stream(device: int, priority: int) -> Any:
    """A lower number goes first; 0 is the last."""
    return cp.cuda.Stream(non_blocking=True, priority=priority)


@contextmanager
def urgent() -> Iterator[None]:
    """What is launched in this block goes before what runs :func:`beside` it. It begins after all that was launched on
    the current stream, and what is launched there later begins after it.
    """
    current, stream = cp.cuda.get_current_stream(), _stream(cp.cuda.Device().id, -1)
    stream.wait_event(current.record())
    try:
        with stream:
            yield
    finally:
        current.wait_event(stream.record())


def beside(launch: Any, threads: int, *arguments: Any) -> Callable[[], None]:
    """Launch a kernel of short blocks, beside which others may run. It begins after what was launched until now.

    Returns
    -------
    callable
        Waits for it, and keeps its arguments until then.
    """
    stream = _stream(cp.cuda.Device().id, 0)
    stream.wait_event(cp.cuda.get_current_stream().record())
    with stream:
        launch(threads, *arguments)
    done, used = stream.record(), [arguments]

    def wait() -> None:
        done.synchronize()
        used.clear()

    return wait
