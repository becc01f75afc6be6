"""Page-locked memory of the host: ordinary memory here, longer than asked for, as CuPy's is."""

import ctypes
import weakref

from cupy.cuda.memory import register, unregister

UNIT = 512


class PinnedMemoryPointer:
    """What :func:`alloc_pinned_memory` returns: an object with the buffer protocol and ``ptr``."""

    @property
    def ptr(self):
        """Its address."""
        return ctypes.addressof(self)

    @property
    def mem(self):
        """The memory itself."""
        return self

    def __int__(self):
        return self.ptr

    def size(self):
        """Bytes."""
        return ctypes.sizeof(self)


def alloc_pinned_memory(size):
    """Memory of at least ``size`` bytes that nobody wrote yet."""
    rounded = max(1, -(-size // UNIT)) * UNIT
    memory = type("PinnedMemoryPointer", (ctypes.c_char * rounded, PinnedMemoryPointer), {})()
    ctypes.memset(memory, 0xCD, rounded)
    register(memory.ptr, rounded)
    weakref.finalize(memory, unregister, memory.ptr, rounded)
    return memory


def set_pinned_memory_allocator(allocator=None):
    """Without effect."""


class PinnedMemoryPool:
    """Keeps nothing."""

    def __init__(self, allocator=alloc_pinned_memory):
        self._allocator = allocator

    def malloc(self, size):
        """New memory."""
        return self._allocator(size)

    def n_free_blocks(self):
        """Kept blocks: none."""
        return 0

    def free_all_blocks(self):
        """Nothing to free."""


class PinnedMemory:
    """Only its name is used."""
