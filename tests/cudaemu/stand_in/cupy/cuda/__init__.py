"""``cupy.cuda`` of the stand-in."""

from cupy.cuda import compiler, device, driver, memory, nvrtc, pinned_memory, runtime, stream
from cupy.cuda.device import Device, get_device_id
from cupy.cuda.memory import (
    BaseMemory,
    Memory,
    MemoryPointer,
    MemoryPool,
    UnownedMemory,
    alloc,
    get_allocator,
    set_allocator,
)
from cupy.cuda.pinned_memory import (
    PinnedMemory,
    PinnedMemoryPointer,
    PinnedMemoryPool,
    alloc_pinned_memory,
    set_pinned_memory_allocator,
)
from cupy.cuda.stream import Event, ExternalStream, Stream, get_current_stream, get_elapsed_time

__all__ = [
    "BaseMemory", "Device", "Event", "ExternalStream", "Memory", "MemoryPointer", "MemoryPool", "PinnedMemory",
    "PinnedMemoryPointer", "PinnedMemoryPool", "Stream", "UnownedMemory", "alloc", "alloc_pinned_memory", "compiler",
    "device", "driver", "get_allocator", "get_current_stream", "get_device_id", "get_elapsed_time",
    "get_local_runtime_version", "is_available", "memory", "nvrtc", "pinned_memory", "runtime", "set_allocator",
    "set_pinned_memory_allocator", "stream",
]  # fmt: skip


def is_available():
    """Whether there is a device."""
    return runtime.getDeviceCount() > 0


def get_local_runtime_version():
    """CUDA's version."""
    return runtime.runtimeGetVersion()
