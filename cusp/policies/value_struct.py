"""Plain Python classes that numba understands: attributes and methods work the same, compiled or not."""

import sys
from collections.abc import Callable, Container, Iterable
from operator import getitem
from typing import Any

import numba
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import (
    NativeValue,
    intrinsic,
    models,
    overload,
    overload_method,
    register_model,
    typeof_impl,
    unbox,
)


def value_struct(cls: type, methods: Iterable[Callable] = (), inlined: Container[Callable] = ()) -> None:
    """Let numba pass instances of a class by value.

    Parameters
    ----------
    cls : class
        With ``__slots__`` of integers and arrays; compiled code sees their values at the time of the call.
    methods : functions
        Methods of ``cls`` that numba can compile: the same function is run by Python and compiled by
        numba. ``__getitem__`` may be one of them.
    inlined : container of functions
        Those of them that are so short that a call would cost most: it passes the whole instance.
    """

    class StructType(types.Type):
        def __init__(self, fields: tuple) -> None:
            self.fields = list(zip(cls.__slots__, fields))  # type: ignore[attr-defined]
            super().__init__(f"{cls.__name__}{fields}")

    # numba's cache on disk finds a type by the module and name of its class
    StructType.__module__, StructType.__qualname__ = cls.__module__, f"{cls.__name__}Type"
    setattr(sys.modules[cls.__module__], StructType.__qualname__, StructType)

    @typeof_impl.register(cls)
    def typeof_struct(value, context):  # type: ignore[no-untyped-def]
        fields = (getattr(value, name) for name in cls.__slots__)  # type: ignore[attr-defined]
        return StructType(tuple(types.int64 if isinstance(field, int) else numba.typeof(field) for field in fields))

    @register_model(StructType)
    class _Model(models.StructModel):
        def __init__(self, manager, struct_type):  # type: ignore[no-untyped-def]
            super().__init__(manager, struct_type, struct_type.fields)

        def traverse(self, builder):  # type: ignore[no-untyped-def]
            return []  # no references are counted: the caller keeps the instance

    @unbox(StructType)
    def unbox_struct(struct_type, value, context):  # type: ignore[no-untyped-def]
        struct = cgutils.create_struct_proxy(struct_type)(context.context, context.builder)
        for name, field_type in struct_type.fields:
            field = context.pyapi.object_getattr_string(value, name)
            setattr(struct, name, context.unbox(field_type, field).value)
            context.pyapi.decref(field)
        failed = cgutils.is_not_null(context.builder, context.pyapi.err_occurred())

        def give_back():  # type: ignore[no-untyped-def]
            for name, field_type in struct_type.fields:
                context.context.nrt.decref(context.builder, field_type, getattr(struct, name))

        return NativeValue(struct._getvalue(), is_error=failed, cleanup=give_back)

    for name in cls.__slots__:  # type: ignore[attr-defined]
        _make_attribute(StructType, name)
    for method in methods:
        if method.__name__ == "__getitem__":
            overload(getitem)(_for_type(StructType, method))
        else:
            inline = "always" if method in inlined else "never"
            overload_method(StructType, method.__name__, inline=inline)(_always(method))


def _make_attribute(struct_type: Any, name: str) -> None:
    """Let compiled code read a field. Arrays are borrowed: counting references costs more than a look-up."""

    @infer_getattr
    class _Typing(AttributeTemplate):
        key = struct_type

        def generic_resolve(self, value, attribute):  # type: ignore[no-untyped-def]
            return dict(value.fields)[name] if attribute == name else None

    @lower_getattr(struct_type, name)
    def read_field(context, builder, value_type, value):  # type: ignore[no-untyped-def]
        field_type = dict(value_type.fields)[name]
        field = getattr(cgutils.create_struct_proxy(value_type)(context, builder, value=value), name)
        return _borrowed(context, builder, field_type, field)


def _borrowed(context, builder, field_type, field):  # type: ignore[no-untyped-def]
    """A field, without what counts references if it is an array."""
    if not isinstance(field_type, types.Array):
        return field
    array = context.make_array(field_type)(context, builder, field)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()


def _always(method: Callable) -> Callable:
    """What ``overload`` takes: a function whose parameters have the same names."""
    code = method.__code__
    always: Callable = eval(f"lambda {', '.join(code.co_varnames[: code.co_argcount])}: method", {"method": method})
    return always


def _for_type(struct_type: type, method: Callable) -> Callable:
    return lambda self, node: method if isinstance(self, struct_type) else None


def lent(state):  # type: ignore[no-untyped-def]
    """A namedtuple of arrays for rules that are asked often: compiled code does not count references to them either."""
    return state


class LentTuple(types.NamedTuple):
    """The type of such a namedtuple."""

    def __init__(self, fields: tuple, cls: type) -> None:
        super().__init__(fields, cls)
        self.name = f"lent {self}"

    @property
    def key(self) -> tuple:
        return "lent", self.instance_class, self.types


@register_model(LentTuple)
class _LentModel(models.TupleModel):
    def traverse(self, builder):  # type: ignore[no-untyped-def]
        return []


@lower_getattr_generic(LentTuple)
def _read_lent(context, builder, value_type, value, name):  # type: ignore[no-untyped-def]
    place = value_type.fields.index(name)
    return _borrowed(context, builder, value_type.types[place], builder.extract_value(value, place))


@intrinsic
def _lent(typing_context, state):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        fields = [builder.extract_value(arguments[0], place) for place in range(len(state.types))]
        fields = [_borrowed(context, builder, *field) for field in zip(state.types, fields)]
        return context.make_tuple(builder, signature.return_type, fields)

    return LentTuple(tuple(state.types), state.instance_class)(state), generate


@overload(lent, inline="always")
def _lent_if_any(state):  # type: ignore[no-untyped-def]
    if isinstance(state, types.BaseNamedTuple):
        return lambda state: _lent(state)
    return lambda state: state
