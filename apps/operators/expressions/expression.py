"""Edge expressions: what a user writes in the syntax of Python, checked, and turned into a term."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from cusp.errors import OptionError
from cusp.language.terms import FLOAT, INT, SATURATE, Term, as_test
from cusp.language.translator import Translator

CONSTANTS = {"inf": Term("infinity()", FLOAT)}
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
        _Edge(self, None).term(self._tree)  # finds the names; everything but the types is right from here on

    def typed(self, values: Mapping[Name, Term]) -> Term:
        """The whole as a term, if its names stand for these."""
        return _Edge(self, values).term(self._tree)

    def condition(self, values: Mapping[Name, Term]) -> str:
        """The text of the whole as a test."""
        return as_test(self.typed(values))

    def refuse(self, column: int, why: str) -> NoReturn:
        """Say what is wrong, and where."""
        raise OptionError(f'"{self.text}", column {column}: {why}')


class _Edge(Translator):
    """One walk through an expression. Without values, all names are whole numbers, and are listed."""

    semantics, excuse = SATURATE, "is not allowed in an edge expression"

    def __init__(self, expression: Expression, values: Mapping[Name, Term] | None) -> None:
        self._expression, self._values = expression, values

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        self._expression.refuse(node.col_offset + 1, why)  # type: ignore[attr-defined]

    def named(self, node: ast.Name | ast.Attribute) -> Term:
        match node:
            case ast.Name(id=text) if text not in ENDS:
                name = Name("", text)
            case ast.Attribute(value=ast.Name(id=end), attr=text) if end in ENDS:
                name = Name(end, text)
            case _:
                self.refuse(node, f"{ast.unparse(node)} {self.excuse}")
        if str(name) in CONSTANTS:
            return CONSTANTS[str(name)]
        if self._values is not None:
            return self._values[name]
        names, column = self._expression.names, node.col_offset + 1
        names[name] = min(column, names.get(name, column))
        return Term("0", INT)
