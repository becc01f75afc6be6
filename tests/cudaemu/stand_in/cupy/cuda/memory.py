"""Memory of the imagined devices: how much is in use, pointers to it, pools, and page-locked memory of the host."""

import ctypes
import os
from collections import Counter
from itertools import chain

import numpy as np

from cupy.cuda import runtime

TOTAL = int(os.environ.get("CUDAEMU_MEMORY") or 8 << 30)


class OutOfMemoryError(MemoryError):
    """The arrays on a device are larger than its pool may be."""


class BaseMemory:
    """``size`` bytes at ``ptr``."""

    def __init__(self, ptr, size, owner=None):
        self.ptr, self.size, self._owner, self.device_id = ptr, size, owner, runtime.getDevice()

    def __int__(self):
        return self.ptr

    @property
    def device(self):
        """Where it is."""
        from cupy.cuda.device import Device

        return Device(self.device_id)


class Memory(BaseMemory):
    """Memory that counts as used while it lives."""

    def __init__(self, size, host=None, pool=None):
        pool = pool or _pool
        if pool.limit and pool.used_bytes() + size > pool.limit or pool.used_bytes() + size > TOTAL:
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes (allocated so far: {pool.used_bytes():,}"
                                   f" bytes, limit set to: {pool.limit or TOTAL:,} bytes).")  # fmt: skip
        host = np.full(size, 0xCD, np.uint8) if host is None else host
        super().__init__(host.__array_interface__["data"][0], size, host)
        pool.used[self.device_id] = pool.used_bytes() + size
        self._pool = pool
        register(self.ptr, size)

    def __del__(self):
        if hasattr(self, "_pool"):
            self._pool.used[self.device_id] -= self.size
            unregister(self.ptr, self.size)

    @classmethod
    def of(cls, host):
        """The memory that a NumPy array has."""
        while isinstance(host.base, np.ndarray):
            host = host.base
        return cls(host.nbytes, host)


class UnownedMemory(BaseMemory):
    """Memory that someone else frees."""

    def __init__(self, ptr, size, owner, device_id=-1):
        super().__init__(ptr, size, owner)
        register(ptr, size)

    def __del__(self):
        unregister(self.ptr, self.size)


_known = Counter()  # (address, size) of memory that kernels may use -> how often it was registered
_sorted = np.zeros((0, 2), np.uint64)


def register(ptr, size):
    """Kernels may read and write ``size`` bytes at ``ptr``."""
    global _sorted
    if size:
        _known[ptr, size] += 1
        _sorted = None


def unregister(ptr, size):
    """They may no longer."""
    global _sorted
    if size:
        _known[ptr, size] -= 1
        if not _known[ptr, size]:
            del _known[ptr, size]
        _sorted = None


def ranges():
    """Address and size of everything that kernels may use, ascending: an array of shape (n, 2)."""
    global _sorted
    if _sorted is None:
        pairs = np.fromiter(chain.from_iterable(_known), np.uint64, 2 * len(_known)).reshape(-1, 2)
        _sorted = pairs[np.argsort(pairs[:, 0])]
    return _sorted


def raw_bytes(address, size):
    """The bytes at an address, as an object with the buffer protocol."""
    return (ctypes.c_char * size).from_address(address)


class MemoryPointer:
    """A place in the memory of a device."""

    def __init__(self, mem, offset):
        self.mem, self.ptr = mem, mem.ptr + offset
        self.device_id, self.device = mem.device_id, mem.device

    @classmethod
    def at(cls, address):
        """The place with an address, whose owner lives long enough."""
        return cls(UnownedMemory(address, 0, None), 0)

    def __int__(self):
        return self.ptr

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)

    def __sub__(self, offset):
        return self + -offset

    def copy_from_device(self, src, size):
        """From another place on the device."""
        runtime.memcpy(self.ptr, src.ptr, size, runtime.memcpyDeviceToDevice)

    def copy_from_device_async(self, src, size, stream=None):
        """From another place on the device, in the order of the stream."""
        self.copy_from_device(src, size)

    def copy_from_host(self, mem, size):
        """From an address of the host."""
        runtime.memcpy(self.ptr, getattr(mem, "value", mem), size, runtime.memcpyHostToDevice)

    def copy_from_host_async(self, mem, size, stream=None):
        """From an address of the host, in the order of the stream."""
        self.copy_from_host(mem, size)

    def copy_to_host(self, mem, size):
        """To an address of the host."""
        runtime.memcpy(getattr(mem, "value", mem), self.ptr, size, runtime.memcpyDeviceToHost)

    def copy_to_host_async(self, mem, size, stream=None):
        """To an address of the host; it is there when the stream was synchronized."""
        pointer = stream.ptr if stream is not None else 0
        runtime.memcpyAsync(getattr(mem, "value", mem), self.ptr, size, runtime.memcpyDeviceToHost, pointer)

    def memset(self, value, size):
        """Set bytes."""
        runtime.memset(self.ptr, value, size)

    def memset_async(self, value, size, stream=None):
        """Set bytes, in the order of the stream."""
        self.memset(value, size)


class MemoryPool:
    """Counts what arrays use; nothing is kept for later."""

    def __init__(self, allocator=None):
        self.used, self.limit = {}, 0

    def malloc(self, size):
        """New memory."""
        return MemoryPointer(Memory(size, pool=self), 0)

    def used_bytes(self):
        """Bytes of living arrays on the current device."""
        return self.used.get(runtime.getDevice(), 0)

    def total_bytes(self):
        """The same: nothing is kept."""
        return self.used_bytes()

    def free_bytes(self):
        """Kept bytes: none."""
        return 0

    def n_free_blocks(self):
        """Kept blocks: none."""
        return 0

    def free_all_blocks(self, stream=None):
        """Nothing to free."""

    def set_limit(self, size=None, fraction=None):
        """Raise an OutOfMemoryError beyond this many bytes."""
        self.limit = int(fraction * TOTAL) if size is None else size

    def get_limit(self):
        """The limit; 0 means none."""
        return self.limit


def alloc(size):
    """Memory on the current device."""
    return get_allocator()(size)


def placed(host):
    """What a function returned, and its memory: of a pool, or where a program's own allocator wants it."""
    if _own is None:
        return host, Memory.of(host)
    pointer, fortran = _own(host.nbytes), host.flags.f_contiguous and not host.flags.c_contiguous
    copy = np.ndarray(host.shape, host.dtype, raw_bytes(pointer.ptr, host.nbytes), order="F" if fortran else "C")
    copy[...] = host
    return copy, pointer.mem


def set_allocator(allocator=None):
    """Take memory from the pool whose ``malloc`` this is, or as a function says; None: from a new pool."""
    global _pool, _own
    pool = getattr(allocator, "__self__", None)
    if allocator is None or isinstance(pool, MemoryPool):
        _pool, _own = pool or MemoryPool(), None
    else:
        _own = allocator


def get_allocator():
    """The function that gives memory."""
    return _own or _pool.malloc


def get_pool():
    """The pool in use."""
    return _pool


_pool = MemoryPool()
_own = None  # a program's own allocator
