"""Rules for the GPU: plain functions of numbers, from Python to CUDA C++ with the meaning that numba gives them.

Translated are arguments, arithmetic, comparisons, ``and or not``, ``if``, conditional expressions, assignments to
variables, ``min max abs``, casts to ``np.int64`` and ``np.uint64``, constants and plain functions of the module,
and what :class:`cusp.policies.prop.Prop` says of a node. What keeps state or looks at the masters of other nodes needs
the order of the stream: it stays on the host. So do loops, and whatever numba might understand differently, such as
numbers of mixed types. (Where an int64 overflows, numba promises nothing; here it wraps around.)
"""

import ast
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType

from cusp.policies.translate_expressions import (
    BOOL,
    C_TYPES,
    INT,
    NOTHING,
    PROP,
    Expressions,
    UntranslatableError,
    c_name,
    in_words,
    place_of,
    type_prefix,
)  # fmt: skip

STATEMENTS: dict[type, str] = {
    ast.Pass: "pass", ast.Expr: "expression", ast.Return: "return", ast.Assign: "assignment",
    ast.AnnAssign: "annotated", ast.AugAssign: "augmented", ast.If: "if",
}  # fmt: skip


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
    """The functions translated so far, each once for every combination of types of its arguments."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._known: dict[tuple[FunctionType, tuple[str, ...]], tuple[str, str]] = {}
        self._open: list[FunctionType] = []

    def add_rule(self, name: str, rule: Callable, kinds: tuple[str, ...]) -> None:
        assert isinstance(rule, FunctionType)
        called, kind = self.add(rule, kinds)
        if kind not in (INT, BOOL):
            raise UntranslatableError(f"{place_of(rule)}: {rule.__name__} returns {kind}")
        places = [i for i, k in enumerate(kinds) if k != NOTHING]
        parameters = ", ".join(f"{type_prefix(kinds[i])}a{i}" for i in places)
        arguments = ", ".join(f"a{i}" for i in places)
        head = f"__device__ __forceinline__ Int {name}({parameters}, int &raised)"
        self.texts.append(f"{head} {{ return {called}({arguments}, raised); }}")

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


class _Function(Expressions):
    """Translation of one function for given types of its arguments."""

    def __init__(self, module: _Module, function: FunctionType, kinds: tuple[str, ...]) -> None:
        code = function.__code__
        if code.co_kwonlyargcount or code.co_flags & 0x0C or code.co_flags & 0x20:  # *args, **kwargs, generator
            raise UntranslatableError(
                f"{place_of(function)}: {function.__name__} has unusual arguments, or is a generator"
            )
        self._definition = _definition_of(function)
        self._arguments = code.co_varnames[: code.co_argcount]
        super().__init__(function, dict(zip(self._arguments, kinds, strict=True)), module.add)
        self._returns: str | None = None

    def translated(self, name: str) -> tuple[str, str]:
        lines, falls = self._block(self._definition.body, {n for n, kind in self.kinds.items() if kind != NOTHING})
        if falls or self._returns is None:
            self.refuse(self._definition, "can end without returning a number")
        used = [(n, kind) for n in self._arguments if (kind := self.kinds[n]) != NOTHING]
        parameters = "".join(f"{type_prefix(kind)}{c_name(n)}, " for n, kind in used)
        local = [(n, kind) for n, kind in self.kinds.items() if n not in self._arguments]
        declared = [f"    {C_TYPES[kind]} {c_name(n)} = 0;" for n, kind in local]
        head = f"__device__ __forceinline__ {C_TYPES[self._returns]} {name}({parameters}int &raised) {{"
        body = [f"    {line}" for line in lines]
        return self._returns, "\n".join([head, *declared, *body, "}"])

    # Statements: lines of C, and whether the next statement can be reached; what is certainly assigned then is added.

    def _block(self, statements: list[ast.stmt], assigned: set[str]) -> tuple[list[str], bool]:
        lines: list[str] = []
        for statement in statements:
            if type(statement) not in STATEMENTS:
                self.refuse(statement, f"{in_words(statement)} cannot be translated")
            more, falls = getattr(self, f"_{STATEMENTS[type(statement)]}")(statement, assigned)
            lines += more
            if not falls:
                return lines, False
        return lines, True

    def _pass(self, node: ast.Pass, assigned: set[str]) -> tuple[list[str], bool]:
        return [], True

    def _expression(self, node: ast.Expr, assigned: set[str]) -> tuple[list[str], bool]:
        if not isinstance(node.value, ast.Constant):
            self.refuse(node, "an expression without an effect on numbers")
        return [], True

    def _return(self, node: ast.Return, assigned: set[str]) -> tuple[list[str], bool]:
        if node.value is None:
            self.refuse(node, "returns nothing")
        code, kind = self.value(node.value, assigned)
        if self._returns is None:
            self._returns = kind
        if {kind, self._returns} == {INT, BOOL}:
            self._returns = INT  # numba makes both whole numbers
        elif kind != self._returns:
            self.refuse(node, f"returns {kind} here and {self._returns} elsewhere")
        return [f"return {code};"], False

    def _assignment(self, node: ast.Assign, assigned: set[str]) -> tuple[list[str], bool]:
        lines: list[str] = []
        for target in node.targets:
            lines += self._assign(target, *self.value(node.value, assigned), assigned)
        return lines, True

    def _annotated(self, node: ast.AnnAssign, assigned: set[str]) -> tuple[list[str], bool]:
        if node.value is None:
            return [], True
        return self._assign(node.target, *self.value(node.value, assigned), assigned), True

    def _augmented(self, node: ast.AugAssign, assigned: set[str]) -> tuple[list[str], bool]:
        if not isinstance(node.target, ast.Name):
            self.refuse(node, "changes something that is not a variable")
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        value = self.binary(node, node.op, self.value(read, assigned), self.value(node.value, assigned))
        return self._assign(node.target, *value, assigned), True

    def _assign(self, target: ast.expr, code: str, kind: str, assigned: set[str]) -> list[str]:
        if isinstance(target, ast.Tuple):
            self.refuse(target, f"{in_words(target)} cannot be translated")
        if not isinstance(target, ast.Name):
            self.refuse(target, "changes something that is not a variable")
        known = self.kinds.setdefault(target.id, kind)
        if known != kind:
            self.refuse(target, f"{target.id} is {known} in one place and {kind} in another")
        assigned.add(target.id)
        return [f"{c_name(target.id)} = {code};"]

    def _if(self, node: ast.If, assigned: set[str]) -> tuple[list[str], bool]:
        test = self.test(node.test, assigned)
        yes, no = set(assigned), set(assigned)
        lines, falls = self._block(node.body, yes)
        other, other_falls = self._block(node.orelse, no)
        assigned |= yes & no if falls and other_falls else yes if falls else no
        lines = [f"if ({test}) {{", *_indented(lines), "}"]
        if other:
            lines += ["else {", *_indented(other), "}"]
        return lines, falls or other_falls


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _definition_of(function: FunctionType) -> ast.FunctionDef:
    """The definition of a function in its file, if the file still says what was compiled."""
    code = function.__code__
    try:
        text = Path(code.co_filename).read_text()
        tree, compiled = ast.parse(text), compile(text, code.co_filename, "exec")
    except (OSError, SyntaxError, ValueError):
        raise UntranslatableError(f"the text of {function.__name__} is not available") from None
    if any(_same(other, code) for other in _codes(compiled)):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
                if min([node.lineno, *(d.lineno for d in node.decorator_list)]) == code.co_firstlineno:
                    return node
    raise UntranslatableError(f"the text of {function.__name__} is not available")


def _codes(code: CodeType) -> list[CodeType]:
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    return inner + [deeper for part in inner for deeper in _codes(part)]


def _same(one: CodeType, other: CodeType) -> bool:
    def key(code: CodeType) -> tuple:
        constants = [part for part in code.co_consts if not isinstance(part, CodeType)]
        return (code.co_name, code.co_firstlineno, code.co_code, code.co_names, code.co_varnames, repr(constants))

    return key(one) == key(other)
