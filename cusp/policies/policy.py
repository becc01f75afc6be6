"""A policy = a master rule + an edge rule: two plain scalar Python functions.

::

    def get_master(prop, node, mstate, masters): ...                                  -> rank
    def get_edge_owner(prop, src, dst, src_master, dst_master, estate): ...           -> rank

``prop`` is a :class:`cusp.policies.prop.Prop`. A file with one or both of these functions is a policy:
``--policy my_policy.py``; a missing one is taken from the outgoing edge-cut. A name ``master+edge``
combines built-in rules, for example ``contiguous+hybrid``. A policy may look at the graph before::

    def visit(prop, node, state): ...                                  asked about every node, before masters
    def finish(prop, state, comm): ...                                 then called once, on all ranks
    def settle(prop, state, comm): ...                                 the same between masters and edges

What they leave in ``state``, which ``make_state(prop)`` makes, both rules get as their state. If rank 0 collects
edges, the more the higher the threshold, a file may say how many, so that the threshold can follow from memory::

    def memory(prop, thresholds, comm): ...                            -> bytes and edges, with each of them
"""

import hashlib
import importlib
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, NamedTuple

from cusp.errors import OptionError, PolicyError, shortened
from cusp.policies import edge_rules, master_rules
from cusp.runtime.files import read_input

AUTO = "auto"  # in the place of a name: which one follows from the graph, see cusp/program/choose.py
DEFAULT_THRESHOLD = 1000  # as in the shipped CuSP; PowerLyra uses 100
DEFAULT_ROUNDS = 100  # as in CuSP
DEFAULT_SLACK = 20  # percent
RULES = ("get_master", "get_edge_owner")
OF_ONE = ("make_mstate", "make_estate")  # what makes the state of one rule
PHASES = ("visit", "finish", "settle")  # which a policy with state may have
PLUGINS = "cusp.policies"  # the entry-point group of installed packages


class Rule(NamedTuple):
    """A rule, the function that makes its state, and how ranks combine the fields of the state."""

    function: Callable
    make_state: Callable | None = None
    combine: Mapping[str, str] = MappingProxyType({})


MASTER_RULES = {
    "contiguous": Rule(master_rules.contiguous),
    "hash": Rule(master_rules.hashed),
    "map": Rule(master_rules.mapped),
    "fennel": Rule(master_rules.fennel, master_rules.fennel_state, master_rules.FENNEL_COMBINE),
    "ldg": Rule(master_rules.ldg, master_rules.fennel_state, master_rules.FENNEL_COMBINE),
}
EDGE_RULES = {
    "source": Rule(edge_rules.source),
    "destination": Rule(edge_rules.destination),
    "cartesian": Rule(edge_rules.cartesian),
    "hybrid": Rule(edge_rules.hybrid),
    "dbh": Rule(edge_rules.degree_hashed),
    "hdrf": Rule(edge_rules.hdrf, edge_rules.hdrf_state, edge_rules.HDRF_COMBINE),
}
POLICIES = {  # name -> master rule, edge rule
    "oec": ("contiguous", "source"),
    "iec": ("contiguous", "destination"),
    "cvc": ("contiguous", "cartesian"),
    "hvc": ("contiguous", "hybrid"),
    "fec": ("fennel", "source"),
    "gvc": ("fennel", "hybrid"),
    "svc": ("fennel", "cartesian"),
    "ldg": ("ldg", "source"),
    "dbh": ("hash", "dbh"),
    "hdrf": ("contiguous", "hdrf"),
    "random": ("hash", "source"),
    "random2d": ("hash", "cartesian"),
    "map": ("map", "source"),
}
MODULES = {  # name -> module in the form of a user's file
    "2ps": "cusp.policies.cuts.two_phase",
    "hep": "cusp.policies.cuts.expansion",
}
ORDERS = ("degree",)


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
    threshold : int or None
        Out-degree above which a node counts as a hub; None: ``DEFAULT_THRESHOLD``, or as ``memory`` allows.
    slack : int
        Percent of its share of the edges by which a part may be ahead of the others while edges are dealt out.
    make_mstate, make_estate : function (prop) -> namedtuple of arrays, or None
        State of the master and of the edge rule.
    combine : dict
        How the ranks combine a field of a state: ``add`` (default), ``max``, ``min`` or ``local``.
    rounds : int
        Number of blocks of a slice; states and masters are exchanged after each.
    passes : int
        How many times masters are assigned; from the second pass on, the rule knows the masters of the one before.
    node_map : str or None
        File with a rank for each node, for ``prop.mapped``: text with one number per line, or ``.npy``.
    shares : tuple of int, or None
        What each rank gets in proportion to the others, for ``prop.share``; None: all the same.
    strict : bool
        Stop at a rule that numba cannot compile, instead of interpreting it with a warning.
    make_state : function (prop) -> namedtuple of arrays, or None
        State of both rules, ``visit``, ``finish`` and ``settle``; instead of ``make_mstate`` and ``make_estate``.
    visit : function (prop, node, state), or None
        Asked about every node before masters are assigned, in ``passes``.
    finish : function (prop, state, comm), or None
        Called on all ranks after the visits.
    settle : function (prop, state, comm), or None
        Called on all ranks when masters are assigned, before edges are.
    memory : function (prop, thresholds, comm) -> (n,) int64, (n,) int64, or None
        Called on all ranks: for each of some ascending thresholds, how many bytes rank 0 needs at most, besides its
        part, and how many edges it collects.
    order : {'degree'} or None
        The order in which each rank asks the master rule about its nodes: by descending degree; None: as in the graph.
    """

    name: str
    master: Callable
    edge: Callable
    grid: tuple[int, int] | None = None
    threshold: int | None = None
    slack: int = DEFAULT_SLACK
    make_mstate: Callable | None = None
    make_estate: Callable | None = None
    combine: Mapping[str, str] = field(default_factory=dict)
    rounds: int = DEFAULT_ROUNDS
    passes: int = 1
    node_map: str | None = None
    strict: bool = False
    shares: tuple[int, ...] | None = None
    make_state: Callable | None = None
    visit: Callable | None = None
    finish: Callable | None = None
    settle: Callable | None = None
    memory: Callable | None = None
    order: str | None = None

    @property
    def rules(self) -> dict[str, Callable]:
        """What is asked about nodes and edges, by the names in a user's file."""
        rules = {"get_master": self.master, "get_edge_owner": self.edge}
        return rules | ({"visit": self.visit} if self.visit else {})

    @property
    def stateful(self) -> bool:
        """Whether a rule keeps state."""
        return bool(self.make_state or self.make_mstate or self.make_estate)

    def rounds_for(self, ranks: int) -> int:
        """Blocks of a slice, if masters or state are exchanged; one if there is nobody to hear from."""
        return self.rounds if ranks > 1 else 1

    def shares_for(self, ranks: int) -> tuple[int, ...]:
        """The share of each of ``ranks`` ranks, in lowest terms; empty if all are the same."""
        shares = self.shares or ()
        if shares and len(shares) != ranks:
            given = ",".join(map(str, shares))
            raise OptionError(f"--shares {given}: {len(shares)} shares, but there are {ranks} ranks; give one for each")
        return () if len({*shares}) <= 1 else tuple(share // math.gcd(*shares) for share in shares)

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


def load_policy(name: str, **parameters: Any) -> Policy:
    """Find a policy by its name, as ``--policy`` takes it.

    Parameters
    ----------
    name : str
        Of a built-in policy or an installed plugin; ``master+edge``; a Python file; or ``package.module:NAME``.
    parameters
        ``grid``, ``threshold``, ``slack``, ``rounds``, ``passes``, ``node_map``, ``strict``: see :class:`Policy`.

    Raises
    ------
    PolicyError
        There is no such policy, or the file cannot be read or run.

    Examples
    --------
    >>> from cusp.policies import load_policy
    >>> load_policy("hvc", threshold=100).threshold
    100
    >>> load_policy("fennel+cartesian").master.__name__
    'fennel'
    >>> load_policy("cvc").grid_for(8)
    (4, 2)
    """
    if name.endswith(".py"):
        return _from_module(name, load_module(name), parameters)
    if name in MODULES:
        return _from_module(name, importlib.import_module(MODULES[name]), parameters)
    if name in POLICIES or "+" in name:
        master_name, edge_name = POLICIES.get(name) or name.split("+", 1)
        master = _find(MASTER_RULES, "master", master_name)
        edge = _find(EDGE_RULES, "edge", edge_name)
        return Policy(
            name, master.function, edge.function, make_mstate=master.make_state, make_estate=edge.make_state,
            combine={**master.combine, **edge.combine}, **parameters,
        )  # fmt: skip
    if ":" in name:
        return _from_target(name, name, parameters)
    plugins = {point.name: point.value for point in entry_points(group=PLUGINS)}
    if name in plugins:
        return _from_target(name, plugins[name], parameters)
    if name == AUTO:
        raise PolicyError(f"--policy {AUTO}: is for cusp partition and for apps, which know the graph; name one here")
    raise PolicyError(
        f"--policy {shortened(name)}: unknown; choose one of {', '.join([*POLICIES, *MODULES, *plugins])}, MASTER+EDGE "
        "such as fennel+cartesian, a Python file such as my_policy.py, or package.module:NAME"
    )


def is_built_in(name: str) -> bool:
    """Whether a policy of this name is made of rules in this package, so that loading it runs no other code."""
    master, _, edge = name.partition("+")
    return name in POLICIES or name in MODULES or (master in MASTER_RULES and edge in EDGE_RULES)


def installed_policies() -> list[tuple[str, str]]:
    """Name and description of every policy that needs no file: built in, or installed as a plugin."""
    described = []
    for name, (master, edge) in POLICIES.items():
        nodes, edges = _first_line(MASTER_RULES[master].function), _first_line(EDGE_RULES[edge].function)
        described.append((name, f"{master}+{edge}. Masters: {nodes} Edges: {edges}"))
    for name, module in MODULES.items():
        described.append((name, _first_line(importlib.import_module(module))))
    for point in entry_points(group=PLUGINS):
        described.append((point.name, f"plugin {point.value}"))
    return described


def _first_line(described: Callable | ModuleType) -> str:
    return (described.__doc__ or "").strip().splitlines()[0]


def _from_target(name: str, target: str, parameters: dict[str, Any]) -> Policy:
    """``package.module:NAME``: a Policy, or a module-like object with the rules as attributes; or a module."""
    module_name, _, attribute = target.partition(":")
    with of_the_user(f"--policy {shortened(name)}: {shortened(target)} cannot be imported:"):
        module = importlib.import_module(module_name)
        target_object = getattr(module, attribute) if attribute else module
    if isinstance(target_object, Policy):
        return replace(target_object, name=name, **parameters)
    return _from_module(name, target_object, parameters)


def _from_module(name: str, module: Any, parameters: dict[str, Any]) -> Policy:
    """A policy made of the two rules and what else a file may have: state, ``combine``, ``visit``, ``order`` ..."""
    if not (hasattr(module, "get_master") or hasattr(module, "get_edge_owner")):
        found = [key for key in dir(module) if isinstance(getattr(module, key, None), FunctionType)]
        instead = f", only {shortened(', '.join(found))}" if found else ""
        meant = [rule for rule in RULES for each in found if get_close_matches(rule, [each.lower()])]
        advice = f"; did you mean {meant[0]}?" if meant else ""
        raise PolicyError(f"{name}: defines neither get_master nor get_edge_owner{instead}{advice}")
    combine = getattr(module, "combine", None)
    if not isinstance(combine, Mapping | None):
        raise PolicyError(f"{name}: combine is {shortened(repr(combine))}, not a dict such as {{'load': 'max'}}")
    more: dict[str, Any] = {key: getattr(module, key, None) for key in (*OF_ONE, "make_state", "memory", *PHASES)}
    for key, make in more.items():
        if make is not None and not callable(make):
            raise PolicyError(f"{name}: {key} is {shortened(repr(make))}, not a function")
    both = [key for key in OF_ONE if more[key] and more["make_state"]]
    if both:
        raise PolicyError(f"{name}: has make_state, the state of both rules, and {both[0]}; leave one of them out")
    alone = [key for key in PHASES if more[key] and not more["make_state"]]
    if alone:
        raise PolicyError(f"{name}: {alone[0]} has no state to leave anything in; add make_state(prop)")
    order = getattr(module, "order", None)
    if order not in (None, *ORDERS):
        raise PolicyError(f"{name}: order is {shortened(repr(order))}; choose one of {ORDERS}, or leave it out")
    master = getattr(module, "get_master", master_rules.contiguous)
    edge = getattr(module, "get_edge_owner", edge_rules.source)
    return Policy(name, master, edge, combine=dict(combine or {}), order=order, **more, **parameters)


@contextmanager
def of_the_user(what: str) -> Iterator[None]:
    """Run code of a user: whatever it raises, ``sys.exit`` too, is a PolicyError that begins with ``what``."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PolicyError(f"{what} {type(error).__name__}: {shortened(error)}") from error


def _find(rules: dict[str, Rule], kind: str, name: str) -> Rule:
    if name not in rules:
        raise PolicyError(f"--policy: unknown {kind} rule {shortened(name)!r}; choose one of {', '.join(rules)}")
    return rules[name]


def load_module(path: str) -> ModuleType:
    """Run a Python file as a module; once per process, unless its content has changed."""
    content = read_input(path, PolicyError)
    digest = hashlib.sha256(os.path.abspath(path).encode() + b"\0" + content).hexdigest()
    name = f"cusp_policy_{Path(path).stem}_{digest[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = os.path.abspath(path)
    with of_the_user(f"{path}: cannot be run:"):
        exec(compile(content, module.__file__, "exec"), module.__dict__)  # leaves no compiled file beside the user's
    sys.modules[name] = module
    return module
