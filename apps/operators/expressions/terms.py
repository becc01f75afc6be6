"""Terms: parts of an edge expression as text that numba and NVRTC both compile, with their types and ranges.

The text consists of calls, comparisons, ``+ - *`` and ``and or not``, which Python and C++ (where these are words too)
read alike. What the two would understand differently is a call of a function that both have, in ``arithmetic_cpu.py``
and ``edges.cuh``, and every conversion is written out. So there is one typing rule for both:

* Whole numbers of any width are int64, floats are float64; where both meet, and in ``/``, the result is float64.
* Whole numbers never wrap around: what does not fit into 64 bits becomes the largest or the lowest number. Where the
  ranges of the operands show that it fits, no check is generated.
* A division by zero gives an infinity or not-a-number with ``/``, and 0 with ``//`` and ``%``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cusp.errors import OptionError

INT, FLOAT, BOOL = "Int", "Float", "Bool"  # names of the types in the text
LOWEST, LARGEST = -(1 << 63), (1 << 63) - 1
SATURATING = {"+": "saturating_add", "-": "saturating_sub", "*": "saturating_mul"}


@dataclass(frozen=True)
class Term:
    """A part of an expression: its text, its type and, of a whole number, its range."""

    text: str
    kind: str
    low: int = LOWEST
    high: int = LARGEST


INFINITY = Term("infinity()", FLOAT)


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
    texts = {np.inf: INFINITY.text, -np.inf: f"(-{INFINITY.text})"}
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
    term, (low, high) = as_int(term), _limits(dtype)
    if low <= term.low and term.high <= high:
        return f"Value({term.text})"
    return f"Value(clipped({term.text}, {_literal(low)}, {_literal(high)}))"


def offered(term: Term, dtype: np.dtype, above: bool) -> str | None:
    """The text of a candidate for a minimum (or, if ``above`` is false, a maximum) of a type, still in 64 bits.

    It is clipped at one limit only: what is beyond the other one changes nothing. None for floats.
    """
    if dtype.kind == "f":
        return None
    term, (low, high) = as_int(term), _limits(dtype)
    if above:
        return term.text if low <= term.low else f"largest({term.text}, {_literal(low)})"
    return term.text if term.high <= high else f"least({term.text}, {_literal(high)})"


def common(a: Term, b: Term) -> str:
    """The type in which two terms are computed together."""
    return FLOAT if FLOAT in (a.kind, b.kind) else INT


def alike(a: Term, b: Term) -> tuple[Term, Term]:
    """Both, converted to their common type."""
    return (as_float(a), as_float(b)) if common(a, b) == FLOAT else (as_int(a), as_int(b))


def as_int(a: Term) -> Term:
    """A whole number, or a truth value as 0 or 1."""
    return Term(f"Int({a.text})", INT, 0, 1) if a.kind == BOOL else a


def as_float(a: Term) -> Term:
    """A number of any type as a float."""
    return a if a.kind == FLOAT else Term(f"Float({a.text})", FLOAT)


def as_test(a: Term) -> str:
    """The text of whether a value counts as true."""
    return a.text if a.kind == BOOL else f"({a.text} != {'Int(0)' if a.kind == INT else 'Float(0)'})"


def arithmetic(sign: str, a: Term, b: Term) -> Term:
    """A sum, difference or product."""
    a, b = alike(a, b)
    if a.kind == FLOAT:  # a product is a call, so that no compiler joins it with a sum and rounds once instead of twice
        return Term(f"multiply({a.text}, {b.text})" if sign == "*" else f"({a.text} {sign} {b.text})", FLOAT)
    results = {
        "+": [a.low + b.low, a.high + b.high],
        "-": [a.low - b.high, a.high - b.low],
        "*": [x * y for x in (a.low, a.high) for y in (b.low, b.high)],
    }[sign]
    low, high = min(results), max(results)
    fits = LOWEST <= low and high <= LARGEST
    text = f"({a.text} {sign} {b.text})" if fits else f"{SATURATING[sign]}({a.text}, {b.text})"
    return Term(text, INT, _within(low), _within(high))


def negative(a: Term) -> Term:
    """The number with the other sign."""
    return Term(f"(-{a.text})", FLOAT) if a.kind == FLOAT else arithmetic("-", number(0), a)


def quotient(a: Term, b: Term) -> Term:
    """``a / b``."""
    return Term(f"divide({as_float(a).text}, {as_float(b).text})", FLOAT)


def floor_quotient(a: Term, b: Term) -> Term:
    """``a // b`` of whole numbers."""
    a, b = as_int(a), as_int(b)
    most = _within(max(-a.low, a.high))
    least = 0 if a.low >= 0 and b.low >= 0 else max(-most, LOWEST)
    return Term(f"floor_divide({a.text}, {b.text})", INT, least, most)


def remainder(a: Term, b: Term) -> Term:
    """``a % b`` of whole numbers."""
    a, b = as_int(a), as_int(b)
    return Term(f"floor_modulo({a.text}, {b.text})", INT, min(b.low, 0), max(b.high, 0))


def bitwise(sign: str, a: Term, b: Term) -> Term:
    """``&``, ``|`` or ``^`` of whole numbers or truth values."""
    if a.kind == b.kind == BOOL:
        return Term(f"Bool({as_int(a).text} {sign} {as_int(b).text})", BOOL)
    a, b = as_int(a), as_int(b)
    high = (1 << max(a.high, b.high).bit_length()) - 1
    return Term(f"({a.text} {sign} {b.text})", INT, *((0, high) if min(a.low, b.low) >= 0 else (LOWEST, LARGEST)))


def choice(test: str, a: Term, b: Term) -> Term:
    """``a`` where the test holds, else ``b``."""
    a, b = alike(a, b)
    return Term(f"select({test}, {a.text}, {b.text})", a.kind, min(a.low, b.low), max(a.high, b.high))


def extreme(name: str, a: Term, b: Term) -> Term:
    """``min`` or ``max`` of two numbers."""
    a, b = alike(a, b)
    choose, function = (min, "least") if name == "min" else (max, "largest")
    return Term(f"{function}({a.text}, {b.text})", a.kind, choose(a.low, b.low), choose(a.high, b.high))


def call(name: str, a: Term) -> Term:
    """A function of one number."""
    if name == "int":
        return Term(f"to_int({a.text})", INT) if a.kind == FLOAT else as_int(a)
    if name == "float":
        return as_float(a)
    if name == "floor":
        return Term(f"to_int(floor({a.text}))", INT) if a.kind == FLOAT else as_int(a)
    if name == "abs" and a.kind != FLOAT:
        a = as_int(a)
        return Term(f"int_abs({a.text})", INT, 0, _within(max(-a.low, a.high)))
    return Term(f"{'fabs' if name == 'abs' else name}({as_float(a).text})", FLOAT)


def _limits(dtype: np.dtype) -> tuple[int, int]:
    """The lowest and the largest number of a type that int64 can hold."""
    limits = np.iinfo(dtype)
    return int(limits.min), min(int(limits.max), LARGEST)


def _within(value: int) -> int:
    return min(max(value, LOWEST), LARGEST)


def _literal(value: int) -> str:
    return f"Int({value})" if value > LOWEST else f"(Int({value + 1}) - Int(1))"
