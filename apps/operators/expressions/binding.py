"""Bindings: what the names of an edge operator stand for in one call, checked, and the pass that it needs."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from cusp.apps.operators.expressions.expression import Expression, Name
from cusp.apps.operators.expressions.interfaces import Load, Ordered, Pass, Priority
from cusp.errors import OptionError
from cusp.language.terms import BOOL, FLOAT, INT, Term, compared, converted, loaded, number, stored
from cusp.partition import Partition
from cusp.runtime.devices import device_of
from gluon.label import Label
from gluon.reduction import MAX, MIN

if TYPE_CHECKING:
    from cusp.apps.edge_operator import EdgeOperator

WRITABLE = ("int32", "uint32", "int64", "float32", "float64")  # what a GPU changes in one step
SPECIAL = ("weight", "gid")
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
NUMBER_TYPES: dict[str, Any] = {INT: np.int64, FLOAT: np.float64, BOOL: np.bool_}
GID_LIMIT = 1 << 62


class Binding:
    """What the names of an operator stand for in one call, checked.

    Attributes
    ----------
    label : Label
        The one that is written.
    types : tuple
        All that the generated text depends on.
    reads_itself : bool
        The label that is written is also read.
    has_rows : bool
        The edges of a node that is read are together in this partition.
    has_order : bool
        Some orders of relaxing are better than others: a priority was given, or candidates lie at different distances
        from the values that they come from, and the lowest (of MAX, the highest) value is never taken back.
    """

    def __init__(self, operator: "EdgeOperator", part: Partition, given: dict[str, Any]) -> None:
        self._operator, self._part = operator, part
        expressions = (operator.expression, operator.where, operator.priority)
        self._expressions = [expression for expression in expressions if expression]
        for expression in self._expressions:
            for name, column in expression.names.items():
                _check_name(expression, name, column, given)
        names = {name.name for name in self._names()}
        surplus = [key for key in given if key not in {*names, operator.into} or key in SPECIAL]
        if surplus:
            self._refuse(f"{surplus[0]} is given, but is not one of its names")
        self.label = self._written(given.get(operator.into))
        self._values = {name: self._value_of(name, given[name]) for name in sorted(given)}
        weight = part.weights is not None and part.weights.dtype
        read = [value for name, value in self._values.items() if name in names and np.ndim(value)]
        own = self.label.values
        host = isinstance(own, np.ndarray)
        self.reads_itself = any(own is value or (host and np.may_share_memory(own, value)) for value in read)
        types = map(_type_of, self._values.values())
        self.types = (self.label.reduction, self.label.values.dtype, self.reads_itself, weight, *types)
        self._used = sorted(names)
        self.has_rows = operator.read == "src" or part.csc is not None
        self.has_order = operator.priority is not None or (self.has_rows and self._varies())

    def _varies(self) -> bool:
        """Whether candidates depend on the edge, not only on the value that they come from."""
        operator, weighs = self._operator, self._part.weights is not None
        others = {
            name for name in operator.expression.names if name.name != operator.into or name.end == operator.write
        }
        looks = any(weighs if str(name) == "weight" else np.ndim(self._values.get(name.name, ())) for name in others)
        return looks and self.label.reduction in (MIN, MAX)

    def _refuse(self, why: str) -> NoReturn:
        raise OptionError(f"{self._operator}: {why}")

    def _names(self) -> list[Name]:
        return sorted({name for expression in self._expressions for name in expression.names})

    def _written(self, label: Any) -> Label:
        """The label that is written, if it can be."""
        into = self._operator.into
        if not isinstance(label, Label):
            self._refuse(f"{into} is written, so it must be a Label, not {_kind(label)}")
        if label.reduction.neutral is None or label.values.dtype.name not in WRITABLE:
            what = f"{label.values.dtype} with the reduction {label.reduction.name}"
            possible = f"{', '.join(WRITABLE)} with a reduction that has an identity, such as min, max and add"
            self._refuse(f"{into} is {what}; written can be {possible}")
        return label

    def _value_of(self, name: str, value: Any) -> Any:
        """An array, or a number."""
        part = self._part
        if isinstance(value, Label):
            if value.part is not part:
                self._refuse(f"the label {name} belongs to another partition")
            return value.values
        if isinstance(value, NUMBERS):
            return NUMBER_TYPES[number(value).kind](value)
        shape, kind = getattr(value, "shape", None), getattr(value, "dtype", np.dtype("O")).kind
        if shape != (part.num_proxies,) or kind not in "biuf":
            proxies = f"{part.num_proxies:,} proxies"
            expected = f"expected a Label, a number, or an array with a number for each of the {proxies}"
            self._refuse(f"{name} is {_kind(value)}; {expected}")
        if device_of(value) != part.device:
            self._refuse(f"{name} is on the {device_of(value)}, the partition is on the {part.device}")
        return value

    def checked(self, frontier: Any) -> Any:
        """A frontier, if it is one."""
        bits = self.label.updated
        if type(frontier) is not type(bits) or (frontier.shape, frontier.dtype) != (bits.shape, bits.dtype):
            self._refuse(f"frontier is {_kind(frontier)}, not what Label.swap_updated() returns")
        if frontier is bits:
            self._refuse("frontier is where the operator marks changes; take swap_updated()")
        return frontier

    def values(self, out_edges: bool) -> list[Any]:
        """Arrays and numbers, in the order of the parameters of the generated text."""
        part = self._part
        weights = part.weights if out_edges or part.csc is None else part.csc.weights
        return [{**self._values, "weight": weights, "gid": part.gids}[name] for name, _ in self._parameters()]

    def _parameters(self) -> list[tuple[str, Any]]:
        arrays = {"weight": self._part.weights, "gid": self._part.gids, **self._values}
        return [(name, _type_of(arrays[name])) for name in self._used if arrays[name] is not None]

    def edges(self, row_end: str, filtered: bool) -> Pass:
        """What is to be generated for a walk through rows that hold this end of the edges."""
        operator, label, dtype = self._operator, self.label, self.label.values.dtype
        names = {*operator.expression.names, *(operator.where.names if operator.where else ())}
        loads = {name: self._load(name, row_end) for name in sorted(names)}
        terms = {name: term for name, (term, _) in loads.items()}
        row_loads = tuple(load for load in _distinct(loads, loads) if "[row]" in load.text)
        return Pass(
            title=repr(operator).replace('"', "'"), into_row=operator.write == row_end, filtered=filtered,
            reads_itself=self.reads_itself, reduction=label.reduction, dtype=dtype,
            wide=FLOAT if dtype.kind == "f" else INT, identity=number(label.reduction.identity(dtype)).text,
            parameters=tuple((_parameter(name), kind) for name, kind in self._parameters()), row_loads=row_loads,
            where_loads=_distinct(loads, operator.where.names if operator.where else ()),
            loads=_distinct(loads, operator.expression.names),
            where=operator.where.condition(terms) if operator.where else "", candidate=self._candidate(terms),
            compared=self._compared(terms),
        )  # fmt: skip

    def priority(self) -> Priority:
        """What is to be generated for the priority of a node: the value itself, if none was given; of MAX, less it.

        Where there is no order, all nodes have the same.
        """
        operator, dtype = self._operator, self.label.values.dtype
        if not self.has_order:
            return Priority((), "Float(0)", "Float", True)
        default = Expression(operator.into if self.label.reduction == MIN else f"-{operator.into}")
        expression = operator.priority or default
        whole = dtype.kind != "f"
        if expression.text in (operator.into, f"{operator.read}.{operator.into}"):
            return Priority((), "value", "Value", whole)
        loads = {
            name: self._load(name, operator.read, "node") for name in expression.names if name.name != operator.into
        }
        terms = {name: term for name, (term, _) in loads.items()}
        own = {name: loaded("value", dtype) for name in expression.names if name.name == operator.into}
        priority = expression.typed(terms | own)
        return Priority(_distinct(loads, loads), converted(priority, FLOAT).text, "Float", priority.kind != FLOAT)

    def ordered(self, edges: Pass, priority: Priority) -> Ordered:
        """A pass from nodes in the order of their priority, with what it works on."""
        operator, part = self._operator, self._part
        out_edges = operator.read == "src"
        if not out_edges and part.csc is None:
            self._refuse(
                "its nodes read at dst, and this partition has no in-edges of a node together: ask for csc=True"
            )
        rows = (part.offsets, part.targets) if out_edges else (part.csc.offsets, part.csc.sources)  # type: ignore[union-attr]
        return Ordered(edges, priority, self.label, *rows, self.values(out_edges))

    def _candidate(self, terms: Mapping[Name, Term]) -> str:
        """The text of the candidate as a value of the label."""
        operator, dtype = self._operator, self.label.values.dtype
        candidate = stored(operator.expression.typed(terms), dtype)
        if candidate is None:
            advice = "write floor(...), int(...), or take a label of floats"
            operator.expression.refuse(1, f"this is a float, and {operator.into} is {dtype}: {advice}")
        return candidate

    def _compared(self, terms: Mapping[Name, Term]) -> str:
        """The text of the candidate for a reduction that compares it with a value before it is stored."""
        operator, reduction, dtype = self._operator, self.label.reduction, self.label.values.dtype
        text = None
        if reduction in (MIN, MAX):
            text = compared(operator.expression.typed(terms), dtype, reduction == MIN)
        return text or self._candidate(terms)

    def _load(self, name: Name, row_end: str, row: str = "row") -> tuple[Term, Load | None]:
        """What stands for a name in the text, and how its value is looked up; ``row`` is the place of the row's end."""
        if str(name) == "weight":
            if self._part.weights is None:
                return number(1), None
            return _looked_up("edge_weight", "weight", "edge", self._part.weights.dtype)
        end = name.end or self._operator.read
        place = row if end == row_end else "col"
        if name.name == "gid":
            term, load = _looked_up(f"{end}_gid", "gid", place, np.dtype(np.int64))
            return Term(term.text, INT, 0, GID_LIMIT), load
        value = self._values[name.name]
        if np.ndim(value) == 0:
            return Term(_parameter(name.name), _type_of(value)), None
        return _looked_up(f"{end}_{name.name}", name.name, place, value.dtype)


def _check_name(expression: Expression, name: Name, column: int, given: Mapping[str, Any]) -> None:
    """Raise if a name does not stand for anything, or for something else."""
    if (name.name == "gid" and name.end) or str(name) == "weight":
        return
    if name.name in SPECIAL:
        expression.refuse(column, f"{name}: there are weight, src.gid and dst.gid")
    if name.name not in given:
        expression.refuse(column, f"{name} is not given; given are {', '.join(given) or 'nothing'}")
    if name.end and isinstance(given[name.name], NUMBERS):
        expression.refuse(column, f"{name.name} is a number, which is the same at both ends: write {name.name}")


def _looked_up(variable: str, array: str, place: str, dtype: np.dtype) -> tuple[Term, Load]:
    """A variable that holds an entry of an array."""
    term = loaded(f"{_parameter(array)}[{place}]", dtype)
    return Term(variable, term.kind, term.low, term.high), Load(variable, term.text, term.kind)


def _distinct(loads: Mapping[Name, tuple[Term, Load | None]], names: Iterable[Name]) -> tuple[Load, ...]:
    """What is looked up for these names, each once."""
    return tuple(dict.fromkeys(load for name in names if (load := loads[name][1])))


def _parameter(name: str) -> str:
    return f"all_{name}"


def _kind(value: Any) -> str:
    """What a value is, in words."""
    if isinstance(value, Label):
        return "a Label"
    shape = getattr(value, "shape", None)
    return f"{type(value).__name__}" if shape is None else f"an array of shape {shape} and type {value.dtype}"


def _type_of(value: Any) -> Any:
    """The type of an array; of a number, what it is in the text."""
    if value is None or np.ndim(value):
        return None if value is None else value.dtype
    return number(value).kind
