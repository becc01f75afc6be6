"""Methods and operators of ``cupy.ndarray`` that are NumPy's, on boxed arrays. Importing this adds them."""

import operator

import numpy as np

from cupy._array import ndarray, unbox, wrap


def _forward(name):
    def method(self, *args, **kwargs):
        result = getattr(self._host, name)(*unbox(args), **unbox(kwargs))
        out = kwargs.get("out")
        return out if out is not None else wrap(result, self)

    method.__name__ = name
    return method


def _binary(name, swapped):
    def method(self, other):
        import cupy

        if isinstance(other, np.ndarray | list | tuple):
            raise TypeError(f"Unsupported type {type(other)}")
        function = getattr(cupy, name)
        return function(other, self) if swapped else function(self, other)

    return method


def _in_place(name):
    function = getattr(operator, name)

    def method(self, other):
        function(self._host, unbox(other))
        return self

    return method


METHODS = """all any argmax argmin argpartition astype choose clip compress conj conjugate copy cumprod cumsum diagonal
dot fill flatten max mean min nonzero partition prod put ravel reshape round searchsorted squeeze std sum swapaxes
take trace transpose var view __neg__ __pos__ __abs__ __invert__""".split()
PROPERTIES = "T dtype imag itemsize nbytes ndim real size strides".split()
OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "divmod": "divmod", "pow": "power", "lshift": "left_shift", "rshift": "right_shift",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "matmul": "matmul",
}  # fmt: skip
COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip

for _name in METHODS:
    setattr(ndarray, _name, _forward(_name))
for _name in PROPERTIES:
    setattr(ndarray, _name, property(lambda self, name=_name: wrap(getattr(self._host, name), self)))
for _name, _function in OPERATORS.items():
    setattr(ndarray, f"__{_name}__", _binary(_function, False))
    setattr(ndarray, f"__r{_name}__", _binary(_function, True))
    if _name != "divmod":
        setattr(ndarray, f"__i{_name}__", _in_place(f"__i{_name}__"))
for _name, _function in COMPARISONS.items():
    setattr(ndarray, f"__{_name}__", _binary(_function, False))
