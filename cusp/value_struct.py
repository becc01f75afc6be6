"""Plain Python classes that compiled loops understand: attributes and methods work the same, compiled or not."""

from collections.abc import Callable, Iterable
from operator import getitem
from typing import Any

import numba
from numba import types
from numba.core import cgutils
from numba.extending import (
    NativeValue,
    make_attribute_wrapper,
    models,
    overload,
    overload_method,
    register_model,
    typeof_impl,
    unbox,
)


def value_struct(cls: type, methods: Iterable[Callable] = ()) -> None:
    """Let numba pass instances of a class by value.

    Parameters
    ----------
    cls : class
        With ``__slots__`` of integers and arrays; compiled code sees them as they were at the call.
    methods : functions
        Methods of ``cls`` in the part of Python that numba compiles: the same function is run by
        Python and compiled by numba. ``__getitem__`` may be one of them.
    """

    class StructType(types.Type):
        def __init__(self, fields: tuple) -> None:
            self.fields = list(zip(cls.__slots__, fields))  # type: ignore[attr-defined]
            super().__init__(f"{cls.__name__}{fields}")

    @typeof_impl.register(cls)
    def typeof_struct(value, context):  # type: ignore[no-untyped-def]
        return StructType(tuple(_type_of(getattr(value, name)) for name in cls.__slots__))  # type: ignore[attr-defined]

    @register_model(StructType)
    class _Model(models.StructModel):
        def __init__(self, manager, struct_type):  # type: ignore[no-untyped-def]
            super().__init__(manager, struct_type, struct_type.fields)

    @unbox(StructType)
    def unbox_struct(struct_type, value, context):  # type: ignore[no-untyped-def]
        struct = cgutils.create_struct_proxy(struct_type)(context.context, context.builder)
        for name, field_type in struct_type.fields:
            field = context.pyapi.object_getattr_string(value, name)
            setattr(struct, name, context.unbox(field_type, field).value)
            context.pyapi.decref(field)
        failed = cgutils.is_not_null(context.builder, context.pyapi.err_occurred())
        return NativeValue(struct._getvalue(), is_error=failed)

    for name in cls.__slots__:  # type: ignore[attr-defined]
        make_attribute_wrapper(StructType, name, name)
    for method in methods:
        if method.__name__ == "__getitem__":
            overload(getitem)(_for_type(StructType, method))
        else:
            overload_method(StructType, method.__name__)(_always(method))


def _type_of(value: Any) -> types.Type:
    return types.int64 if isinstance(value, int) else numba.typeof(value)


def _always(method: Callable) -> Callable:
    return lambda self, node: method


def _for_type(struct_type: type, method: Callable) -> Callable:
    return lambda self, node: method if isinstance(self, struct_type) else None
