"""Kernels that can be launched: ``RawModule`` and ``RawKernel``, with the checks that a GPU lacks."""

import ctypes
import os
import threading
import warnings

import numpy as np

from cupy import _build
from cupy._array import ndarray
from cupy.cuda import memory, runtime
from cupy.cuda.driver import CUDADriverError
from cupy.cuda.memory import MemoryPointer

STATIC_LIMIT = 48 << 10  # more dynamic shared memory must be asked for
SHARED_LIMIT = 227 << 10
THREADS_PER_MULTIPROCESSOR = 2048
_one_at_a_time = threading.Lock()


def setting(name, default):
    """A number from the environment."""
    return type(default)(os.environ.get(f"CUDAEMU_{name}") or default)


class _Parameter(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_char),
        ("pointee", ctypes.c_char),
        ("pointee_size", ctypes.c_uint16),
        ("size", ctypes.c_uint32),
    ]


class _Entry(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("num_parameters", ctypes.c_uint32),
        ("max_threads", ctypes.c_uint32),
        ("parameters", ctypes.POINTER(_Parameter)),
        ("call", ctypes.c_void_p),
    ]


class _Launch(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("dynamic_shared", ctypes.c_uint32),
        ("resident_blocks", ctypes.c_uint32),
        ("cooperative", ctypes.c_uint32),
        ("preempt", ctypes.c_uint32),
        ("check", ctypes.c_uint32),
        ("num_ranges", ctypes.c_uint32),
        ("ranges", ctypes.c_void_p),
        ("seed", ctypes.c_uint64),
        ("seconds", ctypes.c_double),
    ]


class RawModule:
    """Kernels of one source, compiled when the first is asked for."""

    def __init__(
        self, *, code=None, path=None, options=(), backend="nvrtc", translate_cucomplex=False,
        enable_cooperative_groups=False, name_expressions=None, jitify=None,
    ):  # fmt: skip
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if path is not None:
            raise NotImplementedError("the stand-in compiles sources; it cannot load cubin or PTX files")
        if not isinstance(options, tuple):
            raise TypeError(f"Argument 'options' has incorrect type (expected tuple, got {type(options).__name__})")
        self.code, self.options, self.backend = code, options, backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.name_expressions = tuple(name_expressions) if name_expressions is not None else None
        self.may_spin = "volatile" in code  # a loop of plain reads that waits for others has to be interrupted
        self._library = None

    def compile(self, log_stream=None):
        """Compile now."""
        if self._library is None:
            self._library = _build.compile_module(self.code, self.options, self.name_expressions or ())
        return self._library

    @property
    def module(self):
        """The compiled library."""
        return self.compile()

    def get_function(self, name):
        """The kernel of this name: ``extern "C"``, or one of the name expressions."""
        table = (_Entry * 4096).in_dll(self.compile(), "cudaemu_kernels")
        for entry in table:
            if entry.name is None:
                raise CUDADriverError(f"CUDA_ERROR_NOT_FOUND: named symbol not found: {name}")
            if entry.name.decode() == name:
                return Kernel(self, entry, name)

    def get_global(self, name):
        """Where a ``__device__`` or ``__constant__`` variable lies."""
        try:
            return MemoryPointer.at(ctypes.addressof(ctypes.c_char.in_dll(self.compile(), name)))
        except ValueError:
            raise CUDADriverError(f"CUDA_ERROR_NOT_FOUND: named symbol not found: {name}") from None


class RawKernel:
    """One kernel of a source, compiled at the first call."""

    def __init__(
        self, code, name, options=(), backend="nvrtc", *, translate_cucomplex=False,
        enable_cooperative_groups=False, jitify=None,
    ):  # fmt: skip
        self._module = RawModule(
            code=code, options=options, backend=backend, enable_cooperative_groups=enable_cooperative_groups
        )
        self.code, self.name, self.__name__, self.options, self.backend = code, name, name, options, backend
        self._kernel = None

    @property
    def kernel(self):
        """The compiled kernel."""
        self._kernel = self._kernel or self._module.get_function(self.name)
        return self._kernel

    def compile(self, log_stream=None):
        """Compile now."""
        assert self.kernel

    def __call__(self, grid, block, args, **kwargs):
        self.kernel(grid, block, args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.kernel, name)

    def __setattr__(self, name, value):
        if name in ("max_dynamic_shared_size_bytes", "preferred_shared_memory_carveout"):
            setattr(self.kernel, name, value)
        else:
            super().__setattr__(name, value)


class Kernel:
    """What ``RawModule.get_function`` returns."""

    def __init__(self, module, entry, name):
        self._module, self._entry, self.name, self.__name__ = module, entry, name, name
        self.enable_cooperative_groups = module.enable_cooperative_groups
        self._parameters = [entry.parameters[i] for i in range(entry.num_parameters)]
        self._max_dynamic = STATIC_LIMIT
        self.preferred_shared_memory_carveout = -1
        self.num_regs, self.local_size_bytes, self.const_size_bytes, self.shared_size_bytes = 32, 0, 0, 0
        self.max_threads_per_block = entry.max_threads or 1024
        self.ptr = ctypes.addressof(entry)
        runtime.kernels[self.ptr] = self

    @property
    def kernel(self):
        """CuPy's handle of the same kernel; it has ``ptr``."""
        return self

    @property
    def max_dynamic_shared_size_bytes(self):
        """The most dynamic shared memory that a launch may ask for; more than 48 KB must be set here first."""
        return self._max_dynamic

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size):
        if not 0 <= size <= SHARED_LIMIT:
            raise CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: {size} bytes of dynamic shared memory")
        self._max_dynamic = size

    def blocks_per_multiprocessor(self, threads, shared_mem):
        """How many blocks of this kernel fit on a multiprocessor."""
        if threads > self.max_threads_per_block:
            return 0
        by_threads = THREADS_PER_MULTIPROCESSOR // (-(-threads // 32) * 32)
        return min(32, by_threads, SHARED_LIMIT // shared_mem if shared_mem else 32)

    def __call__(self, grid, block, args, *, shared_mem=0):
        """Check the launch, run the kernel to its end."""
        grid, block = self._shape("grid", grid), self._shape("block", block)
        threads = block[0] * block[1] * block[2]
        if threads > self.max_threads_per_block or block[2] > 64:
            raise CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: {self.name}: a block of {block} threads;"
                                  f" at most {self.max_threads_per_block} fit")  # fmt: skip
        if grid[0] >= 1 << 31 or max(grid[1:]) >= 1 << 16:
            raise CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: {self.name}: a grid of {grid} blocks")
        if shared_mem > self._max_dynamic:
            raise CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: {self.name}: {shared_mem} bytes of dynamic shared memory;"
                                  f" max_dynamic_shared_size_bytes is {self._max_dynamic}")  # fmt: skip
        resident = self.blocks_per_multiprocessor(threads, shared_mem) * runtime.MULTIPROCESSORS
        if self.enable_cooperative_groups and grid[0] * grid[1] * grid[2] > resident:
            if grid[1:] != (1, 1):
                raise ValueError(f"The specified grid size {grid} exceeds the limit ({resident}).")
            warnings.warn(f"The grid size will be reduced from {grid[0]} to {resident}, as the specified grid size"
                          " exceeds the limit.", stacklevel=2)  # fmt: skip
            grid = (resident, 1, 1)
        ranges = memory.ranges()
        launch = _Launch(
            grid, block, shared_mem, resident, self.enable_cooperative_groups,
            setting("PREEMPT", 1000 * self._module.may_spin), setting("CHECK", 1), len(ranges), ranges.ctypes.data,
            setting("SEED", 0), setting("TIMEOUT", 20.0),
        )  # fmt: skip
        self._run(self._values(args), launch)

    def _run(self, values, launch):
        pointers = (ctypes.c_void_p * (len(values) + 1))(*[value.ctypes.data for value in values])
        run = _build.runtime().cudaemu_run
        run.restype = ctypes.c_char_p
        with _one_at_a_time:
            error = run(ctypes.byref(self._entry), pointers, ctypes.byref(launch))
        if error is not None:
            raise runtime.CUDARuntimeError(f"{self.name}: {_build.with_line(error.decode())}")

    def _shape(self, what, shape):
        if not isinstance(shape, tuple):
            raise TypeError(f"{self.name}: {what} is a tuple of at most three integers, not {shape!r}")
        if any(size < 1 for size in shape):
            raise CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: {self.name}: a {what} of {shape}")
        return (tuple(int(size) for size in shape) + (1, 1))[:3]

    def _values(self, args):
        """The arguments as arrays of one element, each as wide as its parameter."""
        if len(args) != len(self._parameters):
            raise TypeError(f"{self.name} has {len(self._parameters)} parameters, {len(args)} arguments were given")
        return [
            _pointer(value, parameter, f"{self.name}: argument {i}")
            if parameter.kind == b"p"
            else _scalar(value, parameter, f"{self.name}: argument {i}")
            for i, (value, parameter) in enumerate(zip(args, self._parameters))
        ]


KINDS = {b"i": "signed integer", b"u": "unsigned integer", b"f": "float", b"b": "bool", b"s": "struct"}


def _scalar(value, parameter, where):
    """An argument that is passed by value: CuPy copies as many bytes as the *parameter* has, whatever it is given."""
    if isinstance(value, ndarray):
        raise TypeError(f"{where} is an array, the parameter is no pointer")
    if isinstance(value, int) and not isinstance(value, bool):
        value = np.int64(value) if -(1 << 63) <= value < 1 << 63 else np.uint64(value)
    array = np.array(value)
    kind, wanted = array.dtype.kind, parameter.kind
    fits = array.size == 1 and array.dtype.itemsize == parameter.size
    same = kind == wanted.decode() or (kind in "iu" and wanted in b"iu") or wanted == b"s" or kind == "V"
    if not (fits and same):
        raise TypeError(f"{where} is {value!r} of type {array.dtype}, the parameter a {KINDS[wanted]} of"
                        f" {parameter.size} bytes")  # fmt: skip
    return array


def _pointer(value, parameter, where):
    """An argument that is a pointer: an array of elements that the kernel's type can read, or an address."""
    if isinstance(value, ndarray):
        dtype, kind = value.dtype, parameter.pointee
        bytes_ = kind in b"vs" or (parameter.pointee_size == 1 and kind in b"iu")
        if not bytes_ and (dtype.itemsize != parameter.pointee_size or (dtype.kind == "f") != (kind == b"f")):
            raise TypeError(f"{where} is an array of {dtype}, the parameter a pointer to a {KINDS.get(kind, kind)} of"
                            f" {parameter.pointee_size} bytes")  # fmt: skip
        if not (value.flags.c_contiguous or value.flags.f_contiguous):
            raise ValueError(f"{where} is not contiguous; a kernel sees its memory, not its strides")
        if value.device.id != runtime.getDevice():
            raise runtime.CUDARuntimeError(f"{where} lies on device {value.device.id}, the kernel runs on another")
        return np.array(value.data.ptr, np.uintp)
    if value is None:
        return np.array(0, np.uintp)
    if isinstance(value, MemoryPointer):
        return np.array(value.ptr, np.uintp)
    if isinstance(value, int | np.int64 | np.uint64):
        return np.array(int(value), np.uintp)
    raise TypeError(f"{where} is a {type(value).__name__}, the parameter a pointer: pass a cupy.ndarray")
