"""The data that the rules of a policy read, found in their bytecode: only this data is computed and sent."""

import contextlib
import dis
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from cusp.errors import PolicyError
from cusp.policies.policy import Policy
from cusp.policies.prop import Prop

ARGUMENTS = {  # of the functions of a policy, those that it must have first
    "master": ("prop", "node", "mstate", "masters"),
    "edge": ("prop", "src", "dst", "src_master", "dst_master", "estate"),
    "visit": ("prop", "node", "state"),
    **dict.fromkeys(("finish", "settle"), ("prop", "state", "comm")),
    "memory": ("prop", "thresholds", "comm"),
}
# of a Prop, what any rank can say; a master rule that asks for anything else is not computed
KNOWN_EVERYWHERE = (
    "num_nodes", "num_edges", "num_parts", "rows", "columns", "threshold", "slack", "all_shares", "has_shares",
    "reader", "share", "pick",
)  # fmt: skip
KNOWN = sys.stdlib_module_names | {"numpy", "numba", "builtins"}  # their functions count by name
STORING = ("STORE_SUBSCR", "STORE_SLICE", "STORE_ATTR", "DELETE_")
# of arrays, and functions of NumPy, that change what is in an array
CHANGING = {"fill", "sort", "put", "itemset", "at", "copyto", "putmask", "fill_diagonal", "shuffle"}
OURS = ("cusp.errors", "cusp.runtime")  # likewise: what is kept there changes while a program runs


@dataclass(frozen=True)
class Uses:
    """The data that the two rules of a policy read.

    Attributes
    ----------
    computed : bool
        Any rank can say who is the master of any node: the master rule keeps no state and looks at nothing
        that only the reader of the node knows. Masters are then neither stored nor sent.
    masters : bool
        The master rule looks at the masters of other nodes.
    history : bool
        What a rule says of a node or an edge depends on what was said before: it looks at masters or state.
    degrees, in_degrees : bool
        A rule asks for the out-degrees, the in-degrees of neighbours.
    all_neighbors : bool
        A rule asks for the neighbours of nodes in both directions, or for their number.
    neighbors : bool
        A rule looks at facts about neighbours, or at masters that are not computed.
    target, target_master : bool
        The edge rule looks at the target of an edge or its state; at the master of the target.
    estate, changes : bool
        The edge rule looks at its state; it may change it.
    """

    computed: bool
    masters: bool
    history: bool
    degrees: bool
    in_degrees: bool
    all_neighbors: bool
    neighbors: bool
    target: bool
    target_master: bool
    estate: bool
    changes: bool


def uses_of(policy: Policy) -> Uses:
    """Inspect both rules of a policy.

    Raises
    ------
    PolicyError
        A rule is not a function, has another number of arguments, or calls itself through others.
    """
    functions = {name: function for name in ARGUMENTS if (function := getattr(policy, name)) is not None}
    for name, function in functions.items():
        _check_signature(policy, function, ARGUMENTS[name])
    master, edge = ({ARGUMENTS[name][at] for at in arguments_used(functions[name])} for name in ("master", "edge"))
    of_master = attributes_used(policy.master) & set(dir(Prop))
    of_all = set[str]().union(*map(attributes_used, functions.values()))
    both_ways = bool({"all_neighbors", "total_degree"} & of_all)
    computed = not (master & {"mstate", "masters"} or of_master.difference(KNOWN_EVERYWHERE))
    return Uses(
        computed=computed,
        masters="masters" in master,
        history=policy.stateful or "masters" in master,
        degrees="neighbor_degree" in of_all,
        in_degrees="in_degree" in of_all,
        all_neighbors=both_ways,
        neighbors=not computed
        or both_ways
        or bool(policy.make_state)
        or bool({"place", "num_places", "neighbor_degree", "in_degree"} & of_all),
        target=bool({"dst", "dst_master", "estate"} & edge),
        target_master="dst_master" in edge,
        estate="estate" in edge,
        changes="estate" in edge and _may_change(policy.edge),
    )


def arguments_used(rule: Callable) -> set[int]:
    """Places of the arguments that a rule looks at, whatever it calls them."""
    names = set(_loaded(rule, "LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE"))
    return {place for place, name in enumerate(rule.__code__.co_varnames[: rule.__code__.co_argcount]) if name in names}


def attributes_used(rule: Callable) -> set[str]:
    """Attributes and methods that a rule and the functions that it calls look at, of ``prop`` and of anything else."""
    return {name for function in functions_of(rule) for name in _loaded(function, "LOAD_ATTR", "LOAD_METHOD")}


def _may_change(rule: Callable) -> bool:
    """Whether a rule, or a function that it calls, stores into anything or calls what may."""
    functions = functions_of(rule)
    codes = (code for function in functions for code in codes_of(function.__code__))
    stored = any(step.opname.startswith(STORING) for code in codes for step in dis.get_instructions(code))
    return stored or bool(CHANGING & attributes_used(rule)) or any(map(_calls_a_library, functions))


def _calls_a_library(function: Callable) -> bool:
    """Whether a function calls one of a library, which may write into what it gets: ``np.add(a, b, a)``; types may not.

    What is neither a global nor an attribute of one, as ``len``, is of Python itself.
    """
    found = [value for _, value in outside(function) if not isinstance(value, ModuleType)]
    for code in codes_of(function.__code__):
        for step, after in pairwise(dis.get_instructions(code)):
            module = function.__globals__.get(step.argval) if step.opname == "LOAD_GLOBAL" else None
            if isinstance(module, ModuleType) and after.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                found.append(getattr(module, after.argval, None))
    return any(isinstance(value, ModuleType) or (callable(value) and not isinstance(value, type) and _is_known(value))
               for value in found)  # fmt: skip


def helpers_of(rule: Callable) -> dict[str, FunctionType]:
    """Functions that a rule calls by a name of its module, plain or compiled by numba; by that name."""
    assert isinstance(rule, FunctionType)
    found = {name: plain(rule.__globals__.get(name)) for name in names_of(rule.__code__)}
    return {name: value for name, value in found.items() if isinstance(value, FunctionType) and value is not rule}


def functions_of(rule: Callable) -> list[Callable]:
    """A rule and the functions that it calls, directly or through others, in any module of the user.

    Raises
    ------
    PolicyError
        They call each other in a circle.
    """
    finished: dict[Callable, bool] = {}

    def visit(function: Callable) -> None:
        if not finished.setdefault(function, False):
            for _, value in outside(function):
                called = plain(value)
                if not isinstance(called, FunctionType) or called is function or _is_known(called):
                    continue
                if finished.get(called) is False:
                    file = called.__code__.co_filename
                    raise PolicyError(f"{file}: {called.__name__} calls itself through others, which a rule cannot do")
                visit(called)
            finished[function] = True

    visit(rule)
    return list(finished)


def fingerprint(rule: Callable) -> bytes:
    """All that the machine code of a rule depends on: bytecode and constants of every function of :func:`functions_of`.

    What the standard library, NumPy and numba define counts by its name.
    """
    words: list[bytes] = []
    for function in functions_of(rule):
        words += [function.__qualname__.encode(), *_describe_code(function.__code__)]
        for name, value in outside(function):
            words += [name.encode(), *_describe(value)]
    return b"\0".join(words)


def described(policy: Policy) -> str:
    """A policy in words that differ from those of others; where its rules are does not count."""
    values = [getattr(policy, one.name) for one in fields(Policy) if one.name not in ("name", "node_map", "strict")]
    words = [
        fingerprint(value) if isinstance(value, FunctionType) else b"-" if callable(value) else repr(value).encode()
        for value in values
    ]
    digest = hashlib.blake2b(b"\0".join(words), digest_size=8).hexdigest()
    return f"{os.path.basename(policy.name)}, threshold {policy.threshold}, {digest}"


def outside(function: Callable) -> Iterator[tuple[str, Any]]:
    """What a function uses of its surroundings: globals, enclosed variables, defaults, attributes of modules."""
    names = names_of(function.__code__)
    yield "defaults", (function.__defaults__, function.__kwdefaults__)  # type: ignore[attr-defined]
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # not assigned yet
            found[name] = cell.cell_contents
    seen: set[int] = set()
    while found:
        name, value = found.popitem()
        yield name, value
        if isinstance(value, ModuleType | type) and not _is_known(value) and id(value) not in seen:
            seen.add(id(value))
            found |= {f"{name}.{inner}": vars(value)[inner] for inner in names if inner in vars(value)}


def plain(value: Any) -> Any:
    """The Python function that numba compiles; anything else as it is."""
    value = value.__func__ if isinstance(value, staticmethod) else value
    return value.py_func if isinstance(value, Dispatcher) else value


def _is_known(value: Any) -> bool:
    """Whether it comes from a library that cannot change unless its version does."""
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(module).partition(".")[0] in KNOWN or str(module).startswith(OURS)


def _describe(value: Any) -> Iterator[bytes]:
    """A value, so that equal words mean the same machine code. Functions count by name: their code is described too."""
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        yield f"{value.dtype} {value.shape}".encode() + value.tobytes()
    elif isinstance(value, bool | int | float | complex | str | bytes | None):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, tuple | list):
        yield f"{type(value).__name__} {len(value)}".encode()
        for item in value:
            yield from _describe(item)
    elif isinstance(value, CodeType):
        yield from _describe_code(value)
    elif isinstance(value, frozenset):
        yield from sorted(b"".join(_describe(item)) for item in value)
    else:
        name = getattr(value, "__qualname__", type(value).__qualname__)
        yield f"{getattr(value, '__module__', '')} {name} {getattr(value, 'targetoptions', '')}".encode()


def _describe_code(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode()
    for constant in code.co_consts:
        yield from _describe(constant)


def codes_of(code: CodeType) -> list[CodeType]:
    """A function's code and that of the functions and comprehensions in it."""
    return [code, *(deeper for part in code.co_consts if isinstance(part, CodeType) for deeper in codes_of(part))]


def names_of(code: CodeType) -> list[str]:
    """Names of globals and attributes, each once."""
    return list(dict.fromkeys(name for part in codes_of(code) for name in part.co_names))


def _loaded(rule: Callable, *operations: str) -> Iterator[str]:
    for code in codes_of(rule.__code__):
        for instruction in dis.get_instructions(code):
            if instruction.opname.startswith(operations):
                value = instruction.argval
                yield from value if isinstance(value, tuple) else (value,)


def _check_signature(policy: Policy, rule: Callable, arguments: tuple[str, ...]) -> None:
    if not isinstance(rule, FunctionType):
        raise PolicyError(f"policy {policy.name}: a rule must be a function, not {type(rule).__name__}")
    count = rule.__code__.co_argcount
    if count != len(arguments):
        expected = f"{len(arguments)}: {', '.join(arguments)}"
        raise PolicyError(f"policy {policy.name}: {rule.__name__} has {count} arguments, not {expected}")
