"""``cupy.ndarray``: a NumPy array in a box that NumPy cannot open.

CuPy's arrays are in other memory, so NumPy's functions refuse them, and they refuse NumPy's arrays. The box does the
same, with the same exceptions; numbers may be mixed with both. What nobody wrote holds a pattern.
"""

import numpy as np

from cupy.cuda import memory
from cupy.cuda.device import Device
from cupy.cuda.stream import get_current_stream

UNINITIALISED = 0xCD


class ndarray:  # noqa: N801
    """An array on the imagined device."""

    __slots__ = ("_host", "_memory", "_device", "__weakref__")
    __hash__ = None

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        if memptr is None:
            self._set(*memory.placed(fill_pattern(np.empty(shape, dtype, order))))
        else:
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            host = np.ndarray(shape, dtype, memory.raw_bytes(memptr.ptr, size), strides=strides, order=order)
            self._set(host, memptr.mem)

    def _set(self, host, owner):
        self._host, self._memory, self._device = host, owner, Device()

    # What a program may not do with it.

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. "
                        "Please use `.get()` to construct a NumPy array explicitly.")  # fmt: skip

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        import cupy

        function = getattr(cupy, ufunc.__name__, None)
        if function is None:
            return NotImplemented
        if "out" in kwargs:
            (kwargs["out"],) = kwargs["out"]
        return (function if method == "__call__" else getattr(function, method))(*inputs, **kwargs)

    def __array_function__(self, function, types, args, kwargs):
        import cupy

        if not all(issubclass(type_, ndarray) for type_ in types) or not hasattr(cupy, function.__name__):
            return NotImplemented
        return getattr(cupy, function.__name__)(*args, **kwargs)

    # Its memory.

    @property
    def data(self):
        """Where it begins."""
        return memory.MemoryPointer(self._memory, self._host.__array_interface__["data"][0] - self._memory.ptr)

    @property
    def device(self):
        """The device that was current when it was made."""
        return self._device

    @property
    def shape(self):
        """Entries along each axis."""
        return self._host.shape

    @shape.setter
    def shape(self, shape):
        self._host.shape = shape

    @property
    def flags(self):
        """With ``c_contiguous``, ``f_contiguous`` and ``owndata``."""
        return self._host.flags

    def get(self, stream=None, order="C", out=None, blocking=True):
        """A copy in the memory of the host. If not ``blocking``, it is there when the stream was synchronized."""
        stream = stream or get_current_stream()
        if out is None:
            out = fill_pattern(np.empty(self.shape, self.dtype, order if order != "A" else "C"))
        elif not isinstance(out, np.ndarray):
            raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray")
        elif out.dtype != self.dtype:
            raise TypeError(f"{out.dtype} array cannot be obtained from {self.dtype} array")
        elif out.shape != self.shape:
            raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {out.shape}")
        elif not (out.flags.c_contiguous or out.flags.f_contiguous):
            raise RuntimeError("`out` cannot be specified when copying to non-contiguous ndarray")
        stream.write_later(out, self._host)
        if blocking:
            stream.synchronize()
        return out

    def set(self, arr, stream=None):
        """Copy from a NumPy array of the same type and shape."""
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if self.dtype != arr.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if self.shape != arr.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not (self.flags.c_contiguous or self.flags.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        self._host[...] = arr

    # Its entries. An index of integers gives an array without axes, not a number.

    def __getitem__(self, key):
        return wrap(self._host[_index(key)], self)

    def __setitem__(self, key, value):
        if isinstance(value, ndarray):
            value = value._host
        elif not np.isscalar(value):
            raise TypeError(f"a {type(value).__name__} cannot be assigned to entries of a cupy.ndarray")
        self._host[_index(key)] = value

    def __len__(self):
        return len(self._host)

    def __iter__(self):
        return (self[i] for i in range(len(self._host)))

    def __bool__(self):
        return bool(self.get())

    def __int__(self):
        return int(self.get())

    def __float__(self):
        return float(self.get())

    def __complex__(self):
        return complex(self.get())

    def __repr__(self):
        return repr(self.get())

    def __str__(self):
        return str(self.get())

    def __format__(self, spec):
        return format(self.get(), spec)

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        import cupy

        return cupy.array, (self.get(),)

    def item(self, *args):
        """One entry as a number of Python."""
        return self.get().item(*args)

    def tolist(self):
        """Nested lists of numbers."""
        return self.get().tolist()

    def tobytes(self, order="C"):
        """The bytes of all entries."""
        return self.get().tobytes(order)

    def sort(self, axis=-1, *, kind=None):
        """Sort in place."""
        _check_kind(kind)
        self._host.sort(axis, kind="stable")

    def argsort(self, axis=-1, *, kind=None):
        """Indices that sort, stably."""
        _check_kind(kind)
        return wrap(self._host.argsort(axis, kind="stable"))

    def repeat(self, repeats, axis=None):
        """Repeat entries; how often are numbers of the host."""
        if isinstance(repeats, ndarray | np.ndarray):
            raise ValueError("cupy: repeats should be an int, or a list or tuple of them")
        return wrap(self._host.repeat(repeats, axis))


def _index(key):
    """An index for the NumPy array inside; one that names a single entry gives a view of it."""
    key = key if isinstance(key, tuple) else (key,)
    if not any(part is Ellipsis for part in key):
        key += (Ellipsis,)
    return unbox(key)


def _check_kind(kind):
    if kind not in (None, "stable"):
        raise ValueError("kind can only be None or 'stable'")


def fill_pattern(host):
    """Make a new, contiguous array useless until it is written; returns it."""
    if host.size and not host.dtype.hasobject:
        host.reshape(-1, order="A").view(np.uint8)[:] = UNINITIALISED
    return host


def box(host, owner=None):
    """A NumPy array on the imagined device; ``owner`` is the array whose memory it may be part of."""
    array = ndarray.__new__(ndarray)
    if owner is not None and host.base is not None and np.may_share_memory(host, owner._host):
        array._set(host, owner._memory)
    else:
        array._set(*memory.placed(host))
    return array


def wrap(result, *sources):
    """What a function of NumPy returned, as CuPy would: arrays and NumPy's numbers on the device."""
    if isinstance(result, np.ndarray | np.generic):
        host = np.asarray(result)
        return box(host, next((array for array in sources if np.may_share_memory(host, array._host)), None))
    if isinstance(result, tuple | list):
        return type(result)(wrap(part, *sources) for part in result)
    return result


def unbox(value):
    """Arguments for NumPy; its own arrays are refused, as CuPy does."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {np.ndarray}")
    if type(value) in (tuple, list):
        return type(value)(unbox(part) for part in value)
    if isinstance(value, dict):
        return {key: unbox(part) for key, part in value.items()}
    return value


def arrays_in(*values):
    """All device arrays among arguments."""
    for value in values:
        if isinstance(value, ndarray):
            yield value
        elif isinstance(value, tuple | list):
            yield from arrays_in(*value)
        elif isinstance(value, dict):
            yield from arrays_in(*value.values())
