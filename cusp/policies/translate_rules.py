"""Rules for the GPU: plain functions of numbers, from Python to CUDA C++ with the meaning that numba gives them.

Translated are arguments, arithmetic, comparisons, ``and or not``, ``if``, conditional expressions, assignments to
variables, ``for`` over ``range``, ``while``, ``min max abs``, casts to ``np.int64`` and ``np.uint64``, constants and
plain functions of the module, and what :class:`cusp.policies.prop.Prop` says of a node. What keeps state or looks at
the masters of other nodes needs the order of the stream: it stays on the host, as does whatever numba might
understand differently, such as numbers of mixed types. (Where an int64 overflows, numba promises nothing; here it
wraps around.)
"""

import ast
import builtins
import math
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np

INT, UNSIGNED, FLOAT, BOOL, PROP, NOTHING = "int", "unsigned", "float", "bool", "prop", "nothing"
C_TYPES = {INT: "Int", UNSIGNED: "Unsigned", FLOAT: "double", BOOL: "bool", PROP: "const Prop &"}  # of rules.cuh
NUMBERS = ("num_nodes", "num_edges", "num_parts", "rank", "rows", "columns", "threshold", "num_places", "first_node")
QUESTIONS = ("reader", "out_degree", "place", "neighbor_degree", "in_degree", "mapped")
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
STATEMENTS: dict[type, str] = {
    ast.Pass: "pass", ast.Expr: "expression", ast.Return: "return", ast.Assign: "assignment",
    ast.AnnAssign: "annotated", ast.AugAssign: "augmented", ast.If: "if", ast.While: "while", ast.For: "for",
    ast.Break: "break", ast.Continue: "continue",
}  # fmt: skip


class UntranslatableError(Exception):
    """What keeps a rule on the host: a reason with a line."""


def translate(master: Callable, edge: Callable) -> str:
    """Text of the device functions ``get_master`` and ``get_edge_owner``, and of those that they call.

    Raises
    ------
    UntranslatableError
    """
    module = _Module()
    module.add_rule("get_master", master, (PROP, INT, NOTHING, NOTHING))
    module.add_rule("get_edge_owner", edge, (PROP, INT, INT, INT, INT, NOTHING))
    return "\n".join(module.texts) + "\n"


def why_not(master: Callable, edge: Callable) -> str | None:
    """None if both rules can be translated, else the reason."""
    try:
        translate(master, edge)
    except UntranslatableError as error:
        return str(error)
    return None


class _Module:
    """The functions translated so far; each once for every choice of types of its arguments."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._known: dict[tuple[FunctionType, tuple[str, ...]], tuple[str, str]] = {}
        self._open: list[FunctionType] = []

    def add_rule(self, name: str, rule: Callable, kinds: tuple[str, ...]) -> None:
        assert isinstance(rule, FunctionType)
        called, kind = self.add(rule, kinds)
        if kind not in (INT, BOOL):
            raise UntranslatableError(f"{_place(rule)}: {rule.__name__} returns {kind}")
        places = [i for i, k in enumerate(kinds) if k != NOTHING]
        parameters = ", ".join(f"{_declared(kinds[i])}a{i}" for i in places)
        given = ", ".join(f"a{i}" for i in places)
        head = f"__device__ __forceinline__ Int {name}({parameters}, int &raised)"
        self.texts.append(f"{head} {{ return {called}({given}, raised); }}")

    def add(self, function: FunctionType, kinds: tuple[str, ...]) -> tuple[str, str]:
        """Name in C and type of what a function returns for these types of arguments."""
        if (function, kinds) in self._known:
            return self._known[function, kinds]
        if function in self._open:
            raise UntranslatableError(f"{_place(function)}: {function.__name__} calls itself")
        name = f"user_{function.__name__}_{len(self._known) + len(self._open)}"
        self._open.append(function)
        try:
            kind, text = _Function(self, function, kinds).translated(name)
        finally:
            self._open.pop()
        self.texts.append(text)
        self._known[function, kinds] = name, kind
        return name, kind


class _Function:
    """Translation of one function for given types of its arguments."""

    def __init__(self, module: _Module, function: FunctionType, kinds: tuple[str, ...]) -> None:
        self._module, self._function = module, function
        code = function.__code__
        if code.co_kwonlyargcount or code.co_flags & 0x0C or code.co_flags & 0x20:  # *args, **kwargs, generator
            raise UntranslatableError(
                f"{_place(function)}: {function.__name__} has unusual arguments, or is a generator"
            )
        self._definition = _definition_of(function)
        self._arguments = code.co_varnames[: code.co_argcount]
        self._kinds = dict(zip(self._arguments, kinds, strict=True))
        self._returns: str | None = None
        self._loops = 0

    def translated(self, name: str) -> tuple[str, str]:
        lines, falls = self._block(self._definition.body, {n for n, kind in self._kinds.items() if kind != NOTHING})
        if falls or self._returns is None:
            self._refuse(self._definition, "can end without returning a number")
        given = [(n, kind) for n in self._arguments if (kind := self._kinds[n]) != NOTHING]
        parameters = "".join(f"{_declared(kind)}{_c_name(n)}, " for n, kind in given)
        local = [(n, kind) for n, kind in self._kinds.items() if n not in self._arguments]
        declared = [f"    {C_TYPES[kind]} {_c_name(n)} = 0;" for n, kind in local]
        head = f"__device__ __forceinline__ {C_TYPES[self._returns]} {name}({parameters}int &raised) {{"
        body = [f"    {line}" for line in lines]
        return self._returns, "\n".join([head, *declared, *body, "}"])

    def _refuse(self, node: ast.AST, why: str) -> NoReturn:
        raise UntranslatableError(f"{_place(self._function, getattr(node, 'lineno', None))}: {why}")

    # Statements. A block also says whether its end can be reached, and adds what is certainly assigned then.

    def _block(self, statements: list[ast.stmt], assigned: set[str]) -> tuple[list[str], bool]:
        lines: list[str] = []
        for statement in statements:
            if type(statement) not in STATEMENTS:
                self._refuse(statement, f"{type(statement).__name__} cannot be translated")
            more, falls = getattr(self, f"_{STATEMENTS[type(statement)]}")(statement, assigned)
            lines += more
            if not falls:
                return lines, False
        return lines, True

    def _pass(self, node: ast.Pass, assigned: set[str]) -> tuple[list[str], bool]:
        return [], True

    def _expression(self, node: ast.Expr, assigned: set[str]) -> tuple[list[str], bool]:
        if not isinstance(node.value, ast.Constant):
            self._refuse(node, "an expression without an effect on numbers")
        return [], True

    def _return(self, node: ast.Return, assigned: set[str]) -> tuple[list[str], bool]:
        if node.value is None:
            self._refuse(node, "returns nothing")
        code, kind = self._value(node.value, assigned)
        if self._returns is None:
            self._returns = kind
        if {kind, self._returns} == {INT, BOOL}:
            self._returns = INT  # numba makes both whole numbers
        elif kind != self._returns:
            self._refuse(node, f"returns {kind} here and {self._returns} elsewhere")
        return [f"return {code};"], False

    def _assignment(self, node: ast.Assign, assigned: set[str]) -> tuple[list[str], bool]:
        lines: list[str] = []
        for target in node.targets:
            if isinstance(target, ast.Tuple):
                lines += self._assign_tuple(node, target, assigned)
            else:
                lines += self._assign(target, *self._value(node.value, assigned), assigned)
        return lines, True

    def _assign_tuple(self, node: ast.Assign, target: ast.Tuple, assigned: set[str]) -> list[str]:
        if not isinstance(node.value, ast.Tuple) or len(node.value.elts) != len(target.elts):
            self._refuse(node, "a tuple that is not written out")
        values = [self._value(value, assigned) for value in node.value.elts]
        kept = [f"const {C_TYPES[kind]} t{i} = {code};" for i, (code, kind) in enumerate(values)]
        stored = [
            line for i, part in enumerate(target.elts) for line in self._assign(part, f"t{i}", values[i][1], assigned)
        ]
        return ["{", *_indented(kept + stored), "}"]

    def _annotated(self, node: ast.AnnAssign, assigned: set[str]) -> tuple[list[str], bool]:
        if node.value is None:
            return [], True
        return self._assign(node.target, *self._value(node.value, assigned), assigned), True

    def _augmented(self, node: ast.AugAssign, assigned: set[str]) -> tuple[list[str], bool]:
        if not isinstance(node.target, ast.Name):
            self._refuse(node, "changes something that is not a variable")
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        value = self._binary(node, node.op, self._value(read, assigned), self._value(node.value, assigned))
        return self._assign(node.target, *value, assigned), True

    def _assign(self, target: ast.expr, code: str, kind: str, assigned: set[str]) -> list[str]:
        if not isinstance(target, ast.Name):
            self._refuse(target, "changes something that is not a variable")
        known = self._kinds.setdefault(target.id, kind)
        if known != kind:
            self._refuse(target, f"{target.id} is {known} in one place and {kind} in another")
        assigned.add(target.id)
        return [f"{_c_name(target.id)} = {code};"]

    def _if(self, node: ast.If, assigned: set[str]) -> tuple[list[str], bool]:
        test = self._test(node.test, assigned)
        yes, no = set(assigned), set(assigned)
        lines, falls = self._block(node.body, yes)
        other, other_falls = self._block(node.orelse, no)
        assigned |= yes & no if falls and other_falls else yes if falls else no
        lines = [f"if ({test}) {{", *_indented(lines), "}"]
        if other:
            lines += ["else {", *_indented(other), "}"]
        return lines, falls or other_falls

    def _while(self, node: ast.While, assigned: set[str]) -> tuple[list[str], bool]:
        if node.orelse:
            self._refuse(node, "a loop with else")
        test = self._test(node.test, assigned)
        lines, _ = self._block(node.body, set(assigned))
        return [f"while ({test}) {{", *_indented(lines), "}"], True

    def _for(self, node: ast.For, assigned: set[str]) -> tuple[list[str], bool]:
        call = node.iter
        if node.orelse:
            self._refuse(node, "a loop with else")
        called = call.func if isinstance(call, ast.Call) and not call.keywords else None
        if not (isinstance(call, ast.Call) and isinstance(called, ast.Name) and self._object(called) is range):
            self._refuse(node, "a loop over something else than range()")
        start, stop, step = self._range(call, assigned)
        self._loops += 1
        at, end = f"at{self._loops}", f"end{self._loops}"
        inside = set(assigned)
        lines = self._assign(node.target, at, INT, inside)
        body, _ = self._block(node.body, inside)
        compare = "<" if step > 0 else ">"
        head = f"for (Int {at} = {start}, {end} = {stop}; {at} {compare} {end}; {at} += {step}) {{"
        return [head, *_indented(lines + body), "}"], True

    def _range(self, call: ast.Call, assigned: set[str]) -> tuple[str, str, int]:
        values = [self._value(part, assigned) for part in call.args[:2]]
        if not 1 <= len(call.args) <= 3 or any(kind != INT for _, kind in values):
            self._refuse(call, "range() of something else than whole numbers")
        step = 1
        if len(call.args) == 3:
            try:
                step = ast.literal_eval(call.args[2])
            except ValueError:
                step = 0
            if not isinstance(step, int) or isinstance(step, bool) or not 0 < abs(step) < 1 << 31:
                self._refuse(call, "range() with a step that is not written out")
        codes = [code for code, _ in values]
        return ("0LL", codes[0], step) if len(codes) == 1 else (codes[0], codes[1], step)

    def _break(self, node: ast.Break, assigned: set[str]) -> tuple[list[str], bool]:
        return ["break;"], False

    def _continue(self, node: ast.Continue, assigned: set[str]) -> tuple[list[str], bool]:
        return ["continue;"], False

    # Expressions: code in C and type.

    def _value(self, node: ast.expr, assigned: set[str]) -> tuple[str, str]:
        if isinstance(node, ast.Constant):
            return self._constant(node, node.value)
        if isinstance(node, ast.Name):
            return self._name(node, assigned)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.BinOp):
            left, right = self._value(node.left, assigned), self._value(node.right, assigned)
            return self._binary(node, node.op, left, right)
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
        self._refuse(node, f"{type(node).__name__} cannot be translated")

    def _test(self, node: ast.expr, assigned: set[str]) -> str:
        """Whether a value counts as true."""
        if isinstance(node, ast.BoolOp):
            joint = " && " if isinstance(node.op, ast.And) else " || "
            return f"({joint.join(self._test(value, assigned) for value in node.values)})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!{self._test(node.operand, assigned)}"
        code, kind = self._value(node, assigned)
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
        self._refuse(node, f"a constant of type {type(value).__name__} ({value})"[:100])

    def _name(self, node: ast.Name, assigned: set[str]) -> tuple[str, str]:
        if node.id in self._function.__code__.co_varnames + self._function.__code__.co_cellvars:
            if self._kinds.get(node.id) == NOTHING:
                self._refuse(node, f"looks at {node.id}")
            if node.id not in assigned:
                self._refuse(node, f"{node.id} may not have a value yet")
            return _c_name(node.id), self._kinds[node.id]
        return self._constant(node, self._object(node))

    def _attribute(self, node: ast.Attribute) -> tuple[str, str]:
        if self._is_prop(node.value):
            if node.attr not in NUMBERS:
                self._refuse(node, f"prop.{node.attr}")
            return f"{_c_name(node.value.id)}.{node.attr}", INT  # type: ignore[attr-defined]
        return self._constant(node, self._object(node))

    def _binary(self, node: ast.AST, operation: ast.operator, left: tuple, right: tuple) -> tuple[str, str]:
        (a, kind), (b, other) = left, right
        if type(operation) in BITWISE:
            if kind != other and {kind, other} == {INT, BOOL}:
                kind = other = INT
            if kind != other or kind not in (INT, UNSIGNED, BOOL):
                self._refuse(node, f"{kind} and {other} together")
            joined = _in_order([a, b], lambda x: f"({x[0]} {BITWISE[type(operation)]} {x[1]})")
            return (f"bool({joined})", BOOL) if kind == BOOL else (joined, kind)
        if isinstance(operation, ast.Div):
            if not {kind, other} <= {INT, FLOAT}:
                self._refuse(node, f"{kind} and {other} together")
            return _in_order([a, b], lambda x: f"float_div(double({x[0]}), double({x[1]}), raised)"), FLOAT
        if isinstance(operation, ast.Pow):
            return self._power(node, left, right)
        if type(operation) not in ARITHMETIC:
            self._refuse(node, f"{type(operation).__name__} cannot be translated")
        name, raises, kinds = ARITHMETIC[type(operation)]
        if {kind, other} == {INT, FLOAT}:
            a, b, kind, other = f"double({a})", f"double({b})", FLOAT, FLOAT
        if {kind, other} <= {INT, BOOL} and FLOAT in kinds:  # + - *
            kind = other = INT
        if kind != other or kind not in kinds:
            self._refuse(node, f"{kind} and {other} together")
        last = ", raised" if raises else ""
        return _in_order([a, b], lambda x: f"{kind}_{name}({x[0]}, {x[1]}{last})"), kind

    def _power(self, node: ast.AST, left: tuple[str, str], right: tuple[str, str]) -> tuple[str, str]:
        exponent = node.right if isinstance(node, ast.BinOp) else getattr(node, "value", None)
        constant = isinstance(exponent, ast.Constant) and isinstance(exponent.value, int)
        if left[1] != INT or right[1] != INT or not constant:
            self._refuse(node, "a power whose exponent is not a whole number written out")
        return f"int_power({left[0]}, {right[0]})", INT

    def _unary(self, node: ast.UnaryOp, assigned: set[str]) -> tuple[str, str]:
        if isinstance(node.op, ast.Not):
            return f"!{self._test(node.operand, assigned)}", BOOL
        code, kind = self._value(node.operand, assigned)
        if isinstance(node.op, ast.USub) and kind == INT:
            return f"int_sub(0LL, {code})", INT
        if isinstance(node.op, ast.USub) and kind == FLOAT:
            return f"(-{code})", FLOAT
        if isinstance(node.op, ast.UAdd) and kind in (INT, FLOAT):
            return code, kind
        if isinstance(node.op, ast.Invert) and kind in (INT, UNSIGNED):
            return f"(~{code})", kind
        self._refuse(node, f"{type(node.op).__name__} of {kind}")

    def _compare(self, node: ast.Compare, assigned: set[str]) -> tuple[str, str]:
        values = [self._value(part, assigned) for part in (node.left, *node.comparators)]
        pairs = []
        for operation, (a, kind), (b, other) in zip(node.ops, values, values[1:]):
            if type(operation) not in COMPARISONS:
                self._refuse(node, f"{type(operation).__name__} cannot be translated")
            if kind != other and UNSIGNED in (kind, other):
                self._refuse(node, f"{kind} and {other} together")
            if not {kind, other} <= {INT, UNSIGNED, FLOAT, BOOL}:
                self._refuse(node, f"a comparison of {kind} and {other}")
            if FLOAT in (kind, other):
                a, b = f"double({a})", f"double({b})"
            sign = COMPARISONS[type(operation)]
            pairs.append(_in_order([a, b], lambda x, sign=sign: f"({x[0]} {sign} {x[1]})"))  # type: ignore[misc]
        return f"({' && '.join(pairs)})", BOOL

    def _bool_op(self, node: ast.BoolOp, assigned: set[str]) -> tuple[str, str]:
        if any(self._value(value, assigned)[1] != BOOL for value in node.values):
            self._refuse(node, "and, or between numbers, outside of a test")
        return self._test(node, assigned), BOOL

    def _conditional(self, node: ast.IfExp, assigned: set[str]) -> tuple[str, str]:
        test = self._test(node.test, assigned)
        (a, kind), (b, other) = self._value(node.body, assigned), self._value(node.orelse, assigned)
        if {kind, other} == {INT, BOOL}:
            kind = other = INT
        if kind != other or kind == PROP:
            self._refuse(node, f"{kind} or {other}")
        return f"({test} ? {C_TYPES[kind]}({a}) : {C_TYPES[kind]}({b}))", kind

    def _call(self, node: ast.Call, assigned: set[str]) -> tuple[str, str]:
        if node.keywords or any(isinstance(part, ast.Starred) for part in node.args):
            self._refuse(node, "arguments by name")
        if isinstance(node.func, ast.Attribute) and self._is_prop(node.func.value):
            return self._question(node, node.func, assigned)
        called = self._object(node.func)
        if isinstance(called, FunctionType) and isinstance(node.func, ast.Name):
            return self._call_function(node, called, assigned)
        values = [self._value(part, assigned) for part in node.args]
        kinds = {kind for _, kind in values}
        if called in (min, max, abs) and len(kinds) == 1:
            return self._least_or_most(node, called.__name__, values)
        if len(values) == 1:
            return self._cast(node, called, *values[0])
        self._refuse(node, f"a call of {ast.unparse(node.func)}")

    def _question(self, node: ast.Call, function: ast.Attribute, assigned: set[str]) -> tuple[str, str]:
        if function.attr not in QUESTIONS or len(node.args) != 1:
            self._refuse(node, f"prop.{function.attr}()")
        code, kind = self._value(node.args[0], assigned)
        if kind != INT:
            self._refuse(node, f"prop.{function.attr}() of {kind}")
        return f"prop_{function.attr}({_c_name(function.value.id)}, {code})", INT  # type: ignore[attr-defined]

    def _call_function(self, node: ast.Call, called: FunctionType, assigned: set[str]) -> tuple[str, str]:
        values = [self._value(part, assigned) for part in node.args]
        if called.__code__.co_argcount != len(values):
            self._refuse(node, f"{called.__name__} has {called.__code__.co_argcount} arguments")
        name, kind = self._module.add(called, tuple(kind for _, kind in values))
        codes = [code for code, _ in values]
        return _in_order(codes, lambda x: f"{name}({''.join(f'{code}, ' for code in x)}raised)"), kind

    def _least_or_most(self, node: ast.Call, name: str, values: list[tuple[str, str]]) -> tuple[str, str]:
        code, kind = values[0]
        wanted = (INT,) if name == "abs" else (INT, UNSIGNED)
        if kind not in wanted or (len(values) == 1) != (name == "abs"):
            self._refuse(node, f"{name}() of {len(values)} {kind}")
        if name == "abs":
            return f"int_abs({code})", INT
        for other, _ in values[1:]:
            code = _in_order([code, other], lambda x: f"{kind}_{name}({x[0]}, {x[1]})")
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
        self._refuse(node, f"a call of {ast.unparse(node.func)} of {kind}")

    # Names.

    def _is_prop(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self._kinds.get(node.id) == PROP

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
        self._refuse(node, f"{ast.unparse(node)} cannot be translated")


def _place(function: FunctionType, line: int | None = None) -> str:
    return f"{Path(function.__code__.co_filename).name}:{line or function.__code__.co_firstlineno}"


def _in_order(codes: list[str], join: Callable[[list[str]], str]) -> str:
    """Code that joins others. Where several may raise they run from left to right, so that the first is known."""
    if sum("raised" in code for code in codes) < 2:
        return join(codes)
    kept = " ".join(f"const auto x{i} = {code};" for i, code in enumerate(codes))
    return f"[&] {{ {kept} return {join([f'x{i}' for i in range(len(codes))])}; }}()"


def _declared(kind: str) -> str:
    return C_TYPES[kind] + ("" if kind == PROP else " ")


def _c_name(name: str) -> str:
    """A variable's name in C, where it is no word of the language."""
    return "v_" + name if name.isascii() else "v_" + name.encode().hex()


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _definition_of(function: FunctionType) -> ast.FunctionDef:
    """Where the function stands in its file, if what stands there is still what was compiled."""
    code = function.__code__
    try:
        text = Path(code.co_filename).read_text()
        tree, compiled = ast.parse(text), compile(text, code.co_filename, "exec")
    except (OSError, SyntaxError, ValueError):
        raise UntranslatableError(f"the text of {function.__name__} is not at hand") from None
    if any(_same(other, code) for other in _codes(compiled)):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
                if min([node.lineno, *(d.lineno for d in node.decorator_list)]) == code.co_firstlineno:
                    return node
    raise UntranslatableError(f"the text of {function.__name__} is not at hand")


def _codes(code: CodeType) -> list[CodeType]:
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    return inner + [deeper for part in inner for deeper in _codes(part)]


def _same(one: CodeType, other: CodeType) -> bool:
    def key(code: CodeType) -> tuple:
        constants = [part for part in code.co_consts if not isinstance(part, CodeType)]
        return (code.co_name, code.co_firstlineno, code.co_code, code.co_names, code.co_varnames, repr(constants))

    return key(one) == key(other)
