"""Functions of CuPy: those of NumPy that CuPy has too, on boxed arrays."""

import numpy as np

from cupy._array import arrays_in, box, fill_pattern, ndarray, unbox, wrap

UFUNCS = """abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_count bitwise_not
bitwise_or bitwise_xor cbrt ceil conj conjugate copysign cos cosh deg2rad degrees divide divmod equal exp exp2 expm1
fabs float_power floor floor_divide fmax fmin fmod frexp gcd greater greater_equal heaviside hypot invert isfinite
isinf isnan lcm ldexp left_shift less less_equal log log10 log1p log2 logical_and logical_not logical_or logical_xor
matmul maximum minimum mod modf multiply negative nextafter not_equal positive power rad2deg radians reciprocal
remainder right_shift rint sign signbit sin sinh sqrt square subtract tan tanh true_divide trunc""".split()

# Those that take arrays, or make them from numbers.
FUNCTIONS = """all amax amin any append arange argmax argmin argpartition around array_split atleast_1d atleast_2d
average bincount broadcast_arrays broadcast_to choose clip column_stack compress concatenate convolve copyto
count_nonzero cumprod cumsum delete diag diff digitize dot einsum expand_dims extract eye flatnonzero flip
full full_like histogram hsplit hstack identity indices inner interp intersect1d isclose isin kron linspace logspace max
may_share_memory mean median meshgrid min moveaxis nan_to_num nancumsum nanmax nanmean nanmin nansum nonzero ones
ones_like outer packbits pad partition percentile place prod put putmask quantile ravel reshape resize roll rollaxis
rot90 round searchsorted select setdiff1d setxor1d split squeeze stack std sum swapaxes take take_along_axis tensordot
tile trace transpose trapezoid tri tril triu union1d unique unpackbits unravel_index var vdot vsplit vstack where zeros
zeros_like array_equal allclose argwhere ndim shape size""".split()

# What both have in common: types, constants, and functions of types.
SHARED = """bool bool_ byte cdouble complex128 complex64 csingle double dtype finfo float16 float32 float64 floating
generic half iinfo inexact int16 int32 int64 int8 int_ intc integer intp long longlong number short signedinteger
single ubyte uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong unsignedinteger ushort e inf nan newaxis pi
can_cast broadcast_shapes issubdtype isscalar promote_types min_scalar_type s_ index_exp""".split()

AT = {"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"}
REDUCE = {"add": "sum", "multiply": "prod"}


class ufunc:  # noqa: N801
    """A function of single entries, with the few of NumPy's methods that CuPy has."""

    def __init__(self, name):
        self.__name__, self._host = name, getattr(np, name)
        self.nin, self.nout = self._host.nin, self._host.nout

    def __call__(self, *args, **kwargs):
        for value in (*args, *kwargs.values()):
            if isinstance(value, list):
                raise TypeError(f"Unsupported type {list}")
        result = self._host(*unbox(args), **unbox(kwargs))
        out = args[self.nin] if len(args) > self.nin else kwargs.get("out")
        return out if isinstance(out, ndarray) else wrap(result)

    def at(self, a, indices, b=None):
        """Apply to entries in place, repeated indices repeatedly."""
        if self.__name__ not in AT:
            raise NotImplementedError(f"`{self.__name__}.at` is not supported yet")
        self._host.at(unbox(a), unbox(indices), unbox(b))

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        """Only sums and products."""
        if self.__name__ not in REDUCE:
            raise NotImplementedError(f"`{self.__name__}.reduce` is not supported yet")
        return getattr(array, REDUCE[self.__name__])(axis, dtype, out, keepdims)

    def accumulate(self, array, axis=0, dtype=None, out=None):
        """Only sums and products."""
        if self.__name__ not in REDUCE:
            raise NotImplementedError(f"`{self.__name__}.accumulate` is not supported yet")
        return getattr(array, "cum" + REDUCE[self.__name__])(axis, dtype, out)

    def reduceat(self, array, indices, axis=0, dtype=None, out=None):
        """Only sums."""
        if self.__name__ != "add":
            raise NotImplementedError(f"`{self.__name__}.reduceat` is not supported yet")
        return wrap(np.add.reduceat(unbox(array), unbox(indices), axis, dtype))


def function(name):
    """CuPy's function of this name."""
    host = getattr(np, name)

    def call(*args, **kwargs):
        sources = list(arrays_in(args, kwargs))
        result = host(*unbox(args), **unbox(kwargs))
        out = kwargs.get("out")
        return out if isinstance(out, ndarray) else wrap(result, *sources)

    call.__name__ = name
    call.__doc__ = host.__doc__
    return call


# What takes arrays of the host, too, or differs from NumPy.


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, *, blocking=False):
    """A new array on the device, from numbers, lists, or an array of either kind."""
    if isinstance(obj, list | tuple) and any(True for _ in arrays_in(obj)):
        obj = [unbox(part) for part in obj]
    host = obj._host if isinstance(obj, ndarray) else obj
    made = np.array(host, dtype, copy=True if copy else None, order=order, ndmin=ndmin)
    if made.dtype.hasobject or made.dtype.kind in "USMm":
        raise ValueError(f"Unsupported dtype {made.dtype}")
    return box(made, obj if isinstance(obj, ndarray) else None)


def asarray(a, dtype=None, order=None, *, copy=None, blocking=False):
    """The array itself if it is on the device and of this type, else a copy."""
    if isinstance(a, ndarray) and not copy and dtype in (None, a.dtype) and order in (None, "K", "A"):
        return a
    return array(a, dtype, copy=True, order=order or "K")


def ascontiguousarray(a, dtype=None):
    """The array itself, or a contiguous copy."""
    if isinstance(a, ndarray) and a.flags.c_contiguous and dtype in (None, a.dtype) and a.ndim:
        return a
    return array(a, dtype, order="C", ndmin=1)


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    """A copy in the memory of the host."""
    if isinstance(a, ndarray):
        return a.get(stream=stream, order=order, out=out, blocking=blocking)
    host = np.asarray(a, order=order)
    if out is None:
        return host
    out[...] = host
    return out


def copy(a, order="K"):
    """A copy on the device."""
    return box(np.array(unbox(a), order=order))


def empty(shape, dtype=float, order="C"):
    """An array that nobody wrote yet."""
    return box(fill_pattern(np.empty(shape, dtype, order)))


def empty_like(prototype, dtype=None, order="K", subok=None, shape=None):
    """An array like another, that nobody wrote yet."""
    return box(fill_pattern(np.empty_like(unbox(prototype), dtype, order, True, shape)))


def frombuffer(*args, **kwargs):
    """An array from bytes of the host."""
    return array(np.frombuffer(*args, **kwargs))


def fromiter(*args, **kwargs):
    """An array from numbers of the host."""
    return array(np.fromiter(*args, **kwargs))


def repeat(a, repeats, axis=None):
    """Repeat entries; how often are numbers of the host."""
    return a.repeat(repeats, axis)


def sort(a, axis=-1, *, kind=None):
    """A sorted copy."""
    made = copy(a, "C")
    made.sort(axis, kind=kind)
    return made


def argsort(a, axis=-1, *, kind=None):
    """Indices that sort, stably."""
    return a.argsort(axis, kind=kind)


def lexsort(keys):
    """Indices that sort by several keys, the rows of one array."""
    if not isinstance(keys, ndarray):
        raise TypeError("cupy.lexsort takes one array, whose rows are the keys")
    return wrap(np.lexsort(keys._host))


def result_type(*values):
    """The type that an operation on these would have."""
    return np.result_type(*unbox(values))
