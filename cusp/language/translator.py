"""The grammar of expressions: one walk through the syntax tree of Python, for all three kinds of semantics."""

import ast
from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np

from cusp.errors import OptionError
from cusp.language import terms
from cusp.language.terms import BOOL, FLOAT, INT, NATIVE, PLAIN, UNSIGNED, WRAP, Semantics, Term

SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not", ast.Invert: "~",
}  # fmt: skip
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
SHIFTS = {"<<": "shift_left", ">>": "shift_right"}


class Translator(ABC):
    """Translates expressions into terms. What names stand for, and how a mistake is reported, is the caller's.

    Attributes
    ----------
    semantics : Semantics
    excuse : str
        Ends the sentence about what is not in the language.
    """

    semantics: Semantics
    excuse: str

    @abstractmethod
    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        """Raise an error that says where, and why."""

    @abstractmethod
    def named(self, node: ast.Name | ast.Attribute) -> Term:
        """What a name stands for."""

    def function_of(self, node: ast.Call) -> str:
        """The name of a function of the language that is called; another one if it is not one."""
        return node.func.id if isinstance(node.func, ast.Name) else ""

    def term(self, node: ast.expr) -> Term:
        """Any expression."""
        match node:
            case ast.Constant():
                return self.constant(node, node.value)
            case ast.Name() | ast.Attribute():
                return self.named(node)
            case ast.UnaryOp(op=ast.Not()):
                return Term(f"(not {self.test(node.operand)})", BOOL)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return self.constant(node, -value)
            case ast.UnaryOp():
                return self._unary(node, self.term(node.operand))
            case ast.BinOp():
                return self.binary(node, node.op, self.term(node.left), self.term(node.right))
            case ast.Compare():
                return self._comparison(node)
            case ast.BoolOp():
                return self._joined(node)
            case ast.IfExp():
                return self._choice(node)
            case ast.Call():
                return self.call(node)
        self.refuse(node, f"{ast.unparse(node)} {self.excuse}")

    def test(self, node: ast.expr) -> str:
        """The text of whether an expression counts as true."""
        if isinstance(node, ast.BoolOp):
            word = " and " if isinstance(node.op, ast.And) else " or "
            return f"({word.join(map(self.test, node.values))})"
        return terms.as_test(self.term(node))

    def constant(self, node: ast.AST, value: Any) -> Term:
        """A number."""
        if not isinstance(value, bool | int | float | np.bool_ | np.int64 | np.uint64) or value != value:
            self.refuse(node, f"{ast.unparse(node)} is not a number of 64 bits")
        if self.semantics is PLAIN:
            return Term(repr(int(value) if isinstance(value, bool) else value), NATIVE)
        above = isinstance(value, int) and 1 << 63 <= value < 1 << 64
        if self.semantics is WRAP and (above or isinstance(value, np.uint64)):
            return Term(f"Unsigned({int(value)}ULL)", UNSIGNED)
        try:
            return terms.number(value)
        except OptionError as error:
            self.refuse(node, str(error))

    def binary(self, node: ast.AST, operation: ast.operator, a: Term, b: Term) -> Term:
        """An operation on two values."""
        sign = SIGNS[type(operation)]
        if sign not in self.semantics.operators:
            self.refuse(node, f"{sign} {self.excuse}; operators are {' '.join(self.semantics.operators)}")
        kinds = (a.kind, b.kind)
        a, b = self._alike(node, sign, a, b)
        if sign == "/" and a.kind == INT:
            a, b = terms.converted(a, FLOAT), terms.converted(b, FLOAT)
        if a.kind == NATIVE or sign in ("+", "-", "*"):
            return terms.arithmetic(sign, a, b, self.semantics)
        if (a.kind == FLOAT) != (sign == "/"):
            self._refuse_kinds(node, sign, *kinds)
        if sign in ("&", "|", "^"):
            whole = terms.bitwise(sign, a, b)
            return Term(f"Bool({whole.text})", BOOL) if kinds == (BOOL, BOOL) else whole
        if sign in SHIFTS:
            return Term(terms.in_order(f"{SHIFTS[sign]}({{}}, {{}})", a, b), a.kind)
        return terms.quotient(sign, a, b, self.semantics)

    def _unary(self, node: ast.UnaryOp, a: Term) -> Term:
        if isinstance(node.op, ast.Invert):
            if "~" not in self.semantics.operators or a.kind not in (INT, UNSIGNED):
                self.refuse(node, f"{ast.unparse(node)} {self.excuse}")
            return Term(f"(~{a.text})", a.kind)
        if a.kind == UNSIGNED:
            self._refuse_kinds(node, "-", a.kind)
        (a,) = self._alike(node, "-", a)
        return terms.negative(a, self.semantics) if isinstance(node.op, ast.USub) else a

    def _comparison(self, node: ast.Compare) -> Term:
        sides = [self.term(part) for part in (node.left, *node.comparators)]
        pairs = []
        for operation, a, b in zip(node.ops, sides, sides[1:]):
            sign = SIGNS[type(operation)]
            if sign not in COMPARISONS:
                self.refuse(node, f"{ast.unparse(node)} {self.excuse}; comparisons are {' '.join(COMPARISONS)}")
            pairs.append(terms.in_order(f"({{}} {sign} {{}})", *self._alike(node, sign, a, b)))
        return Term(pairs[0] if len(pairs) == 1 else f"({' and '.join(pairs)})", BOOL)

    def _joined(self, node: ast.BoolOp) -> Term:
        if self.semantics is WRAP and any(self.term(value).kind != BOOL for value in node.values):
            self.refuse(node, "and, or between numbers, outside of a test")  # Python returns one of the numbers
        return Term(self.test(node), BOOL)

    def _choice(self, node: ast.IfExp) -> Term:
        test, a, b = self.test(node.test), self.term(node.body), self.term(node.orelse)
        if (a.kind, b.kind) != (BOOL, BOOL):
            a, b = self._alike(node, "if else", a, b)
        form = "({} ? {} : {})" if self.semantics.raises else "select({}, {}, {})"
        return Term(form.format(test, a.text, b.text), a.kind, min(a.low, b.low), max(a.high, b.high))

    def call(self, node: ast.Call) -> Term:
        """A function of the language."""
        name, known = self.function_of(node), ", ".join(self.semantics.functions)
        if name not in self.semantics.functions or node.keywords:
            self.refuse(node, f"{ast.unparse(node.func)}() {self.excuse}; functions are {known}")
        given = [self.term(value) for value in node.args]
        if name in ("min", "max"):
            if len(given) < 2:
                self.refuse(node, f"{name}() takes 2 values or more, not {len(given)}")
            result, *others = self._alike(node, f"{name}()", *given)
            if self.semantics is WRAP and result.kind == FLOAT:  # numba has its own order of what is not a number
                self._refuse_kinds(node, f"{name}()", FLOAT)
            for other in others:
                result = terms.extreme(name, result, other)
            return result
        if len(given) != 1:
            self.refuse(node, f"{name}() takes 1 value, not {len(given)}")
        return self._of_one(node, name, given[0])

    def _of_one(self, node: ast.Call, name: str, a: Term) -> Term:
        """A function of one number."""
        unsigned = a.kind == UNSIGNED
        strange = unsigned and name not in ("int", "int64", "uint64") or a.kind == FLOAT and name == "uint64"
        if strange or terms.common({a.kind}) is None:
            self._refuse_kinds(node, f"{name}()", a.kind)
        if name == "uint64":
            return a if unsigned else Term(f"Unsigned({a.text})", UNSIGNED)
        if name in ("int", "int64", "floor"):
            if a.kind == FLOAT:
                whole = f"floor({a.text})" if name == "floor" else a.text
                return Term(f"{self.semantics.name}_int({whole})", INT)
            return a if unsigned and name == "int" else terms.converted(a, INT)  # numba's int() keeps a uint64
        if name == "abs" and a.kind != FLOAT:
            a = terms.converted(a, INT)
            low = terms.LOWEST if self.semantics is WRAP and a.low == terms.LOWEST else 0
            return Term(f"{self.semantics.name}_abs({a.text})", INT, low, terms.within(max(-a.low, a.high)))
        a = terms.converted(a, FLOAT)
        return a if name == "float" else Term(f"{'fabs' if name == 'abs' else name}({a.text})", FLOAT)

    def _alike(self, node: ast.AST, sign: str, *given: Term) -> list[Term]:
        """All, converted to their common type."""
        kind = terms.common({term.kind for term in given})
        if kind is None:
            self._refuse_kinds(node, sign, *(term.kind for term in given))
        return [terms.converted(term, kind) for term in given]

    def _refuse_kinds(self, node: ast.AST, sign: str, *kinds: str) -> NoReturn:
        which = " and ".join(dict.fromkeys(kind.lower() for kind in kinds))
        self.refuse(node, f"{ast.unparse(node)}: {sign} is not for {which}")
