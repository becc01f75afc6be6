"""Edge operators: a pass over edges from an expression, compiled for the CPU or the GPU. No CUDA, no loops.

::

    relax = EdgeOperator("src.distance + weight", into="dst.distance")
    distance = Label(part, np.int64, FAR, MIN)
    distance.write(source, 0)
    rounds = relax.until_quiet(part, sync, distance=distance)
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from apps.operators.expressions.expression import BOOL, ENDS, FLOAT, INT, Expression, Name, Term, loaded, number, stored
from apps.operators.expressions.interfaces import Edges
from apps.operators.expressions.passes import Load, Pass
from cusp.errors import OptionError
from cusp.partition import Partition
from cusp.runtime.devices import backend, device_of
from gluon.label import Label
from gluon.sync import Sync

WRITABLE = ("int32", "uint32", "int64", "float32", "float64")  # what a GPU changes in one step
SPECIAL = ("weight", "gid")
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
NUMBER_TYPES: dict[str, Any] = {INT: np.int64, FLOAT: np.float64, BOOL: np.bool_}


class EdgeOperator:
    """For each local edge u -> v of weight w: a candidate, which the label's reduction combines into one of the ends.

    Parameters
    ----------
    expression : str
        The candidate, in the syntax of Python: ``+ - * / // % & | ^``, comparisons, ``and or not``, ``a if c else b``,
        ``min max abs sqrt exp log floor int float inf``. ``src.x`` and ``dst.x`` are values at the ends of the edge,
        ``x`` is that at the end which is read, ``weight`` that of the edge (1 without weights), ``src.gid`` and
        ``dst.gid`` are global ids. What ``x`` is, each call says.
    into : str
        The end and label that are written: ``dst.NAME`` or ``src.NAME``. The other end is the one that is read.
    where : str, optional
        A condition: other edges are left out.

    Raises
    ------
    OptionError
        With the expression and the column where it is wrong.

    Notes
    -----
    Types, the same on all devices: whole numbers are computed in 64 bits, floats in float64. Whole numbers do not wrap
    around but stop at the limits of 64 bits, and at those of the label when they are stored; so the largest number of
    a type, as the distance of what is not reached, stays the largest one when a weight is added (not when one
    is subtracted: then leave such nodes out by ``where``, or use floats and infinity). Sums of an ADD label wrap
    around like those of NumPy.

    An operator that reads the label that it writes sees values from before, during or after the pass; it is for
    the user to know that this does no harm (MIN and MAX until nothing changes), or that the edges that ``where``
    leaves keep them apart. Sums of floats do not depend on timing, except where a GPU writes at the column's end
    (``dst`` without CSC, or with a frontier).
    """

    def __init__(self, expression: str, into: str = "dst.value", where: str | None = None) -> None:
        self.expression = Expression(expression)
        self.where = None if where is None else Expression(where)
        end, _, name = into.partition(".")
        if end not in ENDS or not name.isidentifier() or name in SPECIAL:
            raise OptionError(f'into="{into}": expected "dst.NAME" or "src.NAME"')
        self.into, self.write, self.read = name, end, ENDS[1 - ENDS.index(end)]
        self._compiled: dict[tuple, Callable[..., None]] = {}

    def __repr__(self) -> str:
        where = f", where {self.where.text}" if self.where else ""
        return f"EdgeOperator({self.write}.{self.into} <- {self.expression.text}{where})"

    def __call__(self, part: Partition, /, *, frontier: Any = None, **given: Any) -> None:
        """Run over the edges of this rank.

        Parameters
        ----------
        part : Partition
            Rows of the CSC, where it is there, serve passes that write at their own end or start from a frontier there.
        frontier : bits of proxies, optional
            What :meth:`gluon.label.Label.swap_updated` returns: only edges whose end that is read has its bit.
        given : Label, (proxies,) array or number
            What the names of the expression stand for. The one that is written must be a Label; its bits say where it
            changed.

        Raises
        ------
        OptionError
            Names or types do not fit the expression, or a label belongs to another partition.
        """
        bound = Binding(self, part, given)
        out_edges = part.csc is None or (self.read if frontier is not None else self.write) == "src"
        key = (part.device, out_edges, frontier is not None, *bound.types)
        if key not in self._compiled:
            edges = bound.edges("src" if out_edges else "dst", frontier is not None)
            self._compiled[key] = backend(Edges, part.device).compile_pass(edges)
        rows = (part.offsets, part.targets) if out_edges else (part.csc.offsets, part.csc.sources)  # type: ignore[union-attr]
        label = bound.label
        bits = label.updated if frontier is None else bound.checked(frontier)
        self._compiled[key](part, bits, *rows, label.values, label.updated, *bound.values(out_edges))

    def until_quiet(self, part: Partition, sync: Sync, /, **given: Any) -> int:
        """Run from the updated nodes on, sync, and again until no node changes. Collective; returns the rounds.

        Raises
        ------
        OptionError
            As a call; or candidates of one node must not count twice, as in sums.
        """
        label = Binding(self, part, given).label
        if not label.reduction.idempotent:
            raise OptionError(f"{self}: until_quiet is for MIN and MAX; {self.into} has {label.reduction.name}")
        rounds = 0
        while sync.total(label.num_updated_masters())[0] > 0:
            self(part, frontier=label.swap_updated(), **given)
            sync.reduce(label, write=self.write)
            sync.broadcast(label, read=self.read)
            rounds += 1
        return rounds


class Binding:
    """What the names of an operator stand for in one call, checked.

    Attributes
    ----------
    label : Label
        The one that is written.
    types : tuple
        All that the generated text depends on.
    """

    def __init__(self, operator: EdgeOperator, part: Partition, given: dict[str, Any]) -> None:
        self._operator, self._part, self._given = operator, part, given
        expressions = [operator.expression, *([operator.where] if operator.where else [])]
        for expression in expressions:
            for name, column in expression.names.items():
                self._check_name(expression, name, column)
        names = {name.name for expression in expressions for name in expression.names}
        surplus = [key for key in given if key not in {*names, operator.into} or key in SPECIAL]
        if surplus:
            raise OptionError(f"{operator}: {surplus[0]} is given, but is none of its names")
        label = given.get(operator.into)
        if not isinstance(label, Label):
            raise OptionError(f"{operator}: {operator.into} is written, so it must be a Label, not {_kind(label)}")
        self.label = label
        self._values = {name: self._value_of(name, given[name]) for name in sorted(given)}
        if label.reduction.neutral is None or label.values.dtype.name not in WRITABLE:
            what = f"{label.values.dtype} with the reduction {label.reduction.name}"
            possible = f"{', '.join(WRITABLE)} with a reduction that has an identity, such as min, max and add"
            raise OptionError(f"{operator}: {operator.into} is {what}; written can be {possible}")
        weight = part.weights is not None and part.weights.dtype
        self.types = (label.reduction, label.values.dtype, weight, *map(_type_of, self._values.values()))
        self._used = sorted(names)

    def _check_name(self, expression: Expression, name: Name, column: int) -> None:
        if (name.name == "gid" and name.end) or str(name) == "weight":
            return
        if name.name in SPECIAL:
            expression.refuse(column, f"{name}: there are weight, src.gid and dst.gid")
        if name.name not in self._given:
            known = ", ".join(self._given) or "nothing"
            expression.refuse(column, f"{name} is not given; given are {known}")
        if name.end and isinstance(self._given[name.name], NUMBERS):
            expression.refuse(column, f"{name.name} is a number, which is the same at both ends: write {name.name}")

    def _value_of(self, name: str, value: Any) -> Any:
        """An array, or a number."""
        operator, part = self._operator, self._part
        if isinstance(value, Label):
            if value.part is not part:
                raise OptionError(f"{operator}: the label {name} belongs to another partition")
            return value.values
        if isinstance(value, NUMBERS):
            return NUMBER_TYPES[number(value).kind](value)
        if (
            getattr(value, "shape", None) != (part.num_proxies,)
            or getattr(value, "dtype", np.dtype("O")).kind not in "biuf"
        ):
            raise OptionError(
                f"{operator}: {name} is {_kind(value)}; expected a Label, a number, or an array with a number for each "
                f"of the {part.num_proxies:,} proxies"
            )
        if device_of(value) != part.device:
            raise OptionError(f"{operator}: {name} is on the {device_of(value)}, the partition is on the {part.device}")
        return value

    def checked(self, frontier: Any) -> Any:
        """A frontier, if it is one."""
        bits = self.label.updated
        if type(frontier) is not type(bits) or (frontier.shape, frontier.dtype) != (bits.shape, bits.dtype):
            raise OptionError(f"{self._operator}: frontier is {_kind(frontier)}, not what Label.swap_updated() returns")
        if frontier is bits:
            raise OptionError(f"{self._operator}: frontier is where the operator marks changes; take swap_updated()")
        return frontier

    def values(self, out_edges: bool) -> list[Any]:
        """Arrays and numbers, in the order of the parameters of the generated text."""
        part = self._part
        weights = part.weights if out_edges or part.csc is None else part.csc.weights
        special = {"weight": weights, "gid": part.gids}
        return [{**self._values, **special}[name] for name, _ in self._parameters()]

    def _parameters(self) -> list[tuple[str, Any]]:
        arrays = {"weight": self._part.weights, "gid": self._part.gids, **self._values}
        return [(name, _type_of(arrays[name])) for name in self._used if arrays[name] is not None]

    def edges(self, row_end: str, filtered: bool) -> Pass:
        """What is to be generated for a walk through rows that hold this end of the edges."""
        operator, label = self._operator, self.label
        loads = {name: self._load(name, row_end) for name in self._names()}
        terms = {name: term for name, (term, _) in loads.items()}
        dtype = label.values.dtype
        candidate = stored(operator.expression.typed(terms), dtype)
        if candidate is None:
            advice = "write floor(...), int(...), or take a label of floats"
            operator.expression.refuse(1, f"this is a float, and {operator.into} is {dtype}: {advice}")
        condition = operator.where.condition(terms) if operator.where else ""
        of_where = operator.where.names if operator.where else {}
        real = dtype.kind == "f"
        return Pass(
            title=repr(operator).replace('"', "'"), into_row=operator.write == row_end, filtered=filtered,
            reduction=label.reduction, dtype=dtype, wide=FLOAT if real else INT,
            identity=number(label.reduction.identity(dtype)).text,
            parameters=tuple((_parameter(name), kind) for name, kind in self._parameters()),
            row_loads=tuple(load for load in self._of(loads, loads) if "[row]" in load.text),
            where_loads=self._of(loads, of_where), loads=self._of(loads, operator.expression.names),
            where=condition, candidate=candidate,
        )  # fmt: skip

    def _names(self) -> list[Name]:
        operator = self._operator
        return sorted({*operator.expression.names, *(operator.where.names if operator.where else ())})

    @staticmethod
    def _of(loads: dict[Name, tuple[Term, Load | None]], names: Any) -> tuple[Load, ...]:
        return tuple(dict.fromkeys(load for name in names if (load := loads[name][1])))

    def _load(self, name: Name, row_end: str) -> tuple[Term, Load | None]:
        """What stands for a name in the text, and how its value is looked up."""
        if str(name) == "weight":
            if self._part.weights is None:
                return number(1), None
            return self._looked_up("edge_weight", "weight", "edge", self._part.weights.dtype)
        end = name.end or self._operator.read
        place = "row" if end == row_end else "col"
        if name.name == "gid":
            term, load = self._looked_up(f"{end}_gid", "gid", place, np.dtype(np.int64))
            return Term(term.text, INT, 0, 1 << 62), load
        value = self._values[name.name]
        if np.ndim(value) == 0:
            kind = _type_of(value)
            return Term(_parameter(name.name), kind), None
        return self._looked_up(f"{end}_{name.name}", name.name, place, value.dtype)

    @staticmethod
    def _looked_up(variable: str, array: str, place: str, dtype: np.dtype) -> tuple[Term, Load]:
        term = loaded(f"{_parameter(array)}[{place}]", dtype)
        return Term(variable, term.kind, term.low, term.high), Load(variable, term.text, term.kind)


def _parameter(name: str) -> str:
    return f"all_{name}"


def _kind(value: Any) -> str:
    """What a value is, for people."""
    if isinstance(value, Label):
        return "a Label"
    shape = getattr(value, "shape", None)
    return f"{type(value).__name__}" if shape is None else f"an array of shape {shape} and type {value.dtype}"


def _type_of(value: Any) -> Any:
    """The type of an array; of a number, what it is in the text."""
    if value is None or np.ndim(value):
        return None if value is None else value.dtype
    return number(value).kind
