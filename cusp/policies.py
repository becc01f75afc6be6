"""A policy = a master rule + an edge rule: two plain scalar Python functions.

::

    def get_master(prop, node, mstate, masters): ...                                  -> rank
    def get_edge_owner(prop, src, dst, src_master, dst_master, estate): ...           -> rank

``prop`` is a :class:`cusp.prop.Prop`. A file with one or both of these functions is a policy:
``--policy my_policy.py``; the missing one is the outgoing edge-cut's. A name ``master+edge``
combines built-in rules, for example ``contiguous+hybrid``.
"""

import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from cusp import edge_rules, master_rules
from cusp.errors import OptionError, PolicyError

DEFAULT_THRESHOLD = 1000  # as in the shipped CuSP; PowerLyra uses 100
DEFAULT_ROUNDS = 100  # as in CuSP

MASTER_RULES: dict[str, Callable] = {"contiguous": master_rules.contiguous}
EDGE_RULES: dict[str, Callable] = {
    "source": edge_rules.source,
    "destination": edge_rules.destination,
    "cartesian": edge_rules.cartesian,
    "hybrid": edge_rules.hybrid,
}


@dataclass(frozen=True)
class Policy:
    """Two rules and their parameters.

    Attributes
    ----------
    name : str
        What the user typed; shown in tables and rows.
    master, edge : function
        The rules.
    grid : (rows, columns) or None
        For two-dimensional cuts; None: the squarest one with rows >= columns.
    threshold : int
        Out-degree above which a node counts as a hub.
    make_mstate, make_estate : function (prop) -> namedtuple of arrays, or None
        State of the master and of the edge rule.
    combine : dict
        How the ranks combine a field of a state: ``add`` (default), ``max``, ``min`` or ``local``.
    rounds : int
        Blocks of a slice after which states and masters are synchronised.
    passes : int
        Times that masters are assigned; from the second on the rule knows the masters of the one before.
    """

    name: str
    master: Callable
    edge: Callable
    grid: tuple[int, int] | None = None
    threshold: int = DEFAULT_THRESHOLD
    make_mstate: Callable | None = None
    make_estate: Callable | None = None
    combine: Mapping[str, str] = field(default_factory=dict)
    rounds: int = DEFAULT_ROUNDS
    passes: int = 1

    def grid_for(self, ranks: int) -> tuple[int, int]:
        """Rows and columns of the grid of ``ranks`` ranks."""
        if self.grid is None:
            columns = int(ranks**0.5)
            while ranks % columns:
                columns -= 1
            return ranks // columns, columns
        rows, columns = self.grid
        if rows * columns != ranks:
            raise OptionError(f"--grid {rows}x{columns} is for {rows * columns} ranks, but there are {ranks}")
        return rows, columns


POLICIES: dict[str, tuple[str, str]] = {
    "oec": ("contiguous", "source"),
    "iec": ("contiguous", "destination"),
    "cvc": ("contiguous", "cartesian"),
    "hvc": ("contiguous", "hybrid"),
}


def load_policy(name: str, grid: tuple[int, int] | None = None, threshold: int = DEFAULT_THRESHOLD) -> Policy:
    """Find a policy by the name of a built-in one, ``master+edge``, or a Python file.

    Raises
    ------
    PolicyError
        No such policy, or the file cannot be read or run.
    """
    if name in POLICIES or "+" in name:
        master, edge = POLICIES.get(name) or name.split("+", 1)
        return Policy(name, _find(MASTER_RULES, "master", master), _find(EDGE_RULES, "edge", edge), grid, threshold)
    if not name.endswith(".py"):
        raise PolicyError(
            f"--policy {name}: unknown; choose one of {', '.join(POLICIES)}, MASTER+EDGE such as contiguous+hybrid, "
            "or a Python file such as my_policy.py"
        )
    module = load_module(name)
    if not (hasattr(module, "get_master") or hasattr(module, "get_edge_owner")):
        raise PolicyError(f"{name}: defines neither get_master nor get_edge_owner")
    return Policy(
        name,
        getattr(module, "get_master", master_rules.contiguous),
        getattr(module, "get_edge_owner", edge_rules.source),
        grid,
        threshold,
    )


def _find(rules: dict[str, Callable], kind: str, name: str) -> Callable:
    if name not in rules:
        raise PolicyError(f"--policy: unknown {kind} rule {name!r}; choose one of {', '.join(rules)}")
    return rules[name]


def load_module(path: str) -> ModuleType:
    """Run a Python file as a module; once per process, unless its content has changed."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise PolicyError(f"--policy {path}: cannot be read: {error.strerror}") from None
    name = f"cusp_policy_{Path(path).stem}_{hashlib.sha256(content).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, os.path.abspath(path))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PolicyError(f"{path}: cannot be run: {type(error).__name__}: {error}") from error
    sys.modules[name] = module
    return module
