"""What is generated for an edge operator, in terms that do not depend on the device, and what compiles it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cusp.runtime.devices import Array
from gluon.reduction import Reduction

if TYPE_CHECKING:
    from cusp.partition import Partition
    from gluon.label import Label
    from gluon.sync import Sync


@dataclass(frozen=True)
class Load:
    """A variable of the generated text, what it is set to, and its type there."""

    variable: str
    text: str
    kind: str


@dataclass(frozen=True)
class Pass:
    """One pass over the rows of a CSR, for labels of given types.

    Attributes
    ----------
    title : str
        For people who read the generated code.
    into_row : bool
        The row's end of an edge is written (pull), else the column's (push).
    filtered : bool
        There is a frontier: bits of the end that is read.
    reads_itself : bool
        The label that is written is also read.
    reduction : Reduction
    dtype : numpy type
        Of the label that is written; ``wide`` is the type in which a row is summed up, ``identity`` its first value.
    parameters : tuple of (name, numpy type or, of a number, ``Int``, ``Float`` or ``Bool``)
    row_loads, where_loads, loads : tuple of Load
        What does not depend on the edge; what the condition looks at; what the candidate looks at.
    where, candidate, compared : str
        Texts; ``where`` is empty without a condition. ``compared`` is the candidate where it is compared before it is
        stored: of a MIN or MAX of whole numbers still in 64 bits.
    """

    title: str
    into_row: bool
    filtered: bool
    reads_itself: bool
    reduction: Reduction
    dtype: np.dtype
    wide: str
    identity: str
    parameters: tuple[tuple[str, np.dtype | str], ...]
    row_loads: tuple[Load, ...]
    where_loads: tuple[Load, ...]
    loads: tuple[Load, ...]
    where: str
    candidate: str
    compared: str

    @property
    def leaves_out_rows(self) -> bool:
        """Whether the condition is one of the row's end alone, so that it leaves out whole rows."""
        return bool(self.where) and {*self.where_loads} <= {*self.row_loads}


@dataclass(frozen=True)
class Priority:
    """The priority of a node, as it is generated.

    Attributes
    ----------
    loads : tuple of Load
    text : str
        The place of the node is ``node``; its value in the label that is written is ``value``.
    kind : {'Value', 'Float'}
        Its type: that of the label where the priority is the value itself, so that it is exact and nothing is computed.
    whole : bool
        Priorities are whole numbers.
    """

    loads: tuple[Load, ...]
    text: str
    kind: str
    whole: bool


@dataclass(frozen=True)
class Ordered:
    """A pass in the order of priorities, with what it works on.

    Attributes
    ----------
    edges : Pass
        Pushes from the frontier.
    priority : Priority
    label : Label
        The one that is written.
    offsets, columns : arrays
        The rows of the nodes that are read.
    given : list of arrays and numbers
        The parameters of the pass.
    """

    edges: Pass
    priority: Priority
    label: "Label"
    offsets: Array
    columns: Array
    given: list[Any]

    @property
    def key(self) -> np.dtype:
        """The type of priorities."""
        return self.edges.dtype if self.priority.kind == "Value" else np.dtype(np.float64)


class Edges(Protocol):
    """Edge operators: code generated around an expression."""

    def compile_pass(self, edges: Pass) -> Callable[..., None]:
        """The code of a pass: ``run(part, frontier, offsets, columns, values, updated, *parameters)``."""


class Drain(Protocol):
    """The pending nodes of a rank, to be relaxed: those in the lowest bucket of priorities first.

    Attributes
    ----------
    edges : int
        How many have been relaxed.
    """

    edges: int

    def add(self, bits: Array) -> None:
        """Make nodes pending: all of the first frontier, later those whose value has changed since they were relaxed.

        Parameters
        ----------
        bits : bits of proxies
        """

    def run(self, edges: int) -> bool:
        """Relax pending nodes until none is left or about so many edges are relaxed; returns whether any is left.

        What changes is marked in the label's ``updated``.
        """

    def run_below(self, limit: Any) -> None:
        """Relax pending nodes whose priority is below ``limit`` until none is left.

        All of them if the limit is infinity, or the largest number of the label's type. In graphs with few edges per
        node the next buckets follow while they have few edges: what other ranks lower later is relaxed again, but there
        are fewer syncs.
        """

    def run_all(self) -> int:
        """Relax all that is pending and becomes so, where no rank shares a node with others. Returns the buckets.

        Nothing is marked in ``updated``.
        """

    def run_peers(self, sync: "Sync", write: str, read: str) -> int:
        """The same together with the other ranks, if all are peers. Collective; returns the most buckets of one.

        ``write`` and ``read`` are the ends of edges.
        """

    def lowest(self) -> Any:
        """The lowest priority of a pending node; infinity, or the largest number of the label's type, without one."""

    def bucket_end(self, lowest: Any) -> Any:
        """A limit for :meth:`run_below`: the end of the bucket of this priority."""

    def count(self) -> int:
        """How many nodes are pending."""


class Drains(Protocol):
    """Edge operators that work through their nodes by priority."""

    def Drain(self, part: "Partition", ordered: Ordered, delta: float | None, /) -> Drain:  # noqa: N802 - a class
        """See :class:`Drain`. ``delta``: the width of a bucket; None lets it be chosen."""
