"""The GPU of a rank: whether one can be used, and which one."""

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
