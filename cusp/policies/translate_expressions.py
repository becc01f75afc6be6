"""Expressions of rules, from Python to CUDA C++ with the meaning that numba gives them; see translate_rules.py."""

import ast
import builtins
import math
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np

INT, UNSIGNED, FLOAT, BOOL, PROP, NOTHING = "int", "unsigned", "float", "bool", "prop", "nothing"
C_TYPES = {INT: "Int", UNSIGNED: "Unsigned", FLOAT: "double", BOOL: "bool", PROP: "const Prop &"}  # of rules.cuh
NUMBERS = ("num_nodes", "num_edges", "num_parts", "rank", "rows", "columns", "threshold", "num_places", "first_node")
METHODS = ("reader", "share", "pick", "out_degree", "place", "neighbor_degree", "in_degree", "mapped")
ARITHMETIC: dict[type, tuple[str, bool, tuple[str, ...]]] = {  # name, whether it can raise, for which types
    ast.Add: ("add", False, (INT, UNSIGNED, FLOAT)),
    ast.Sub: ("sub", False, (INT, UNSIGNED, FLOAT)),
    ast.Mult: ("mul", False, (INT, UNSIGNED, FLOAT)),
    ast.FloorDiv: ("floor_div", True, (INT, UNSIGNED)),
    ast.Mod: ("mod", True, (INT, UNSIGNED)),
    ast.LShift: ("left", False, (INT, UNSIGNED)),
    ast.RShift: ("right", False, (INT, UNSIGNED)),
}
BITWISE: dict[type, str] = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
COMPARISONS: dict[type, str] = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
IN_WORDS: dict[type, str] = {
    ast.For: "a for loop", ast.While: "a while loop", ast.Tuple: "a tuple", ast.Pow: "a power",
}  # fmt: skip


class UntranslatableError(Exception):
    """Why a rule has to run on the host, with file and line."""


class Expressions:
    """Translation of the expressions of one function: each becomes code in C and its type.

    Parameters
    ----------
    function : function
    kinds : dict of str
        Types of the arguments and variables by name; variables are added as they are assigned.
    add : function (function, types of its arguments) -> (name in C, type of what it returns)
        Translates a function that is called.
    """

    def __init__(
        self,
        function: FunctionType,
        kinds: dict[str, str],
        add: Callable[[FunctionType, tuple[str, ...]], tuple[str, str]],
    ) -> None:
        self._function, self.kinds, self._add = function, kinds, add

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        """Leave the rule on the host, for a reason with file and line."""
        raise UntranslatableError(f"{place_of(self._function, getattr(node, 'lineno', None))}: {why}")

    def value(self, node: ast.expr, assigned: set[str]) -> tuple[str, str]:
        """Any expression; ``assigned``: variables that certainly have a value."""
        if isinstance(node, ast.Constant):
            return self._constant(node, node.value)
        if isinstance(node, ast.Name):
            return self._name(node, assigned)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left, assigned), self.value(node.right, assigned)
            return self.binary(node, node.op, left, right)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node, assigned)
        if isinstance(node, ast.Compare):
            return self._compare(node, assigned)
        if isinstance(node, ast.BoolOp):
            return self._bool_op(node, assigned)
        if isinstance(node, ast.IfExp):
            return self._conditional(node, assigned)
        if isinstance(node, ast.Call):
            return self._call(node, assigned)
        self.refuse(node, f"{in_words(node)} cannot be translated")

    def test(self, node: ast.expr, assigned: set[str]) -> str:
        """Whether a value counts as true."""
        if isinstance(node, ast.BoolOp):
            joint = " && " if isinstance(node.op, ast.And) else " || "
            return f"({joint.join(self.test(value, assigned) for value in node.values)})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!{self.test(node.operand, assigned)}"
        code, kind = self.value(node, assigned)
        return code if kind == BOOL else f"({code} != 0)"

    def _constant(self, node: ast.AST, value: Any) -> tuple[str, str]:
        if isinstance(value, bool | np.bool_):
            return str(bool(value)).lower(), BOOL
        if isinstance(value, np.uint64) or (isinstance(value, int) and 1 << 63 <= value < 1 << 64):
            return f"{int(value)}ULL", UNSIGNED
        if isinstance(value, int | np.int64) and -(1 << 63) < int(value) < 1 << 63:
            return (f"{int(value)}LL" if value >= 0 else f"({int(value)}LL)"), INT
        if isinstance(value, float) and math.isfinite(value):
            return f"({value.hex()})", FLOAT
        self.refuse(node, f"a constant of type {type(value).__name__} ({value})"[:100])

    def _name(self, node: ast.Name, assigned: set[str]) -> tuple[str, str]:
        if node.id in self._function.__code__.co_varnames + self._function.__code__.co_cellvars:
            if self.kinds.get(node.id) == NOTHING:
                self.refuse(node, f"looks at {node.id}")
            if node.id not in assigned:
                self.refuse(node, f"{node.id} may not have a value yet")
            return c_name(node.id), self.kinds[node.id]
        return self._constant(node, self._object(node))

    def _attribute(self, node: ast.Attribute) -> tuple[str, str]:
        if self._is_prop(node.value):
            if node.attr not in NUMBERS:
                self.refuse(node, f"prop.{node.attr}")
            return f"{c_name(node.value.id)}.{node.attr}", INT  # type: ignore[attr-defined]
        return self._constant(node, self._object(node))

    def binary(self, node: ast.AST, operation: ast.operator, left: tuple, right: tuple) -> tuple[str, str]:
        """An operation on two values."""
        (a, kind), (b, other) = left, right
        if type(operation) in BITWISE:
            if kind != other and {kind, other} == {INT, BOOL}:
                kind = other = INT
            if kind != other or kind not in (INT, UNSIGNED, BOOL):
                self.refuse(node, f"{kind} and {other} together")
            joined = in_order([a, b], lambda x: f"({x[0]} {BITWISE[type(operation)]} {x[1]})")
            return (f"bool({joined})", BOOL) if kind == BOOL else (joined, kind)
        if isinstance(operation, ast.Div):
            if not {kind, other} <= {INT, FLOAT}:
                self.refuse(node, f"{kind} and {other} together")
            return in_order([a, b], lambda x: f"float_div(double({x[0]}), double({x[1]}), raised)"), FLOAT
        if type(operation) not in ARITHMETIC:
            self.refuse(node, f"{in_words(operation)} cannot be translated")
        name, raises, kinds = ARITHMETIC[type(operation)]
        if {kind, other} == {INT, FLOAT}:
            a, b, kind, other = f"double({a})", f"double({b})", FLOAT, FLOAT
        if {kind, other} <= {INT, BOOL} and FLOAT in kinds:  # + - *
            kind = other = INT
        if kind != other or kind not in kinds:
            self.refuse(node, f"{kind} and {other} together")
        last = ", raised" if raises else ""
        return in_order([a, b], lambda x: f"{kind}_{name}({x[0]}, {x[1]}{last})"), kind

    def _unary(self, node: ast.UnaryOp, assigned: set[str]) -> tuple[str, str]:
        if isinstance(node.op, ast.Not):
            return f"!{self.test(node.operand, assigned)}", BOOL
        code, kind = self.value(node.operand, assigned)
        if isinstance(node.op, ast.USub) and kind == INT:
            return f"int_sub(0LL, {code})", INT
        if isinstance(node.op, ast.USub) and kind == FLOAT:
            return f"(-{code})", FLOAT
        if isinstance(node.op, ast.UAdd) and kind in (INT, FLOAT):
            return code, kind
        if isinstance(node.op, ast.Invert) and kind in (INT, UNSIGNED):
            return f"(~{code})", kind
        self.refuse(node, f"{type(node.op).__name__} of {kind}")

    def _compare(self, node: ast.Compare, assigned: set[str]) -> tuple[str, str]:
        values = [self.value(part, assigned) for part in (node.left, *node.comparators)]
        pairs = []
        for operation, (a, kind), (b, other) in zip(node.ops, values, values[1:]):
            if type(operation) not in COMPARISONS:
                self.refuse(node, f"{in_words(operation)} cannot be translated")
            if kind != other and UNSIGNED in (kind, other):
                self.refuse(node, f"{kind} and {other} together")
            if not {kind, other} <= {INT, UNSIGNED, FLOAT, BOOL}:
                self.refuse(node, f"a comparison of {kind} and {other}")
            if FLOAT in (kind, other):
                a, b = f"double({a})", f"double({b})"
            sign = COMPARISONS[type(operation)]
            pairs.append(in_order([a, b], lambda x, sign=sign: f"({x[0]} {sign} {x[1]})"))  # type: ignore[misc]
        return f"({' && '.join(pairs)})", BOOL

    def _bool_op(self, node: ast.BoolOp, assigned: set[str]) -> tuple[str, str]:
        if any(self.value(value, assigned)[1] != BOOL for value in node.values):
            self.refuse(node, "and, or between numbers, outside of a test")
        return self.test(node, assigned), BOOL

    def _conditional(self, node: ast.IfExp, assigned: set[str]) -> tuple[str, str]:
        test = self.test(node.test, assigned)
        (a, kind), (b, other) = self.value(node.body, assigned), self.value(node.orelse, assigned)
        if {kind, other} == {INT, BOOL}:
            kind = other = INT
        if kind != other or kind == PROP:
            self.refuse(node, f"{kind} or {other}")
        return f"({test} ? {C_TYPES[kind]}({a}) : {C_TYPES[kind]}({b}))", kind

    def _call(self, node: ast.Call, assigned: set[str]) -> tuple[str, str]:
        if node.keywords or any(isinstance(part, ast.Starred) for part in node.args):
            self.refuse(node, "arguments by name")
        if isinstance(node.func, ast.Attribute) and self._is_prop(node.func.value):
            return self._method_of_prop(node, node.func, assigned)
        called = self._object(node.func)
        if isinstance(called, FunctionType) and isinstance(node.func, ast.Name):
            return self._call_function(node, called, assigned)
        values = [self.value(part, assigned) for part in node.args]
        kinds = {kind for _, kind in values}
        if called in (min, max, abs) and len(kinds) == 1:
            return self._least_or_most(node, called.__name__, values)
        if len(values) == 1:
            return self._cast(node, called, *values[0])
        self.refuse(node, f"a call of {ast.unparse(node.func)}")

    def _method_of_prop(self, node: ast.Call, function: ast.Attribute, assigned: set[str]) -> tuple[str, str]:
        if function.attr not in METHODS or len(node.args) != 1:
            self.refuse(node, f"prop.{function.attr}()")
        code, kind = self.value(node.args[0], assigned)
        if kind != INT:
            self.refuse(node, f"prop.{function.attr}() of {kind}")
        return f"prop_{function.attr}({c_name(function.value.id)}, {code})", INT  # type: ignore[attr-defined]

    def _call_function(self, node: ast.Call, called: FunctionType, assigned: set[str]) -> tuple[str, str]:
        values = [self.value(part, assigned) for part in node.args]
        if called.__code__.co_argcount != len(values):
            self.refuse(node, f"{called.__name__} has {called.__code__.co_argcount} arguments")
        name, kind = self._add(called, tuple(kind for _, kind in values))
        codes = [code for code, _ in values]
        return in_order(codes, lambda x: f"{name}({''.join(f'{code}, ' for code in x)}raised)"), kind

    def _least_or_most(self, node: ast.Call, name: str, values: list[tuple[str, str]]) -> tuple[str, str]:
        code, kind = values[0]
        allowed = (INT,) if name == "abs" else (INT, UNSIGNED)
        if kind not in allowed or (len(values) == 1) != (name == "abs"):
            self.refuse(node, f"{name}() of {len(values)} {kind}")
        if name == "abs":
            return f"int_abs({code})", INT
        for other, _ in values[1:]:
            code = in_order([code, other], lambda x: f"{kind}_{name}({x[0]}, {x[1]})")
        return code, kind

    def _cast(self, node: ast.Call, called: Any, code: str, kind: str) -> tuple[str, str]:
        if called is np.int64 and kind in (INT, UNSIGNED, BOOL):
            return f"Int({code})", INT
        if called is int and kind in (INT, BOOL):
            return f"Int({code})", INT
        if called in (np.int64, int) and kind == FLOAT:
            return f"float_to_int({code})", INT
        if called is np.uint64 and kind in (INT, UNSIGNED, BOOL):
            return f"Unsigned({code})", UNSIGNED
        if called in (float, np.float64) and kind in (INT, FLOAT, BOOL):
            return f"double({code})", FLOAT
        if called is math.sqrt and kind in (INT, FLOAT):
            return f"sqrt(double({code}))", FLOAT
        self.refuse(node, f"a call of {ast.unparse(node.func)} of {kind}")

    def _is_prop(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self.kinds.get(node.id) == PROP

    def _object(self, node: ast.expr) -> Any:
        """What a name of the module, or of a module that it imports, stands for."""
        if isinstance(node, ast.Attribute):
            owner = self._object(node.value)
            if isinstance(owner, ModuleType) and hasattr(owner, node.attr):
                return getattr(owner, node.attr)
        if isinstance(node, ast.Name) and node.id not in self._function.__code__.co_varnames:
            names = self._function.__code__.co_freevars
            if node.id in names and self._function.__closure__:
                return self._function.__closure__[names.index(node.id)].cell_contents
            for scope in (self._function.__globals__, vars(builtins)):
                if node.id in scope:
                    return scope[node.id]
        self.refuse(node, f"{ast.unparse(node)} cannot be translated")


def in_words(node: ast.AST) -> str:
    """What a part of a program is called in messages."""
    return IN_WORDS.get(type(node), type(node).__name__)


def place_of(function: FunctionType, line: int | None = None) -> str:
    """File and line, for messages."""
    return f"{Path(function.__code__.co_filename).name}:{line or function.__code__.co_firstlineno}"


def in_order(codes: list[str], join: Callable[[list[str]], str]) -> str:
    """Join pieces of code; if several may raise, they run from left to right, so that the first to raise is known."""
    if sum("raised" in code for code in codes) < 2:
        return join(codes)
    kept = " ".join(f"const auto x{i} = {code};" for i, code in enumerate(codes))
    return f"[&] {{ {kept} return {join([f'x{i}' for i in range(len(codes))])}; }}()"


def type_prefix(kind: str) -> str:
    """A type in C as it precedes the name of a parameter."""
    return C_TYPES[kind] + ("" if kind == PROP else " ")


def c_name(name: str) -> str:
    """A variable's name in C, where it cannot be a keyword."""
    return "v_" + name if name.isascii() else "v_" + name.encode().hex()
