"""Reductions: how the values of mirrors become the one value of their master."""

import ast
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from cusp.errors import InputError
from cusp.language.terms import NATIVE, PLAIN, Term
from cusp.language.translator import Translator

PROBES = (0, 1, 5)


class ReductionError(InputError):
    """A reduction that cannot be used."""


@dataclass(frozen=True)
class Reduction:
    """A commutative, associative way to combine two values.

    Everything that is compiled for a reduction, for CPUs and for GPUs, is made of these texts; docs/language.md says
    what they may be.

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
        A text says what a reduction cannot say, or there is no identity.

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
        return _Text(self.name, self.combine, ("old", "value")).text

    @functools.cached_property
    def changed(self) -> str:
        """``changes`` as numba and NVRTC both compile it."""
        return _Text(self.name, self.changes, ("old", "value", "result")).text

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


class _Text(Translator):
    """A text of a reduction, checked, as numba and NVRTC both compile it: brackets say what binds first."""

    semantics = PLAIN

    def __init__(self, reduction: str, text: str, names: tuple[str, ...]) -> None:
        self._what, self._names = f"reduction {reduction}: {text!r}", names
        self.excuse = f"is nothing that a reduction of {', '.join(names)} can say"
        try:
            tree = ast.parse(text, mode="eval")
        except (SyntaxError, TypeError) as error:
            raise ReductionError(f"{self._what}: {getattr(error, 'msg', error)}") from None
        self.text = self.term(tree.body).text

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        raise ReductionError(f"{self._what}, column {node.col_offset + 1}: {why}")  # type: ignore[attr-defined]

    def named(self, node: ast.Name | ast.Attribute) -> Term:
        if isinstance(node, ast.Name) and node.id in self._names:
            return Term(node.id, NATIVE)
        self.refuse(node, f"{ast.unparse(node)} {self.excuse}")


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
OR = Reduction("or", "old | value", 0, True)  # bits of whole numbers
