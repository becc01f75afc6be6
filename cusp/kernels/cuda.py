"""Kernels from .cuh files, compiled by NVRTC when first called, and what they are given.

CuPy keeps what NVRTC compiled on disk (``CUPY_CACHE_DIR``), keyed by source, options, architecture and versions.
Kernels take ``long long`` for every whole number, so that a Python int is always right.
"""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cupy as cp
import cupyx
import numpy as np

from cusp.errors import ROOT

RUN = 1024  # edges per warp of for_each_edge_in in walk.cuh
BLOCK = 256  # threads of a block, unless a kernel says otherwise
C_TYPES = {
    "b1": "bool", "i1": "signed char", "u1": "unsigned char", "i2": "short", "u2": "unsigned short", "i4": "int",
    "u4": "unsigned", "i8": "long long", "u8": "unsigned long long", "f4": "float", "f8": "double",
}  # fmt: skip
# Of NVRTC, which takes a lambda with ``auto`` for one of the host unless all functions are the device's.
OPTIONS = ("--std=c++17", "-default-device")
INCLUDE = re.compile(r'^#include "(.+)"$')


def c_type(dtype: Any) -> str:
    """C's name of a number type."""
    return C_TYPES[np.dtype(dtype).str[1:]]


def source(path: str, more: str = "", **defines: str) -> str:
    """Text of a .cuh file, by its path from the folder above ``cusp``, with what it includes; errors name the lines.

    ``defines`` are macros, mostly the types that a file of kernels is made for. They are no options of NVRTC: CuPy
    compiles an empty file, for 20 ms, whenever it sees options for the first time in a process.
    """
    macros = (f"#define {name} {value}" for name, value in sorted(defines.items()))
    return "\n".join([*macros, *_lines(ROOT / path, set())]) + more


def _lines(path: Path, seen: set[Path]) -> Iterator[str]:
    seen.add(path)
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    yield f'#line 1 "{name}"'
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            yield line
        elif ROOT / match[1] not in seen:
            yield from _lines(ROOT / match[1], seen)
            yield f'#line {number + 1} "{name}"'


class Kernels:
    """The kernels of one .cuh file for one choice of types: ``kernels.name(threads, *arguments)``.

    Arguments are device arrays, Python's ints for ``long long``, NumPy scalars for other numbers, and :func:`struct`.
    """

    def __init__(self, path: str, more: str = "", **defines: str) -> None:
        self._module = cp.RawModule(
            code=source(path, more, **defines), options=OPTIONS, backend="nvrtc",
            enable_cooperative_groups="RESIDENT" in defines,
        )  # fmt: skip
        self._path, self._more, self._defines = path, more, defines
        self._resident: dict[tuple[str, int], Any] = {}

    def __getattr__(self, name: str) -> Any:
        function = self._module.get_function(name)

        def launch(threads: int, *arguments: Any, block: int = BLOCK) -> None:
            if threads > 0:
                function((-(-int(threads) // block),), (block,), arguments)

        setattr(self, name, launch)
        return launch

    def resident(self, name: str, each: int = 2, block: int = 512) -> Any:
        """A kernel whose blocks all run at the same time, so that they can wait for each other.

        It is launched with ``each`` blocks of ``block`` threads per multiprocessor, a number for which it is compiled
        as the macro ``RESIDENT``: two, or one, where waiting for each other takes longer than the work of a step. A
        call may ask for fewer blocks, ``at_most`` so many.
        """
        if (name, each) not in self._resident:
            module = load(self._path, self._more, **self._defines, RESIDENT=str(each))._module
            function, blocks = module.get_function(name), each * multiprocessors(cp.cuda.Device().id)

            def launch(*arguments: Any, at_most: int = blocks) -> None:
                function((min(blocks, at_most),), (block,), arguments)

            self._resident[name, each] = launch
        return self._resident[name, each]


@functools.cache
def load(path: str, more: str = "", **defines: str) -> Kernels:
    """Kernels of a .cuh file, with more text behind it, made for these types; compiled when first called."""
    return Kernels(path, more, **defines)


@functools.cache
def multiprocessors(device: int) -> int:
    """Number of multiprocessors of a GPU."""
    return int(cp.cuda.Device(device).attributes["MultiProcessorCount"])


def many_threads() -> int:
    """Threads that fill the GPU, for kernels whose warps share all the work among themselves."""
    return 2048 * multiprocessors(cp.cuda.runtime.getDevice())


def threads_for_edges(edges: int) -> int:
    """Threads of a kernel that goes through edges with ``for_each_edge_in`` of walk.cuh."""
    return 32 * -(-edges // RUN)


def threads_for_rows(offsets: cp.ndarray) -> int:
    """Threads of such a kernel for the rows of some offsets."""
    return threads_for_edges(int(offsets[-1]) - int(offsets[0]))


def bincount(places: cp.ndarray, size: int, weights: cp.ndarray | None = None) -> cp.ndarray:
    """(size,) int64: how often each place stands in a list, or the sums of its weights as float64.

    ``cp.bincount`` looks for numbers below 0 first, by a reduction that compiles for four seconds.
    """
    sums = cp.zeros(size, np.uint64 if weights is None else np.float64)
    cupyx.scatter_add(sums, places, np.uint64(1) if weights is None else weights)
    return sums.view(np.int64) if weights is None else sums


class Struct(np.ndarray):
    """A struct that a kernel takes by value: one element, which CuPy copies. It keeps the arrays to which it points."""

    members: tuple[Any, ...]


def struct(*members: Any) -> Struct:
    """A struct of 64-bit members: device arrays are pointers (None: a null pointer), Python's ints ``long long``, and
    structs stand for their members.

    Raises
    ------
    ValueError
        An array is not contiguous.
    """
    if not all(member.flags.c_contiguous for member in members if isinstance(member, cp.ndarray)):
        raise ValueError("a kernel sees the memory of an array, not its strides")
    words: list[int] = []
    for member in members:
        if isinstance(member, Struct):
            words += np.asarray(member).view(np.int64).tolist()
        else:
            words.append(member.data.ptr if isinstance(member, cp.ndarray) else int(member or 0))
    result = np.array(words, np.int64).view(f"V{8 * len(words)}").view(Struct)
    result.members = members
    return result


def pinned(shape: int, dtype: Any) -> np.ndarray:
    """Page-locked memory of the host, which a GPU copies to and from at full speed."""
    dtype = np.dtype(dtype)
    memory = cp.cuda.alloc_pinned_memory(max(shape, 1) * dtype.itemsize)
    return np.frombuffer(memory, dtype, shape)


class Sums:
    """Counters that kernels add to, and what the last block of a kernel publishes to the host: see warp.cuh.

    It writes into page-locked memory, so the host waits once, and neither a copy nor a clearing is launched.

    Attributes
    ----------
    counters : (size + 1,) uint64, on the device
        Zero whenever no kernel runs; the last one counts blocks.
    address : int
        Of the host's memory, for kernels.
    """

    def __init__(self, size: int) -> None:
        self.counters = cp.zeros(size + 1, np.uint64)
        self._published = pinned(size, np.uint64)
        self.address = self._published.ctypes.data

    def read(self) -> list[int]:
        """What was published last. Waits for all work before it."""
        cp.cuda.get_current_stream().synchronize()
        return self._published.tolist()


@functools.cache
def sums_of(size: int) -> Sums:
    """Counters for kernels whose sums are read before the next one is launched."""
    return Sums(size)
