"""The GPU of a rank: whether one can be used, and which one; long kernels, and what is urgent beside them."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy as cp

_TAKEN: list[int] = []  # the GPU of this process, once it has one


def why_unusable() -> str | None:
    """None if a kernel runs on a GPU here, else the reason why not, for people."""
    runtime = cp.cuda.runtime
    try:
        if runtime.getDeviceCount() == 0:
            return "no GPU is visible (CUDA_VISIBLE_DEVICES?)"
    except runtime.CUDARuntimeError as error:
        return f"no CUDA device can be used: {error}"
    try:
        cp.cuda.nvrtc.getVersion()
    except Exception as error:
        return f"NVRTC is missing ({type(error).__name__}): pip install 'cusp-gluon[gpu-cuda12]' or [gpu-cuda13]"
    try:
        if int(cp.cuda.Device().compute_capability) < 80:
            return f"the GPU has compute capability {cp.cuda.Device().compute_capability}, at least 80 is needed"
        done = cp.zeros(1, cp.int32)
        cp.RawKernel('extern "C" __global__ void probe(int* done) { *done = 1; }', "probe")((1,), (1,), (done,))
        return None if int(done[0]) == 1 else "a test kernel gave a wrong answer"
    except Exception as error:
        return f"a test kernel failed: {type(error).__name__}: {error}"


def use(number: int) -> str:
    """Make the GPU ``number`` (modulo how many there are) this process's own; returns its bus and name.

    Of several calls, the first decides: kernels that are loaded, and memory that is kept, are on that GPU.
    """
    if not _TAKEN:
        _TAKEN.append(number % cp.cuda.runtime.getDeviceCount())
    device = cp.cuda.Device(_TAKEN[0])
    device.use()
    name = cp.cuda.runtime.getDeviceProperties(device.id)["name"].decode()
    return f"{device.pci_bus_id} {name}"


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
