"""What the rules of a policy look at, read from their bytecode: what they ask for decides what is computed and sent."""

import dis
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType

import numpy as np

from cusp.errors import PolicyError
from cusp.policies.policy import Policy
from cusp.policies.prop import Prop

MASTER_ARGUMENTS = ("prop", "node", "mstate", "masters")
EDGE_ARGUMENTS = ("prop", "src", "dst", "src_master", "dst_master", "estate")
# of a Prop, what any rank can say; a master rule that asks for anything else is not computed
KNOWN_EVERYWHERE = ("num_nodes", "num_edges", "num_parts", "rows", "columns", "threshold", "reader")


@dataclass(frozen=True)
class Uses:
    """What the two rules of a policy look at.

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
    neighbors : bool
        A rule looks at facts about neighbours, or at masters that are not computed.
    target, target_master : bool
        The edge rule looks at the target of an edge or its state; at the master of the target.
    """

    computed: bool
    masters: bool
    history: bool
    degrees: bool
    in_degrees: bool
    neighbors: bool
    target: bool
    target_master: bool


def uses_of(policy: Policy) -> Uses:
    """Inspect both rules of a policy.

    Raises
    ------
    PolicyError
        A rule is not a function, has another number of arguments, or calls itself through others.
    """
    for rule, names in ((policy.master, MASTER_ARGUMENTS), (policy.edge, EDGE_ARGUMENTS)):
        _check_signature(policy, rule, names)
    master = {MASTER_ARGUMENTS[place] for place in arguments_used(policy.master)}
    edge = {EDGE_ARGUMENTS[place] for place in arguments_used(policy.edge)}
    of_master = attributes_used(policy.master) & set(dir(Prop))
    of_both = of_master | attributes_used(policy.edge)
    computed = not (master & {"mstate", "masters"} or of_master.difference(KNOWN_EVERYWHERE))
    stateful = bool(policy.make_mstate or policy.make_estate)
    return Uses(
        computed=computed,
        masters="masters" in master,
        history=stateful or "masters" in master,
        degrees="neighbor_degree" in of_both,
        in_degrees="in_degree" in of_both,
        neighbors=not computed or bool({"place", "num_places", "neighbor_degree", "in_degree"} & of_both),
        target=bool({"dst", "dst_master", "estate"} & edge),
        target_master="dst_master" in edge,
    )


def arguments_used(rule: Callable) -> set[int]:
    """Places of the arguments that a rule looks at, whatever it calls them."""
    names = set(_loaded(rule, "LOAD_FAST"))
    return {place for place, name in enumerate(rule.__code__.co_varnames[: rule.__code__.co_argcount]) if name in names}


def attributes_used(rule: Callable) -> set[str]:
    """Attributes and methods that a rule and the functions that it calls look at, of ``prop`` and of anything else."""
    functions: list[Callable] = [rule, *_called(rule)]
    return {name for function in functions for name in _loaded(function, "LOAD_ATTR", "LOAD_METHOD")}


def constants_of(rule: Callable) -> bytes:
    """Values of the module's names that a rule and the functions that it calls use: they are compiled in."""
    functions: list[Callable] = [rule, *_called(rule)]
    values = []
    for function in functions:
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, np.ndarray):
                values.append(f"{name} {value.dtype} {value.shape}".encode() + value.tobytes())
            elif isinstance(value, int | float | complex | str | tuple):
                values.append(f"{name} {value!r}".encode())
    return b"\0".join(values)


def helpers_of(rule: Callable) -> dict[str, FunctionType]:
    """Plain functions of its module that a rule calls, by name."""
    assert isinstance(rule, FunctionType)
    named = {name: rule.__globals__.get(name) for name in rule.__code__.co_names}
    return {name: value for name, value in named.items() if isinstance(value, FunctionType) and value is not rule}


def _loaded(rule: Callable, *operations: str) -> Iterator[str]:
    for instruction in dis.get_instructions(rule):
        if instruction.opname.startswith(operations):
            value = instruction.argval
            yield from value if isinstance(value, tuple) else (value,)


def _called(rule: Callable, above: tuple[Callable, ...] = ()) -> list[FunctionType]:
    """All plain functions that a rule calls, directly or through others."""
    if rule in above:
        file = rule.__code__.co_filename
        raise PolicyError(f"{file}: {rule.__name__} calls itself through others, which a rule cannot do")
    enclosed = [cell.cell_contents for cell in rule.__closure__ or ()]
    functions = [value for value in enclosed if isinstance(value, FunctionType) and value is not rule]
    called = []
    for function in [*helpers_of(rule).values(), *functions]:
        called += [function, *_called(function, (*above, rule))]
    return called


def _check_signature(policy: Policy, rule: Callable, arguments: tuple[str, ...]) -> None:
    if not isinstance(rule, FunctionType):
        raise PolicyError(f"policy {policy.name}: a rule must be a function, not {type(rule).__name__}")
    count = rule.__code__.co_argcount
    if count != len(arguments):
        expected = f"{len(arguments)}: {', '.join(arguments)}"
        raise PolicyError(f"policy {policy.name}: {rule.__name__} has {count} arguments, not {expected}")
