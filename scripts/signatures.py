"""Write a stub file for editors and type checkers: the functions of ``cusp.apps.library`` are made at run time.

python -m scripts.signatures
"""

import argparse
import inspect
import textwrap
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from cusp.apps import library

TARGET = Path(library.__file__).with_name("run") / "functions.pyi"
HEADER = '''"""The functions of ``cusp.apps.library``, written by ``python -m scripts.signatures``."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal

from cusp.apps.run.partitioned_graph import PartitionedGraph
from cusp.apps.run.result import Result
'''


def text() -> str:
    """The whole file."""
    return HEADER + "".join(f"\n{stub_of(getattr(library, name))}" for name in library.APPS)


def stub_of(function: Any) -> str:
    """A function with its signature and the help of its parameters, as Python."""
    parameters = inspect.signature(function).parameters.values()
    first = next(place for place, one in enumerate(parameters) if one.kind == one.KEYWORD_ONLY)
    defaults = ["" if one.default is one.empty else f" = {quoted(one.default)}" for one in parameters]
    lines = [f"    {one.name}: {type_text(one.annotation)}{default},\n" for one, default in zip(parameters, defaults)]
    lines.insert(first, "    *,\n")
    return f'def {function.__name__}(\n{"".join(lines)}) -> Result:\n    """{about(function)}\n    """\n'


def about(function: Any) -> str:
    """The first line of a function's help, and what it says of each parameter."""
    first, _, rest = function.__doc__.partition("\n")
    lines = rest[rest.rindex("\nCollective. Returns") :].split("\n\n", 1)[1].splitlines()
    wrapped = [textwrap.fill(line, 112, initial_indent="    ", subsequent_indent="        ") for line in lines]
    return "\n".join([textwrap.fill(first, 112, subsequent_indent="    "), "", *wrapped])


def type_text(annotation: Any) -> str:
    """A type as it is written, the same with every version of Python."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return f"Literal[{', '.join(map(quoted, inner))}]"
    if origin in (Union, UnionType):
        return " | ".join(map(type_text, inner))
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(type_text, inner))}]"
    return "None" if annotation is NoneType else annotation.__name__


def quoted(value: object) -> str:
    """A value as ruff would write it."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    TARGET.write_text(text())
