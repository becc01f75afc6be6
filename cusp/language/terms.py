"""Terms: parts of an expression as text that numba and C++ both compile, with their types and ranges.

The text consists of calls, comparisons, ``+ - *`` and ``and or not``, which Python and C++ (where these are words too)
read alike. What the two would understand differently is a call of a function that both have, and every conversion is
written out. The functions are in ``arithmetic_cpu.py``, for numba, and ``arithmetic.cuh``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cusp.errors import OptionError

INT, UNSIGNED, FLOAT, BOOL = "Int", "Unsigned", "Float", "Bool"  # names of the types in the text
NATIVE = "Native"  # of plain semantics: whatever type the label has
LOWEST, LARGEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class Semantics:
    """What operations on whole numbers mean, and which there are.

    Attributes
    ----------
    name : str
        What happens to a result that does not fit into 64 bits; the functions that do it have names that begin so.
    operators, functions : tuple of str
    raises : bool
        A division by zero is reported to the caller, so nothing is computed that Python would not compute.
    """

    name: str
    operators: tuple[str, ...]
    functions: tuple[str, ...]
    raises: bool = False


_EVERYWHERE = ("+", "-", "*", "&", "|", "^")
_NUMERIC = (*_EVERYWHERE, "/", "//", "%")
PLAIN = Semantics("plain", _EVERYWHERE, ("min", "max"))
SATURATE = Semantics(
    "saturating", _NUMERIC, ("min", "max", "abs", "sqrt", "exp", "log", "floor", "int", "float")
)  # fmt: skip
WRAP = Semantics(
    "wrapping", (*_NUMERIC, "<<", ">>", "~"), ("min", "max", "abs", "sqrt", "int", "float", "int64", "uint64"), True
)  # fmt: skip


@dataclass(frozen=True)
class Term:
    """A part of an expression: its text, its type and, of an ``Int``, its range."""

    text: str
    kind: str
    low: int = LOWEST
    high: int = LARGEST


def number(value: Any) -> Term:
    """A constant.

    Raises
    ------
    OptionError
        A whole number of more than 64 bits.
    """
    if isinstance(value, bool | np.bool_):
        return Term(f"Bool({int(value)})", BOOL)
    if isinstance(value, int | np.integer):
        value = int(value)
        if not LOWEST <= value <= LARGEST:
            raise OptionError(f"{value} has more than 64 bits")
        return Term(_literal(value), INT, value, value)
    texts = {np.inf: "infinity()", -np.inf: "(-infinity())"}
    return Term(texts.get(value, f"Float({float(value)!r})"), FLOAT)


def loaded(text: str, dtype: np.dtype) -> Term:
    """An array entry of this type, converted to the type in which it is computed."""
    if dtype.kind == "b":
        return Term(f"Bool({text})", BOOL)
    if dtype.kind == "f":
        return Term(f"Float({text})", FLOAT)
    return Term(f"{'from_unsigned' if dtype == np.uint64 else 'Int'}({text})", INT, *_limits(dtype))


def stored(term: Term, dtype: np.dtype) -> str | None:
    """The text as a value of this type, whole numbers clipped to its range; None for a float that it cannot hold."""
    if dtype.kind == "f":
        return f"Value({term.text})"
    if term.kind == FLOAT:
        return None
    term, (low, high) = converted(term, INT), _limits(dtype)
    if low <= term.low and term.high <= high:
        return f"Value({term.text})"
    return f"Value(clipped({term.text}, {_literal(low)}, {_literal(high)}))"


def compared(term: Term, dtype: np.dtype, above: bool) -> str | None:
    """The text of a candidate for a minimum (or, if ``above`` is false, a maximum) of a type, still in 64 bits.

    It is clipped at one limit only: what is beyond the other one changes nothing. None for floats.
    """
    if dtype.kind == "f":
        return None
    term, (low, high) = converted(term, INT), _limits(dtype)
    if above:
        return term.text if low <= term.low else f"largest({term.text}, {_literal(low)})"
    return term.text if term.high <= high else f"least({term.text}, {_literal(high)})"


def common(kinds: set[str]) -> str | None:
    """The type in which values of these types are computed together; None if there is none."""
    if NATIVE in kinds or kinds == {UNSIGNED}:
        return NATIVE if NATIVE in kinds else UNSIGNED
    if not kinds <= {INT, FLOAT, BOOL}:
        return None
    return FLOAT if FLOAT in kinds else INT


def converted(a: Term, kind: str) -> Term:
    """A term in a type that :func:`common` gave."""
    if a.kind == kind or kind == NATIVE:
        return a
    return Term(f"{kind}({a.text})", kind, 0, 1) if a.kind == BOOL else Term(f"{kind}({a.text})", kind)


def as_test(a: Term) -> str:
    """The text of whether a value counts as true."""
    zero = "0" if a.kind == NATIVE else f"{a.kind}(0)"
    return a.text if a.kind == BOOL else f"({a.text} != {zero})"


def arithmetic(sign: str, a: Term, b: Term, semantics: Semantics) -> Term:
    """A sum, difference or product of terms of one type; without a check where the ranges show that it fits."""
    if a.kind != INT:  # a product of floats is a call, so that no compiler joins it with a sum and rounds once
        form = "multiply({}, {})" if (sign, a.kind) == ("*", FLOAT) else f"({{}} {sign} {{}})"
        return Term(in_order(form, a, b), a.kind)
    results = {
        "+": [a.low + b.low, a.high + b.high],
        "-": [a.low - b.high, a.high - b.low],
        "*": [x * y for x in (a.low, a.high) for y in (b.low, b.high)],
    }[sign]
    low, high = min(results), max(results)
    if LOWEST <= low and high <= LARGEST:
        return Term(in_order(f"({{}} {sign} {{}})", a, b), INT, low, high)
    text = in_order(f"{semantics.name}_{ {'+': 'add', '-': 'sub', '*': 'mul'}[sign] }({{}}, {{}})", a, b)
    return Term(text, INT) if semantics is WRAP else Term(text, INT, within(low), within(high))


def negative(a: Term, semantics: Semantics) -> Term:
    """The number with the other sign."""
    return Term(f"(-{a.text})", a.kind) if a.kind in (FLOAT, NATIVE) else arithmetic("-", number(0), a, semantics)


def quotient(sign: str, a: Term, b: Term, semantics: Semantics) -> Term:
    """``a / b`` of floats, ``a // b`` or ``a % b`` of whole numbers."""
    raised = "raised, " if semantics.raises else ""
    function = {"/": "divide", "//": "floor_divide", "%": "floor_modulo"}[sign]
    text = in_order(f"{function}({raised}{{}}, {{}})", a, b)
    if a.kind != INT:
        return Term(text, a.kind)
    if sign == "%":
        return Term(text, INT, min(b.low, 0), max(b.high, 0))
    most = within(max(-a.low, a.high))
    return Term(text, INT, 0 if a.low >= 0 and b.low >= 0 else max(-most, LOWEST), most)


def bitwise(sign: str, a: Term, b: Term) -> Term:
    """``&``, ``|`` or ``^`` of whole numbers."""
    text = in_order(f"({{}} {sign} {{}})", a, b)
    high = (1 << max(a.high, b.high).bit_length()) - 1
    return Term(text, a.kind, 0, high) if min(a.low, b.low) >= 0 else Term(text, a.kind)


def extreme(name: str, a: Term, b: Term) -> Term:
    """``min`` or ``max`` of two numbers of one type; of two that cannot be compared the second."""
    choose, function = (min, "least") if name == "min" else (max, "largest")
    text = in_order(f"{function}({{}}, {{}})", a, b)
    return Term(text, a.kind, choose(a.low, b.low), choose(a.high, b.high))


def in_order(form: str, *terms: Term) -> str:
    """The text of an operation. If several operands may raise, they run from left to right: the first error counts."""
    texts = [term.text for term in terms]
    if sum("(raised" in text for text in texts) < 2:
        return form.format(*texts)
    kept = " ".join(f"const auto x{i} = {text};" for i, text in enumerate(texts))
    return f"[&] {{ {kept} return {form.format(*(f'x{i}' for i in range(len(texts))))}; }}()"


def within(value: int) -> int:
    """The nearest number of 64 bits."""
    return min(max(value, LOWEST), LARGEST)


def _limits(dtype: np.dtype) -> tuple[int, int]:
    """The lowest and the largest number of a type that int64 can hold."""
    limits = np.iinfo(dtype)
    return int(limits.min), min(int(limits.max), LARGEST)


def _literal(value: int) -> str:
    return f"Int({value})" if value > LOWEST else f"(Int({value + 1}) - Int(1))"
