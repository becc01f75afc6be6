"""Virtual memory management of CUDA's driver: ranges of addresses, and the memory behind each piece of them.

A kernel reads an array through one pointer, wherever its pieces are: on the card, or in page-locked memory of the host,
from where they come over the link. CUDA C++ Programming Guide, "Virtual Memory Management". CuPy has no functions for
it, so they are called through ctypes.
"""

import ctypes
import functools
from typing import Any

import cupy as cp

PINNED, CARD, HOST = 1, 1, 3  # CUmemAllocationType, CUmemLocationType: device; a NUMA node of the host
READ_WRITE = 3
OUT_OF_MEMORY = 2
Number, Size = ctypes.c_ulonglong, ctypes.c_size_t


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", _Location), ("security", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )  # fmt: skip


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class DriverError(RuntimeError):
    """The driver refused a call.

    Attributes
    ----------
    out_of_memory : bool
    """

    def __init__(self, name: str, code: int) -> None:
        text = ctypes.c_char_p()
        _library().cuGetErrorString(code, ctypes.byref(text))
        super().__init__(f"{name}: {(text.value or b'error').decode()} ({code})")
        self.out_of_memory = code == OUT_OF_MEMORY


@functools.cache
def _library() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _call(name: str, *arguments: Any) -> None:
    code = getattr(_library(), name)(*arguments)
    if code:
        raise DriverError(name, code)


def _location(place: int) -> _Location:
    return _Location(place, cp.cuda.runtime.getDevice() if place == CARD else 0)


def _properties(place: int) -> Any:
    return ctypes.byref(_Properties(PINNED, 0, _location(place)))


@functools.cache
def granularity() -> int:
    """Bytes of which the size of all pieces is a multiple."""
    found = []
    for place in (CARD, HOST):
        size = Size()
        _call("cuMemGetAllocationGranularity", ctypes.byref(size), _properties(place), 1)
        found.append(size.value)
    return max(found)


def reserve(size: int) -> int:
    """The first of ``size`` addresses that nothing else uses."""
    address = Number()
    _call("cuMemAddressReserve", ctypes.byref(address), Size(size), Size(0), Number(0), Number(0))
    return address.value


def release(address: int, size: int) -> None:
    """Give back what :func:`reserve` gave."""
    _call("cuMemAddressFree", Number(address), Size(size))


def create(place: int, size: int) -> int:
    """New memory: its handle."""
    handle = Number()
    _call("cuMemCreate", ctypes.byref(handle), Size(size), _properties(place), Number(0))
    return handle.value


def drop(handle: int) -> None:
    """Give back memory that is mapped nowhere."""
    _call("cuMemRelease", Number(handle))


def show(address: int, size: int, handle: int) -> None:
    """From now on, these addresses mean this memory, for kernels and copies of the current device."""
    _call("cuMemMap", Number(address), Size(size), Size(0), Number(handle), Number(0))
    access = _Access(_location(CARD), READ_WRITE)
    _call("cuMemSetAccess", Number(address), Size(size), ctypes.byref(access), Size(1))


def hide(address: int, size: int) -> None:
    """From now on, they mean nothing."""
    _call("cuMemUnmap", Number(address), Size(size))


def why_not() -> str | None:
    """None if all of this works here, else the reason why not."""
    try:
        drop(create(HOST, granularity()))
    except (OSError, AttributeError, DriverError) as error:
        return str(error)
    return None
