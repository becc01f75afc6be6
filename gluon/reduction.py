"""Reductions: how the values of mirrors become the one value of their master."""

import ast
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from cusp.errors import InputError

OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.And: "and", ast.Or: "or", ast.Not: "not ", ast.USub: "-",
}  # fmt: skip
FUNCTIONS = {"min": "least", "max": "largest"}  # of two values; what they are called in the compiled text
PROBES = (0, 1, 5)


class ReductionError(InputError):
    """A reduction that cannot be used."""


@dataclass(frozen=True)
class Reduction:
    """A commutative, associative way to combine two values.

    Everything that is compiled for a reduction, for CPUs and for GPUs, is made of these texts. They are Python:
    names, numbers, ``+ - * & | ^``, comparisons, ``and or not``, ``a if c else b``, ``min`` and ``max`` of two values.

    Parameters
    ----------
    name : str
    combine : str
        What ``old``, the value of a proxy, and ``value``, one that arrives, make together: ``"old * value"``.
    neutral : number, or function of a numpy type to a number
        The identity, which changes nothing; None if ``combine`` does not look at ``old``, so that there is none.
    idempotent : bool
        Combining a value twice changes nothing, so mirrors keep theirs when it was sent. Otherwise (ADD) a mirror
        goes back to the identity, or its share would count again.
    changes : str
        Whether the proxy counts as updated, from ``old``, ``value`` and ``result``, which is what they make.

    Raises
    ------
    ReductionError
        A text says what is not listed above, or there is no identity.

    Examples
    --------
    >>> MUL = Reduction("mul", "old * value", neutral=1, idempotent=False)
    >>> MUL.identity(np.dtype(np.int32)), MUL.joined
    (np.int32(1), '(old * value)')
    """

    name: str
    combine: str
    neutral: Any
    idempotent: bool
    changes: str = "result != old"

    def __post_init__(self) -> None:
        texts = self.macros()  # checked
        if self.neutral is None and (not self.idempotent or "old" in texts["JOINED"]):
            raise ReductionError(f"reduction {self.name}: {self.combine} needs an identity, and neutral is None")

    @functools.cached_property
    def joined(self) -> str:
        """``combine`` as numba and NVRTC both compile it."""
        return _compiled(self.name, self.combine, ("old", "value"))

    @functools.cached_property
    def changed(self) -> str:
        """``changes`` as numba and NVRTC both compile it."""
        return _compiled(self.name, self.changes, ("old", "value", "result"))

    def identity(self, dtype: np.dtype) -> np.generic:
        """The value that changes nothing.

        Raises
        ------
        ReductionError
            Values of this type cannot be combined, or combining with the identity changes them.
        """
        return _identity(self, np.dtype(dtype))

    def macros(self) -> dict[str, str]:
        """What ``reduction.cuh`` is compiled with."""
        return {"JOINED": self.joined, "CHANGED": self.changed}


def _compiled(reduction: str, text: str, names: tuple[str, ...]) -> str:
    """A text of a reduction, checked, as numba and NVRTC both compile it: brackets say what binds first."""

    def refuse(why: str) -> NoReturn:
        raise ReductionError(f"reduction {reduction}: {text!r}: {why}")

    def of(node: ast.AST) -> str:
        match node:
            case ast.Name() if node.id in names:
                return node.id
            case ast.Constant() if type(node.value) in (int, float):
                return repr(node.value)
            case ast.BinOp() if type(node.op) in OPERATORS:
                return f"({of(node.left)} {OPERATORS[type(node.op)]} {of(node.right)})"
            case ast.UnaryOp() if type(node.op) in OPERATORS:
                return f"({OPERATORS[type(node.op)]}{of(node.operand)})"
            case ast.Compare(ops=[operation]) if type(operation) in OPERATORS:
                return f"({of(node.left)} {OPERATORS[type(operation)]} {of(node.comparators[0])})"
            case ast.BoolOp():
                return f"({f' {OPERATORS[type(node.op)]} '.join(map(of, node.values))})"
            case ast.IfExp():
                return f"select({of(node.test)}, {of(node.body)}, {of(node.orelse)})"
            case ast.Call(func=ast.Name(id=name), args=[a, b], keywords=[]) if name in FUNCTIONS:
                return f"{FUNCTIONS[name]}({of(a)}, {of(b)})"
        refuse(f"{ast.unparse(node)} is nothing that a reduction of {', '.join(names)} can say")

    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, TypeError) as error:
        refuse(str(getattr(error, "msg", error)))
    return of(tree.body)


@functools.cache
def _identity(reduction: Reduction, dtype: np.dtype) -> np.generic:
    name, neutral = reduction.name, reduction.neutral
    if neutral is None:
        raise ReductionError(f"reduction {name} has no identity")
    number = neutral(dtype) if callable(neutral) else neutral
    scope = {"least": min, "largest": max, "select": lambda test, yes, no: yes if test else no}
    joined: Callable[..., Any] = eval(f"lambda old, value: {reduction.joined}", scope)
    try:
        with np.errstate(all="ignore"):
            identity = dtype.type(number)
            pairs = [(dtype.type(probe), identity) for probe in PROBES]
            results = [(a, dtype.type(joined(*both))) for a, b in pairs for both in ((a, b), (b, a))]
    except (TypeError, ValueError, OverflowError) as error:
        raise ReductionError(f"reduction {name} is not for {dtype}, with {number!r} as its identity: {error}") from None
    for value, result in results:
        if result != value:
            raise ReductionError(
                f"reduction {name}: {number!r} is not the identity of {reduction.combine}: it makes {result} of {value}"
            )
    return identity


def require_reduction(reduction: Any, dtype: np.dtype) -> None:
    """Check that labels of a type can be reduced.

    Raises
    ------
    ReductionError
        It is something else, or not for this type.
    """
    if not isinstance(reduction, Reduction):
        raise ReductionError(f"{reduction!r} is not a Reduction such as gluon.reduction.MIN")
    if dtype.kind not in "biuf":
        raise ReductionError(f"a label holds numbers, not {dtype}; take a type such as numpy.int64 or numpy.float64")
    if reduction.neutral is not None:
        reduction.identity(dtype)


def _highest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def _lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


# What is not a number neither replaces a minimum nor is replaced; every sum but of 0 counts as a change.
ASSIGN = Reduction("assign", "value", None, True, "value != old")  # what a broadcast does
MIN = Reduction("min", "min(value, old)", _highest, True, "value < old")
MAX = Reduction("max", "max(value, old)", _lowest, True, "value > old")
ADD = Reduction("add", "old + value", 0, False, "value != 0")
