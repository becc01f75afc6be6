"""CUDA's runtime: the devices there are, and copies by address. ``CUDAEMU_DEVICES`` says how many devices."""

import ctypes
import mmap
import os
import threading

MULTIPROCESSORS = int(os.environ.get("CUDAEMU_MULTIPROCESSORS") or 2)
memcpyHostToHost, memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice, memcpyDefault = range(5)  # noqa: N816
streamDefault, streamNonBlocking, streamLegacy = 0, 1, 1  # noqa: N816
deviceAttributeComputeCapabilityMajor, deviceAttributeComputeCapabilityMinor = 75, 76  # noqa: N816
deviceAttributeMultiProcessorCount, deviceAttributeCooperativeLaunch = 16, 95  # noqa: N816
deviceAttributeClockRate = 13  # noqa: N816
is_hip = False
kernels = {}  # address of a compiled kernel -> the kernel
_current = threading.local()


class CUDARuntimeError(RuntimeError):
    """What CUDA's runtime would return as an error, or an error inside a kernel."""

    def __init__(self, message, status=999):
        super().__init__(message)
        self.status = status


def getDeviceCount():  # noqa: N802
    """Number of devices."""
    count = int(os.environ.get("CUDAEMU_DEVICES") or 1)
    if count < 0:
        raise CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient", 35)
    return count


def getDevice():  # noqa: N802
    """The current device of this thread."""
    return getattr(_current, "device", 0)


def setDevice(device):  # noqa: N802
    """Make a device the current one of this thread."""
    if not 0 <= device < getDeviceCount():
        raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal", 101)
    _current.device = device


def getDeviceProperties(device):  # noqa: N802
    """A few of the properties of a device."""
    return {
        "name": b"imitated GPU", "multiProcessorCount": MULTIPROCESSORS, "major": 9, "minor": 0, "warpSize": 32,
        "maxThreadsPerBlock": 1024, "sharedMemPerBlock": 48 << 10, "sharedMemPerBlockOptin": 227 << 10,
        "maxThreadsPerMultiProcessor": 2048, "totalGlobalMem": memory_total(), "l2CacheSize": 50 << 20,
        "cooperativeLaunch": 1, "pciBusID": device, "pciDeviceID": 0, "pciDomainID": 0, "uuid": bytes([device] * 16),
    }  # fmt: skip


def deviceGetAttribute(attribute, device):  # noqa: N802
    """One attribute of a device, of the few there are."""
    return {75: 9, 76: 0, 16: MULTIPROCESSORS, 95: 1}[attribute]


def memory_total():
    """Bytes of memory of each device."""
    from cupy.cuda import memory

    return memory.TOTAL


def memGetInfo():  # noqa: N802
    """Free and all bytes of the current device."""
    from cupy.cuda import memory

    return memory.TOTAL - memory.get_pool().used_bytes(), memory.TOTAL


def driverGetVersion():  # noqa: N802
    """CUDA's version as the driver says it."""
    return 12090


def runtimeGetVersion():  # noqa: N802
    """CUDA's version as the runtime says it."""
    return 12090


def deviceSynchronize():  # noqa: N802
    """Wait for all streams."""
    from cupy.cuda.stream import synchronize_all

    synchronize_all()


def streamSynchronize(stream):  # noqa: N802
    """Wait for a stream."""
    from cupy.cuda.stream import at

    at(stream).synchronize()


def memcpy(dst, src, size, kind):
    """Copy bytes, now: the null stream is waited for."""
    deviceSynchronize()
    ctypes.memmove(dst, src, size)


def memcpyAsync(dst, src, size, kind, stream):  # noqa: N802
    """Copy bytes in the order of a stream; on the host they arrive when the stream is synchronized."""
    from cupy.cuda import stream as streams

    if kind == memcpyDeviceToHost:
        streams.at(stream).write_bytes_later(dst, src, size)
    else:
        ctypes.memmove(dst, src, size)


def memset(ptr, value, size):
    """Set bytes."""
    ctypes.memset(ptr, value, size)


def memsetAsync(ptr, value, size, stream):  # noqa: N802
    """Set bytes in the order of a stream."""
    ctypes.memset(ptr, value, size)


_allocated = {}  # address -> the buffer, the file that it maps, if any
_opened = {}


def malloc(size):
    """Address of new memory that :func:`free` gives back; other processes can map it."""
    file = os.memfd_create("cudaemu")
    os.truncate(file, max(size, 1))
    return _map(file, size, _allocated, b"\xcd")


def _map(file, size, known, fill=None):
    from cupy.cuda import memory

    buffer = mmap.mmap(file, max(size, 1))
    if fill:
        buffer.write(fill * size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    known[address] = buffer, file, size
    memory.register(address, size)
    return address


def free(ptr):
    """Give back what :func:`malloc` gave."""
    _unmap(ptr, _allocated)


def _unmap(ptr, known):
    from cupy.cuda import memory

    if ptr in known:
        _, file, size = known.pop(ptr)  # the memory goes when nothing refers to it any more
        os.close(file)
        memory.unregister(ptr, size)
    elif ptr:
        raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument", 1)


def ipcGetMemHandle(ptr):  # noqa: N802
    """64 bytes by which another process finds what :func:`malloc` gave."""
    if ptr not in _allocated:
        raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument", 1)
    _, file, size = _allocated[ptr]
    return f"/proc/{os.getpid()}/fd/{file} {size}".encode().ljust(64, b"\0")


def ipcOpenMemHandle(handle, flags=1):  # noqa: N802
    """Address in this process of memory of another process."""
    path, size = handle.rstrip(b"\0").decode().split()
    if path.startswith(f"/proc/{os.getpid()}/"):
        raise CUDARuntimeError("cudaErrorDeviceUninitialized: invalid device context", 201)
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle", 400) from None
    return _map(file, int(size), _opened)


def ipcCloseMemHandle(ptr):  # noqa: N802
    """Forget memory of another process."""
    _unmap(ptr, _opened)


def deviceCanAccessPeer(device, peer):  # noqa: N802
    """Whether two devices can read each other's memory: all can."""
    return int(device != peer)


def profilerStart():  # noqa: N802
    """Without effect."""


def profilerStop():  # noqa: N802
    """Without effect."""
