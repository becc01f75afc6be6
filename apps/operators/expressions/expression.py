"""Edge expressions: what a user writes in the syntax of Python, checked, and turned into a term."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from cusp.apps.operators.expressions import terms
from cusp.apps.operators.expressions.terms import BOOL, FLOAT, INFINITY, INT, Term, as_test
from cusp.errors import OptionError

PARTS: dict[type, str] = {
    ast.Constant: "constant", ast.BinOp: "binary", ast.UnaryOp: "unary", ast.Compare: "compare", ast.BoolOp: "bool",
    ast.IfExp: "choice", ast.Call: "call",
}  # fmt: skip
COMPARISONS: dict[type, str] = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
BITWISE: dict[type, str] = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
ARITHMETIC: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
DIVISIONS = {ast.FloorDiv: terms.floor_quotient, ast.Mod: terms.remainder}
FUNCTIONS = ("min", "max", "abs", "sqrt", "exp", "log", "floor", "int", "float")
CONSTANTS = {"inf": INFINITY}
ENDS = ("src", "dst")


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
        What it looks at, and the column where each occurs first.

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
            self.refuse(error.offset or 1, f"this is not an expression: {error.msg}")
        if not self.text.isascii():
            self.refuse(1, "names must consist of ASCII letters")
        for node in ast.walk(self._tree):
            name = name_of(node)
            if name is not None and str(name) not in CONSTANTS:
                self.names[name] = min(node.col_offset + 1, self.names.get(name, len(self.text)))  # type: ignore[attr-defined]
        for called in (node.func for node in ast.walk(self._tree) if isinstance(node, ast.Call)):
            self.names.pop(Name("", getattr(called, "id", "")), None)
        for end in ENDS:
            self.names.pop(Name("", end), None)
        self.typed({name: Term("0", INT) for name in self.names})  # everything but the types is right from here on

    def typed(self, values: Mapping[Name, Term]) -> Term:
        """The whole as a term, if its names stand for these."""
        return _Typing(self, values).term(self._tree)

    def condition(self, values: Mapping[Name, Term]) -> str:
        """The text of the whole as a test."""
        return as_test(self.typed(values))

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


class _Typing:
    """One walk through the tree of an expression."""

    def __init__(self, expression: Expression, values: Mapping[Name, Term]) -> None:
        self._expression, self._values = expression, values

    def term(self, node: ast.expr) -> Term:
        name = name_of(node)
        if name is not None:
            if str(name) in CONSTANTS:
                return CONSTANTS[str(name)]
            if name in self._values:
                return self._values[name]
        if type(node) not in PARTS:
            self._refuse(node, f"{ast.unparse(node)} is not allowed in an edge expression")
        return getattr(self, f"_{PARTS[type(node)]}")(node)

    def _refuse(self, node: ast.expr, why: str) -> NoReturn:
        self._expression.refuse(node.col_offset + 1, why)

    def _constant(self, node: ast.Constant, sign: int = 1) -> Term:
        if not isinstance(node.value, bool | int | float):
            self._refuse(node, f"{ast.unparse(node)} is not a number")
        try:
            return terms.number(node.value if sign > 0 else -node.value)
        except OptionError as error:
            self._refuse(node, str(error))

    def _binary(self, node: ast.BinOp) -> Term:
        a, b = self.term(node.left), self.term(node.right)
        kind, operation = terms.common(a, b), type(node.op)
        if operation in ARITHMETIC:
            return terms.arithmetic(ARITHMETIC[operation], a, b)
        if operation is ast.Div:
            return terms.quotient(a, b)
        if operation in BITWISE and kind != FLOAT:
            return terms.bitwise(BITWISE[operation], a, b)
        if operation in DIVISIONS and kind != FLOAT:
            return DIVISIONS[operation](a, b)
        self._refuse(node, f"{ast.unparse(node)}: {operation.__name__} is not for {kind}")

    def _unary(self, node: ast.UnaryOp) -> Term:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return self._constant(node.operand, -1)
        a = self.term(node.operand)
        if isinstance(node.op, ast.Not):
            return Term(f"(not {as_test(a)})", BOOL)
        if isinstance(node.op, ast.USub):
            return terms.negative(a)
        if isinstance(node.op, ast.UAdd):
            return a
        self._refuse(node, f"{ast.unparse(node)} is not allowed in an edge expression")

    def _compare(self, node: ast.Compare) -> Term:
        values = [self.term(part) for part in (node.left, *node.comparators)]
        pairs = []
        for operation, a, b in zip(node.ops, values, values[1:]):
            if type(operation) not in COMPARISONS:
                self._refuse(node, f"{type(operation).__name__} is not allowed in an edge expression")
            a, b = terms.alike(a, b)
            pairs.append(f"({a.text} {COMPARISONS[type(operation)]} {b.text})")
        return Term(f"({' and '.join(pairs)})", BOOL)

    def _bool(self, node: ast.BoolOp) -> Term:
        word = " and " if isinstance(node.op, ast.And) else " or "
        return Term(f"({word.join(as_test(self.term(value)) for value in node.values)})", BOOL)

    def _choice(self, node: ast.IfExp) -> Term:
        return terms.choice(as_test(self.term(node.test)), self.term(node.body), self.term(node.orelse))

    def _call(self, node: ast.Call) -> Term:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS or node.keywords:
            known = ", ".join(FUNCTIONS)
            self._refuse(node, f"{ast.unparse(node.func)}() is not a function of edge expressions, which are {known}")
        values = [self.term(value) for value in node.args]
        if name in ("min", "max"):
            if len(values) < 2:
                self._refuse(node, f"{name}() takes 2 values or more, not {len(values)}")
            result = values[0]
            for other in values[1:]:
                result = terms.extreme(name, result, other)
            return result
        if len(values) != 1:
            self._refuse(node, f"{name}() takes 1 value, not {len(values)}")
        return terms.call(name, values[0])
