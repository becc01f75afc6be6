"""Edge operators: a pass over edges from an expression, compiled for the CPU or the GPU. No CUDA, no loops.

::

    relax = EdgeOperator("src.distance + weight", into="dst.distance")
    distance = Label(part, np.int64, FAR, MIN)
    distance.write(source, 0)
    rounds = relax.until_quiet(part, sync, distance=distance)
"""

import math
from typing import Any

from cusp.apps.operators.expressions.binding import SPECIAL, Binding
from cusp.apps.operators.expressions.expression import ENDS, Expression
from cusp.apps.operators.expressions.interfaces import Drain, Drains, Edges
from cusp.apps.operators.expressions.relaxing import BY_PRIORITY, IN_ANY_ORDER, WITHOUT_ROWS, Work
from cusp.errors import OptionError
from cusp.partition import Partition
from cusp.runtime import debugging, timeline
from cusp.runtime.devices import backend, finisher
from gluon import checks
from gluon.label import Label
from gluon.sync import Sync


class EdgeOperator:
    """For each local edge u -> v of weight w: a candidate, which the label's reduction combines into one of the ends.

    Parameters
    ----------
    expression : str
        The candidate, in the language of docs/language.md. ``src.x`` and ``dst.x`` are values at the ends of the edge,
        ``x`` is the one at the end that is read, ``weight`` that of the edge (1 without weights), ``src.gid`` and
        ``dst.gid`` are global ids. Each call says what ``x`` is.
    into : str
        The end and label that are written: ``dst.NAME`` or ``src.NAME``. The other end is the one that is read.
    where : str, optional
        A condition: other edges are left out.
    priority : str, optional
        What :meth:`until_quiet` goes by: of its nodes, each rank relaxes those first for which this is lowest. It sees
        numbers, values at the end that is read, and the global id there. The answer is the same in any order.
    delta : float, optional
        Nodes count as equal whose priorities are between the same two multiples of this, from the lowest one on. By
        default it follows from how much higher priorities are behind edges, and from the edges per node, as in
        delta-stepping; for priorities that are whole numbers it is at least 1.

    Raises
    ------
    OptionError
        With the expression and the column where it is wrong.

    Notes
    -----
    Types, the same on all devices: whole numbers are computed in 64 bits, floats in float64. Whole numbers do not wrap
    around but stop at the limits of 64 bits, and at those of the label when they are stored. So the largest number of
    a type, as the distance of an unreached node, stays the largest one when a weight is added (not when one is
    subtracted: then leave such nodes out by ``where``, or use floats and infinity). Sums in an ADD label wrap around
    like those of NumPy.

    An operator that reads the label that it writes sees values from before, during or after the pass; it is for the
    user to know that this does no harm (MIN and MAX until nothing changes), or that the edges that ``where`` keeps
    never read what others write. Sums of floats do not depend on timing, except where a GPU writes at the column's end
    (``dst`` without CSC, or with a frontier).

    Examples
    --------
    Shortest paths from node 0, on the ranks of one process:

    >>> import numpy as np
    >>> from cusp import partition_graph
    >>> from gluon.label import Label
    >>> from gluon.reduction import MIN
    >>> from gluon.sync import Sync
    >>> graph = partition_graph(([0, 0, 1], [1, 2, 2], [2, 9, 3]))
    >>> part, sync = graph.part, Sync(graph.plan, graph.comm)
    >>> distance = Label(part, np.int64, 2**63 - 1, MIN)
    >>> distance.write(0, 0)
    >>> relax = EdgeOperator("src.distance + weight", into="dst.distance")
    >>> relax.until_quiet(part, sync, distance=distance)
    1
    >>> sorted(zip(part.gids.tolist(), distance.masters().tolist()))
    [(0, 0), (1, 2), (2, 5)]
    """

    def __init__(
        self, expression: str, into: str = "dst.value", where: str | None = None, *, priority: str | None = None,
        delta: float | None = None,
    ) -> None:  # fmt: skip
        self.expression = Expression(expression)
        self.where = None if where is None else Expression(where)
        self.priority = None if priority is None else Expression(priority)
        self.delta = delta
        end, _, name = into.partition(".")
        if end not in ENDS or not name.isidentifier() or name in SPECIAL:
            raise OptionError(f'into="{into}": expected "dst.NAME" or "src.NAME"')
        self.into, self.write, self.read = name, end, ENDS[1 - ENDS.index(end)]
        self._compiled: dict[tuple, Any] = {}
        if self.priority is not None:
            for read, column in self.priority.names.items():
                if read.end == self.write or str(read) == "weight":
                    why = f"{read}: a priority is that of a node, and sees values at {self.read} only"
                    self.priority.refuse(column, why)
        if delta is not None and not 0 < delta < math.inf:
            raise OptionError(f"delta={delta}: the width of a bucket must be above 0")

    def __repr__(self) -> str:
        where = f", where {self.where.text}" if self.where else ""
        return f"EdgeOperator({self.write}.{self.into} <- {self.expression.text}{where})"

    def __call__(self, part: Partition, /, *, frontier: Any = None, **given: Any) -> None:
        """Run over the edges of this rank.

        Parameters
        ----------
        part : Partition
            If it has a CSC, its rows serve passes that write at their own end, or start there from a frontier.
        frontier : bits of proxies, optional
            What :meth:`gluon.label.Label.swap_updated` returns: only edges whose end that is read has its bit set.
        given : Label, (proxies,) array or number
            What the names of the expression stand for. The one that is written must be a Label; its bits say where it
            changed.

        Raises
        ------
        OptionError
            Names or types do not fit the expression, or a label belongs to another partition.
        """
        if not debugging.on():
            self._run(part, frontier, given)
            return
        label = Binding(self, part, given).label
        for name, ends in self._reads().items():
            if isinstance(given[name], Label):
                checks.read(str(self), name, given[name], ends)
        before = checks.before_write(label)
        self._run(part, frontier, given)
        checks.written(str(self), self.into, label, self.write, before)

    def _reads(self) -> dict[str, set[str]]:
        """Of each name, the ends at which it is read."""
        ends: dict[str, set[str]] = {}
        for expression in (self.expression, self.where):
            for name in expression.names if expression else ():
                if name.name not in SPECIAL:
                    ends.setdefault(name.name, set()).add(name.end or self.read)
        return ends

    def _run(self, part: Partition, frontier: Any, given: dict[str, Any]) -> None:
        """Run over the edges of this rank."""
        bound = Binding(self, part, given)
        label = bound.label
        bits = label.updated if frontier is None else bound.checked(frontier)
        run, rows, values = self._bound_to(part, bound, frontier is not None)
        timeline.call(
            self.expression.text, timeline.OPERATOR, finisher(part.device), run,
            part, bits, *rows, label.values, label.updated, *values,
        )  # fmt: skip

    def _bound_to(self, part: Partition, bound: Binding, filtered: bool) -> tuple[Any, tuple[Any, Any], list[Any]]:
        """The compiled pass for a partition, with the rows and values that it takes."""
        out_edges = part.csc is None or (self.read if filtered else self.write) == "src"
        key = (part.device, out_edges, filtered, *bound.types)
        if key not in self._compiled:
            edges = bound.edges("src" if out_edges else "dst", filtered)
            self._compiled[key] = backend(Edges, part.device).compile_pass(edges)
        rows = (part.offsets, part.targets) if out_edges else (part.csc.offsets, part.csc.sources)  # type: ignore[union-attr]
        return self._compiled[key], rows, bound.values(out_edges)

    def until_quiet(self, part: Partition, sync: Sync, /, **given: Any) -> int:
        """Run from the updated nodes on, sync, and again until no node changes. Collective; returns the rounds.

        Nodes are relaxed in the order of their priority, if one was given, or if the label is reduced by MIN or MAX and
        candidates depend on the edge: the lowest values, or the highest, come first. Then ``apps/operators/ways.py``
        says how; on a rank without others, and over CPUs that share memory, buckets are counted in place of rounds.
        With several threads, buckets vary where edges lead back to lower priorities; the answer does not.

        If ``sync`` is asynchronous, there are no rounds: a rank runs and tells others until all are quiet. Then it
        returns the most runs of a rank.

        Raises
        ------
        OptionError
            As for a call; or the reduction must not count a candidate twice, as in sums.
        """
        bound = Binding(self, part, given)
        label = bound.label
        if not label.reduction.idempotent:
            raise OptionError(
                f"{self}: until_quiet is for idempotent reductions; {self.into} has {label.reduction.name}"
            )
        algorithm = BY_PRIORITY if bound.has_order else IN_ANY_ORDER if bound.has_rows else WITHOUT_ROWS
        work = Work(
            self.expression.text, label, self.write, self.read, lambda bits: self._run(part, bits, given),
            lambda: self._drain_of(part, bound),
        )  # fmt: skip
        return int(algorithm.form(part, sync).run(part, sync, work))

    def drain(self, part: Partition, /, **given: Any) -> Drain:
        """What keeps the nodes of this rank that are still to be relaxed, and relaxes them by priority.

        Raises
        ------
        OptionError
            As for a call; or a node's edges are not together in this partition.
        """
        return self._drain_of(part, Binding(self, part, given))

    def _drain_of(self, part: Partition, bound: Binding) -> Drain:
        key = ("drain", bound.has_order, *bound.types)
        if key not in self._compiled:
            self._compiled[key] = bound.edges(self.read, True), bound.priority()
        delta = self.delta if bound.has_order else 1.0  # one bucket has all nodes
        return backend(Drains, part.device).Drain(part, bound.ordered(*self._compiled[key]), delta)
