"""Rules for the GPU: plain functions of numbers, from Python to CUDA C++ with the meaning that numba gives them.

docs/language.md says what is translated. What keeps state or looks at the masters of other nodes needs the order of the
stream: it stays on the host. So do loops, and whatever numba might understand differently, such as numbers of mixed
types. (Where an int64 overflows, numba promises nothing; here it wraps around.)
"""

import ast
import builtins
import math
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np

from cusp.language.terms import BOOL, INT, WRAP, Term, in_order
from cusp.language.translator import Translator
from cusp.policies.definitions import definition_of
from cusp.policies.prop import METHODS, NUMBERS

PROP, NOTHING = "const Prop&", "Nothing"  # types of arguments
CALLED = {  # what a name of a module stands for -> the function of the language
    min: "min", max: "max", abs: "abs", int: "int", float: "float", np.int64: "int64", np.uint64: "uint64",
    np.float64: "float", math.sqrt: "sqrt",
}  # fmt: skip


class UntranslatableError(Exception):
    """Why a rule has to run on the host, with file and line."""


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


class _Module:
    """The functions translated so far, each once for every combination of types of its arguments."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._known: dict[tuple[FunctionType, tuple[str, ...]], tuple[str, str]] = {}
        self._open: list[FunctionType] = []

    def add_rule(self, name: str, rule: Callable, kinds: tuple[str, ...]) -> None:
        assert isinstance(rule, FunctionType)
        called, kind = self.add(rule, kinds)
        if kind not in (INT, BOOL):
            raise UntranslatableError(f"{place_of(rule)}: {rule.__name__} returns {kind.lower()}")
        places = [i for i, k in enumerate(kinds) if k != NOTHING]
        parameters = "".join(f", {kinds[i]} a{i}" for i in places)
        arguments = "".join(f", a{i}" for i in places)
        head = f"__device__ __forceinline__ Int {name}(int& raised{parameters})"
        self.texts.append(f"{head} {{ return {called}(raised{arguments}); }}")

    def add(self, function: FunctionType, kinds: tuple[str, ...]) -> tuple[str, str]:
        """Name in C and type of what a function returns for these types of arguments."""
        if (function, kinds) in self._known:
            return self._known[function, kinds]
        if function in self._open:
            raise UntranslatableError(f"{place_of(function)}: {function.__name__} calls itself")
        name = f"user_{function.__name__}_{len(self._known) + len(self._open)}"
        self._open.append(function)
        try:
            kind, text = _Function(self, function, kinds).translated(name)
        finally:
            self._open.pop()
        self.texts.append(text)
        self._known[function, kinds] = name, kind
        return name, kind


class _Function(Translator):
    """Translation of one function for given types of its arguments.

    Attributes
    ----------
    kinds : dict of str
        Types of arguments and variables; variables are added as they are assigned.
    assigned : set of str
        Variables that certainly have a value where the translation is.
    """

    semantics, excuse = WRAP, "cannot be translated"

    def __init__(self, module: _Module, function: FunctionType, kinds: tuple[str, ...]) -> None:
        code = function.__code__
        if code.co_kwonlyargcount or code.co_flags & 0x0C or code.co_flags & 0x20:  # *args, **kwargs, generator
            raise UntranslatableError(
                f"{place_of(function)}: {function.__name__} has unusual arguments, or is a generator"
            )
        definition = definition_of(function)
        if definition is None:
            raise UntranslatableError(f"the text of {function.__name__} is not available")
        self._module, self._function, self._definition = module, function, definition
        self._arguments = code.co_varnames[: code.co_argcount]
        self.kinds = dict(zip(self._arguments, kinds, strict=True))
        self.assigned = {name for name, kind in self.kinds.items() if kind != NOTHING}
        self._returns: str | None = None

    def translated(self, name: str) -> tuple[str, str]:
        """Type of what it returns, and its text."""
        lines, falls = self._block(self._definition.body)
        if falls or self._returns is None:
            self.refuse(self._definition, "can end without returning a number")
        used = [(n, kind) for n in self._arguments if (kind := self.kinds[n]) != NOTHING]
        parameters = "".join(f", {kind} {c_name(n)}" for n, kind in used)
        local = [(n, kind) for n, kind in self.kinds.items() if n not in self._arguments]
        declared = [f"    {kind} {c_name(n)} = 0;" for n, kind in local]
        head = f"__device__ __forceinline__ {self._returns} {name}(int& raised{parameters}) {{"
        return self._returns, "\n".join([head, *declared, *_indented(lines), "}"])

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        """Leave the rule on the host, for a reason with file and line."""
        raise UntranslatableError(f"{place_of(self._function, getattr(node, 'lineno', None))}: {why}")

    # Expressions: what names and calls stand for.

    def named(self, node: ast.Name | ast.Attribute) -> Term:
        if isinstance(node, ast.Name) and self._is_local(node.id):
            if self.kinds.get(node.id) == NOTHING:
                self.refuse(node, f"looks at {node.id}")
            if node.id not in self.assigned:
                self.refuse(node, f"{node.id} may not have a value yet")
            return Term(c_name(node.id), self.kinds[node.id])
        if prop := self._prop_of(node):
            if node.attr not in NUMBERS:  # type: ignore[union-attr]
                self.refuse(node, ast.unparse(node))
            return Term(f"{prop}.{node.attr}", INT)  # type: ignore[union-attr]
        return self.constant(node, self._object(node))

    def function_of(self, node: ast.Call) -> str:
        called = self._object(node.func)
        return CALLED.get(called, "") if isinstance(called, type | type(min)) else ""

    def call(self, node: ast.Call) -> Term:
        if node.keywords or any(isinstance(part, ast.Starred) for part in node.args):
            self.refuse(node, "arguments by name")
        if prop := self._prop_of(node.func):
            method, terms = node.func.attr, [self.term(part) for part in node.args]  # type: ignore[attr-defined]
            if method not in METHODS or [term.kind for term in terms] != [INT]:
                self.refuse(node, f"prop.{method}() of {', '.join(term.kind.lower() for term in terms)}")
            return Term(f"prop_{method}({prop}, {terms[0].text})", INT)
        called = self._object(node.func)
        if not isinstance(called, FunctionType):
            return super().call(node)
        terms = [self.term(part) for part in node.args]
        if called.__code__.co_argcount != len(terms):
            self.refuse(node, f"{called.__name__} has {called.__code__.co_argcount} arguments")
        name, kind = self._module.add(called, tuple(term.kind for term in terms))
        return Term(in_order(f"{name}(raised{', {}' * len(terms)})", *terms), kind)

    def _is_local(self, name: str) -> bool:
        code = self._function.__code__
        return name in code.co_varnames + code.co_cellvars

    def _prop_of(self, node: ast.expr) -> str | None:
        """The argument in C of which this is an attribute, if that is the ``prop`` of a rule."""
        owner = getattr(node, "value", None)
        known = isinstance(node, ast.Attribute) and isinstance(owner, ast.Name) and self.kinds.get(owner.id) == PROP
        return c_name(owner.id) if known else None  # type: ignore[union-attr]

    def _object(self, node: ast.expr) -> Any:
        """What a name of the module, or of a module that it imports, stands for."""
        if isinstance(node, ast.Attribute):
            owner = self._object(node.value)
            if isinstance(owner, ModuleType) and hasattr(owner, node.attr):
                return getattr(owner, node.attr)
        if isinstance(node, ast.Name) and not self._is_local(node.id):
            names = self._function.__code__.co_freevars
            if node.id in names and self._function.__closure__:
                return self._function.__closure__[names.index(node.id)].cell_contents
            for scope in (self._function.__globals__, vars(builtins)):
                if node.id in scope:
                    return scope[node.id]
        self.refuse(node, f"{ast.unparse(node)} {self.excuse}")

    # Statements: lines of C, and whether the next statement can be reached.

    def _block(self, statements: list[ast.stmt]) -> tuple[list[str], bool]:
        lines: list[str] = []
        for node in statements:
            match node:
                case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.AnnAssign(value=None):
                    pass
                case ast.Return(value=ast.expr() as value):
                    return [*lines, self._return(node, self.term(value))], False
                case ast.Assign(targets=targets, value=value):
                    term = self.term(value)
                    lines += [self._assign(target, term) for target in targets]
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    lines.append(self._assign(target, self.term(value)))
                case ast.AugAssign(target=ast.Name(id=name) as target, op=operation, value=value):
                    read = ast.copy_location(ast.Name(name, ast.Load()), node)
                    term = self.binary(node, operation, self.term(read), self.term(value))
                    lines.append(self._assign(target, term))
                case ast.If():
                    more, falls = self._if(node)
                    lines += more
                    if not falls:
                        return lines, False
                case _:
                    self.refuse(node, f"{ast.unparse(node).splitlines()[0]} {self.excuse}")
        return lines, True

    def _return(self, node: ast.Return, term: Term) -> str:
        kinds = {term.kind, self._returns or term.kind}
        if len(kinds) > 1 and kinds != {INT, BOOL}:
            self.refuse(node, f"returns {term.kind.lower()} here and {str(self._returns).lower()} elsewhere")
        self._returns = INT if len(kinds) > 1 else term.kind  # numba makes both whole numbers
        return f"return {term.text};"

    def _assign(self, target: ast.expr, term: Term) -> str:
        if not isinstance(target, ast.Name):
            self.refuse(target, "changes something that is not a variable")
        known = self.kinds.setdefault(target.id, term.kind)
        if known != term.kind:
            self.refuse(target, f"{target.id} is {known.lower()} in one place and {term.kind.lower()} in another")
        self.assigned.add(target.id)
        return f"{c_name(target.id)} = {term.text};"

    def _if(self, node: ast.If) -> tuple[list[str], bool]:
        test, before = self.test(node.test), self.assigned
        self.assigned = set(before)
        lines, falls = self._block(node.body)
        yes, self.assigned = self.assigned, set(before)
        other, other_falls = self._block(node.orelse)
        if falls:
            self.assigned = yes & self.assigned if other_falls else yes
        lines = [f"if ({test}) {{", *_indented(lines), "}"]
        return lines + (["else {", *_indented(other), "}"] if other else []), falls or other_falls


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def place_of(function: FunctionType, line: int | None = None) -> str:
    """File and line, for messages."""
    return f"{Path(function.__code__.co_filename).name}:{line or function.__code__.co_firstlineno}"


def c_name(name: str) -> str:
    """A variable's name in C, where it cannot be a keyword."""
    return "v_" + name if name.isascii() else "v_" + name.encode().hex()
