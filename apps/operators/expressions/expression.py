"""Edge expressions: from what a user writes to one line of text that numba and NVRTC both compile.

The text is made of calls, comparisons, ``+ - *``, ``and or not``: Python and C++ (which has these words too) read them
alike. What the two would understand differently is a call of a function that both have, in ``arithmetic_cpu.py``
and ``edges.cuh``, and every conversion is written out. So there is one typing rule for both:

* Whole numbers of any width are int64, floats are float64; where both meet, and in ``/``, the result is float64.
* Whole numbers never wrap around: what does not fit into 64 bits becomes the largest or the lowest number. Where
  the types of the operands leave no room for that, it is not asked for.
* A division by zero gives an infinity or not-a-number with ``/``, and 0 with ``//`` and ``%``.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from cusp.errors import OptionError

INT, FLOAT, BOOL = "Int", "Float", "Bool"  # names of the types in the text
LOWEST, LARGEST = -(1 << 63), (1 << 63) - 1
PARTS: dict[type, str] = {
    ast.Constant: "constant", ast.BinOp: "binary", ast.UnaryOp: "unary", ast.Compare: "compare", ast.BoolOp: "bool",
    ast.IfExp: "choice", ast.Call: "call",
}  # fmt: skip
COMPARISONS: dict[type, str] = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
BITWISE: dict[type, str] = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
ARITHMETIC: dict[type, tuple[str, str]] = {  # sign, and the function for whole numbers that do not fit
    ast.Add: ("+", "saturating_add"), ast.Sub: ("-", "saturating_sub"), ast.Mult: ("*", "saturating_mul"),
}  # fmt: skip
DIVISIONS: dict[type, str] = {ast.FloorDiv: "floor_divide", ast.Mod: "floor_modulo"}
FUNCTIONS = ("min", "max", "abs", "sqrt", "exp", "log", "floor", "int", "float")
CONSTANTS = {"inf": "infinity()"}
ENDS = ("src", "dst")


@dataclass(frozen=True)
class Term:
    """A part of an expression: its text, its type, and between what a whole number lies."""

    text: str
    kind: str
    low: int = LOWEST
    high: int = LARGEST


@dataclass(frozen=True, order=True)
class Name:
    """What an expression looks at: ``src.NAME``, ``dst.NAME``, or a bare NAME, whose ``end`` is empty."""

    end: str
    name: str

    def __str__(self) -> str:
        return f"{self.end}.{self.name}" if self.end else self.name


class Expression:
    """An expression that a user wrote, its syntax checked.

    Attributes
    ----------
    names : dict of Name to int
        What it looks at, and the column of the first place.

    Raises
    ------
    OptionError
        With the expression and the column.
    """

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        self.names: dict[Name, int] = {}
        try:
            self._tree = ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            self.refuse(error.offset or 1, f"this is no expression: {error.msg}")
        if not self.text.isascii():
            self.refuse(1, "names are of ASCII letters")
        for node in ast.walk(self._tree):
            name = name_of(node)
            if name is not None and str(name) not in CONSTANTS:
                self.names[name] = min(node.col_offset + 1, self.names.get(name, len(self.text)))  # type: ignore[attr-defined]
        for called in (node.func for node in ast.walk(self._tree) if isinstance(node, ast.Call)):
            self.names.pop(Name("", getattr(called, "id", "")), None)
        for end in ENDS:
            self.names.pop(Name("", end), None)
        self.typed({name: Term("0", INT) for name in self.names})  # everything but the types is right from here on

    def typed(self, terms: Mapping[Name, Term]) -> Term:
        """The text and type of the whole, if its names stand for these."""
        return _Typing(self, terms).term(self._tree)

    def condition(self, terms: Mapping[Name, Term]) -> str:
        """The text of the whole as a test."""
        return _test(self.typed(terms))

    def refuse(self, column: int, why: str) -> NoReturn:
        """Say what is wrong, and where."""
        raise OptionError(f'"{self.text}", column {column}: {why}')


def name_of(node: ast.AST) -> Name | None:
    """The name that a node of the tree is, if it is one."""
    if isinstance(node, ast.Name):
        return Name("", node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ENDS:
        return Name(node.value.id, node.attr)
    return None


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
    """An entry of an array of a type, as it is computed with."""
    if dtype.kind == "b":
        return Term(f"Bool({text})", BOOL)
    if dtype.kind == "f":
        return Term(f"Float({text})", FLOAT)
    limits = np.iinfo(dtype)
    low, high = int(limits.min), min(int(limits.max), LARGEST)
    return Term(f"{'from_unsigned' if dtype == np.uint64 else 'Int'}({text})", INT, low, high)


def stored(term: Term, dtype: np.dtype) -> str | None:
    """The text as a value of a type, whole numbers within its limits; None for a float where the type is none."""
    if dtype.kind == "f":
        return f"Value({term.text})"
    if term.kind == FLOAT:
        return None
    term, limits = _as_int(term), np.iinfo(dtype)
    low, high = int(limits.min), min(int(limits.max), LARGEST)
    if low <= term.low and term.high <= high:
        return f"Value({term.text})"
    return f"Value(clipped({term.text}, {_literal(low)}, {_literal(high)}))"


class _Typing:
    """One walk through the tree of an expression."""

    def __init__(self, expression: Expression, terms: Mapping[Name, Term]) -> None:
        self._expression, self._terms = expression, terms

    def term(self, node: ast.expr) -> Term:
        name = name_of(node)
        if name is not None:
            if str(name) in CONSTANTS:
                return Term(CONSTANTS[str(name)], FLOAT)
            if name in self._terms:
                return self._terms[name]
        if type(node) not in PARTS:
            self._refuse(node, f"{ast.unparse(node)} is nothing that an edge expression can say")
        return getattr(self, f"_{PARTS[type(node)]}")(node)

    def _refuse(self, node: ast.expr, why: str) -> NoReturn:
        self._expression.refuse(node.col_offset + 1, why)

    def _constant(self, node: ast.Constant, sign: int = 1) -> Term:
        if not isinstance(node.value, bool | int | float):
            self._refuse(node, f"{ast.unparse(node)} is no number")
        try:
            return number(node.value if sign > 0 else -node.value)
        except OptionError as error:
            self._refuse(node, str(error))

    def _binary(self, node: ast.BinOp) -> Term:
        a, b = self.term(node.left), self.term(node.right)
        kind, operation = _common(a, b), type(node.op)
        if operation in BITWISE and kind != FLOAT:
            return _bitwise(BITWISE[operation], a, b)
        if operation is ast.Div:
            return Term(f"divide({_as_float(a).text}, {_as_float(b).text})", FLOAT)
        if operation in ARITHMETIC and kind == FLOAT:
            return _float_arithmetic(ARITHMETIC[operation][0], _as_float(a), _as_float(b))
        if operation in ARITHMETIC:
            return _int_arithmetic(*ARITHMETIC[operation], _as_int(a), _as_int(b))
        if operation in DIVISIONS and kind != FLOAT:
            a, b = _as_int(a), _as_int(b)
            return Term(f"{DIVISIONS[operation]}({a.text}, {b.text})", INT, *_quotient_range(operation, a, b))
        self._refuse(node, f"{ast.unparse(node)}: {operation.__name__} is not for {kind}")

    def _unary(self, node: ast.UnaryOp) -> Term:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return self._constant(node.operand, -1)
        a = self.term(node.operand)
        if isinstance(node.op, ast.Not):
            return Term(f"(not {_test(a)})", BOOL)
        if isinstance(node.op, ast.USub) and a.kind == FLOAT:
            return Term(f"(-{a.text})", FLOAT)
        if isinstance(node.op, ast.USub):
            return _int_arithmetic("-", "saturating_sub", number(0), _as_int(a))
        if isinstance(node.op, ast.UAdd):
            return a
        self._refuse(node, f"{ast.unparse(node)} is nothing that an edge expression can say")

    def _compare(self, node: ast.Compare) -> Term:
        terms = [self.term(part) for part in (node.left, *node.comparators)]
        pairs = []
        for operation, a, b in zip(node.ops, terms, terms[1:]):
            if type(operation) not in COMPARISONS:
                self._refuse(node, f"{type(operation).__name__} is nothing that an edge expression can say")
            a, b = _alike(a, b)
            pairs.append(f"({a.text} {COMPARISONS[type(operation)]} {b.text})")
        return Term(f"({' and '.join(pairs)})", BOOL)

    def _bool(self, node: ast.BoolOp) -> Term:
        word = " and " if isinstance(node.op, ast.And) else " or "
        return Term(f"({word.join(_test(self.term(value)) for value in node.values)})", BOOL)

    def _choice(self, node: ast.IfExp) -> Term:
        test = _test(self.term(node.test))
        a, b = _alike(self.term(node.body), self.term(node.orelse))
        return Term(f"select({test}, {a.text}, {b.text})", a.kind, min(a.low, b.low), max(a.high, b.high))

    def _call(self, node: ast.Call) -> Term:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS or node.keywords:
            known = ", ".join(FUNCTIONS)
            self._refuse(node, f"{ast.unparse(node.func)}() is no function of edge expressions, which are {known}")
        terms = [self.term(value) for value in node.args]
        if (len(terms) < 2) if name in ("min", "max") else (len(terms) != 1):
            self._refuse(node, f"{name}() of {len(terms)} values")
        if name in ("min", "max"):
            result = terms[0]
            for other in terms[1:]:
                result = _extreme(name, result, other)
            return result
        return _function(name, terms[0])


def _bitwise(sign: str, a: Term, b: Term) -> Term:
    if a.kind == b.kind == BOOL:
        return Term(f"Bool({_as_int(a).text} {sign} {_as_int(b).text})", BOOL)
    a, b = _as_int(a), _as_int(b)
    high = (1 << max(a.high, b.high).bit_length()) - 1
    return Term(f"({a.text} {sign} {b.text})", INT, *((0, high) if min(a.low, b.low) >= 0 else (LOWEST, LARGEST)))


def _float_arithmetic(sign: str, a: Term, b: Term) -> Term:
    """A product is a call, so that no compiler joins it with a sum and rounds once instead of twice."""
    return Term(f"multiply({a.text}, {b.text})" if sign == "*" else f"({a.text} {sign} {b.text})", FLOAT)


def _int_arithmetic(sign: str, saturating: str, a: Term, b: Term) -> Term:
    results = {
        "+": [a.low + b.low, a.high + b.high],
        "-": [a.low - b.high, a.high - b.low],
        "*": [x * y for x in (a.low, a.high) for y in (b.low, b.high)],
    }[sign]
    low, high = min(results), max(results)
    fits = LOWEST <= low and high <= LARGEST
    text = f"({a.text} {sign} {b.text})" if fits else f"{saturating}({a.text}, {b.text})"
    return Term(text, INT, _within(low), _within(high))


def _quotient_range(operation: type, a: Term, b: Term) -> tuple[int, int]:
    if operation is ast.Mod:
        return min(b.low, 0), max(b.high, 0)
    most = _within(max(-a.low, a.high))
    return (0 if a.low >= 0 and b.low >= 0 else max(-most, LOWEST), most)


def _extreme(name: str, a: Term, b: Term) -> Term:
    a, b = _alike(a, b)
    choose = min if name == "min" else max
    function = "least" if name == "min" else "largest"
    return Term(f"{function}({a.text}, {b.text})", a.kind, choose(a.low, b.low), choose(a.high, b.high))


def _function(name: str, a: Term) -> Term:
    if name == "int":
        return Term(f"to_int({a.text})", INT) if a.kind == FLOAT else _as_int(a)
    if name == "float":
        return _as_float(a)
    if name == "floor":
        return Term(f"to_int(floor({a.text}))", INT) if a.kind == FLOAT else _as_int(a)
    if name == "abs" and a.kind != FLOAT:
        a = _as_int(a)
        return Term(f"int_abs({a.text})", INT, 0, _within(max(-a.low, a.high)))
    return Term(f"{'fabs' if name == 'abs' else name}({_as_float(a).text})", FLOAT)


def _test(term: Term) -> str:
    """Whether a value counts as true."""
    return term.text if term.kind == BOOL else f"({term.text} != {'Int(0)' if term.kind == INT else 'Float(0)'})"


def _common(a: Term, b: Term) -> str:
    return FLOAT if FLOAT in (a.kind, b.kind) else INT


def _alike(a: Term, b: Term) -> tuple[Term, Term]:
    """Both with the type that they have together."""
    if a.kind == b.kind == BOOL or FLOAT not in (a.kind, b.kind):
        return _as_int(a), _as_int(b)
    return _as_float(a), _as_float(b)


def _as_int(a: Term) -> Term:
    return Term(f"Int({a.text})", INT, 0, 1) if a.kind == BOOL else a


def _as_float(a: Term) -> Term:
    return a if a.kind == FLOAT else Term(f"Float({a.text})", FLOAT)


def _within(value: int) -> int:
    return min(max(value, LOWEST), LARGEST)


def _literal(value: int) -> str:
    return f"Int({value})" if value > LOWEST else f"(Int({value + 1}) - Int(1))"
