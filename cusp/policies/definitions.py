"""What the text of a rule says: its definition, and the fields of its state that it may change."""

import ast
import functools
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from cusp.policies.inspect_rules import codes_of, functions_of, helpers_of, names_of

SLICES = {"slice", "s_"}  # what makes an index for more than one number: a view, which can be changed later
PLAIN = (ast.Name, ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Call, ast.Subscript, ast.operator, ast.unaryop, ast.Load)


def definition_of(function: FunctionType) -> ast.FunctionDef | None:
    """The definition of a function in its file, if the file still says what was compiled."""
    code = function.__code__
    try:
        definitions, codes = _read(code.co_filename, Path(code.co_filename).read_text())
    except (OSError, SyntaxError, ValueError):
        return None
    return definitions.get((code.co_name, code.co_firstlineno)) if code in codes else None


@functools.lru_cache(maxsize=8)
def _read(path: str, text: str) -> tuple[dict[tuple[str, int], ast.FunctionDef], list[CodeType]]:
    """The functions of a file by name and first line, which may be that of a decorator; and their code."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    lines = [min([node.lineno, *(d.lineno for d in node.decorator_list)]) for node in found]
    return {(node.name, line): node for node, line in zip(found, lines)}, codes_of(compile(text, path, "exec"))


def changed_fields(rule: Any, place: int, state: Any) -> set[str]:
    """Fields of a state, the argument of a rule at a place, that the rule or what it calls may change.

    Those that it only reads number by number, or does not mention, it does not change. Where its text is not there,
    or gives the state to what is no function of the same file, it may change any.
    """
    looks = _looks_of_all(rule, place)
    if looks is None:
        return set(state._fields)
    return {name for name, values in zip(state._fields, state) if looks.get(name, values.ndim) < values.ndim}


@functools.cache
def _looks_of_all(rule: FunctionType, place: int) -> dict[str, int] | None:
    """Of each field, the fewest indices with which it is read, 0 where it is used otherwise; None if nobody knows."""
    names = {name for function in functions_of(rule) for name in names_of(function.__code__)}
    return None if names & SLICES else _looks_of(rule, place)


def _looks_of(function: FunctionType, place: int) -> dict[str, int] | None:
    """The same of one function, and of those that it gives the state."""
    definition = definition_of(function)
    if definition is None or place >= function.__code__.co_argcount:
        return None
    name, helpers = function.__code__.co_varnames[place], helpers_of(function)
    above = {below: node for node in ast.walk(definition) for below in ast.iter_child_nodes(node)}
    looks: dict[str, int] = {}
    for node in ast.walk(definition):
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        found: dict[str, int] | None = None
        user = above[node]
        if isinstance(user, ast.Attribute):
            found = {user.attr: _indices(user, above[user])}
        elif isinstance(user, ast.Call) and isinstance(user.func, ast.Name) and node in user.args:
            called, starred = helpers.get(user.func.id), any(isinstance(value, ast.Starred) for value in user.args)
            found = _looks_of(called, user.args.index(node)) if called and not starred else None
        if found is None:
            return None
        for field, indices in found.items():
            looks[field] = min(indices, looks.get(field, indices))
    return looks


def _indices(field: ast.Attribute, user: ast.AST) -> int:
    """With how many indices a field is read at a place in the text, of which none can be a slice; else 0."""
    if isinstance(user, ast.Attribute) and user.attr in ("shape", "size", "ndim", "dtype"):
        return 99
    if not (isinstance(user, ast.Subscript) and user.value is field and isinstance(user.ctx, ast.Load)):
        return 0
    indices = user.slice.elts if isinstance(user.slice, ast.Tuple) else [user.slice]
    parts = [part for index in indices for part in ast.walk(index)]
    plain = all(isinstance(part, PLAIN) or isinstance(getattr(part, "value", None), int) for part in parts)
    return len(indices) if plain and not any(getattr(part, "attr", "") == "newaxis" for part in parts) else 0
