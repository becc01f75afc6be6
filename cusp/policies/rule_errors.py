"""Messages about errors in rules: the node or edge, the line of the user's file, and why numba cannot compile it."""

import copy
import os
import re
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from cusp.errors import shortened
from cusp.policies.prop import MastersView, Prop
from cusp.runtime.devices import to_host

COLORS = re.compile(r"\x1b\[[0-9;]*m")
ROOT = Path(__file__).resolve().parents[1]


def question(loop: str, args: tuple[Any, ...], at: int) -> str:
    """The rule, and the node or edge that it was asked about."""
    prop = args[0]
    if at < 0:
        return "a rule"
    if loop in ("assign_masters", "visit_nodes"):
        return f"{'visit' if loop == 'visit_nodes' else 'get_master'} of node {prop.first_node + at:,}"
    if loop == "masters_of":
        return f"get_master of node {int(args[1][at]):,}"
    return f"get_edge_owner of the edge {prop.first_node + _row_of(prop, at):,} -> {int(prop.targets[at]):,}"


def one_question(loop: str, args: tuple[Any, ...], at: int) -> tuple[Any, ...]:
    """The arguments, on the host, of a loop that asks about one node, or about the edges of one."""
    args = tuple(map(_on_host, args))
    if loop == "masters_of":
        return args[0], *(array[at : at + 1] for array in args[1:])
    if isinstance(args[1], np.ndarray):
        return args[0], np.array([at]), 1, *args[3:]
    row = at if loop in ("assign_masters", "visit_nodes") else _row_of(args[0], at)
    return args[0], row, row + 1, *args[3:]


def _on_host(value: Any) -> Any:
    if not isinstance(value, (Prop, MastersView)):
        return to_host(value)
    other = copy.copy(value)
    for name in value.__slots__:
        setattr(other, name, to_host(getattr(value, name)))
    return other


def _row_of(prop: Any, edge: int) -> int:
    return int(np.searchsorted(to_host(prop.indptr), edge, side="right")) - 1


def line_of(error: BaseException) -> str:
    """Where in a user's file an error was raised, and that line; empty if it is not known."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith((f"{ROOT}{os.sep}", "<"))]
    return f", at {own[-1].filename}:{own[-1].lineno}: {shortened(own[-1].line)}" if own else ""


def why_not_compiled(error: Exception) -> str:
    """The cause and the place in the user's file, out of numba's long message."""
    lines = [line.strip() for line in COLORS.sub("", str(error)).splitlines() if line.strip()]
    noise = ("Failed in nopython", "No implementation", "- Resolution", "There are", "None", "During", ">>>", "-")
    cause = next((line for line in lines if not line.startswith(noise)), type(error).__name__)
    ours = ("compile_rules", "cusp_generated", "prop.py")
    places = [i for i, line in enumerate(lines) if line.startswith("File ") and not any(name in line for name in ours)]
    return " ".join([cause, *lines[places[0] : places[0] + 2]] if places else [cause])
