"""Sums over the neighbours of every node, and iterations of them: what PageRank and other centralities share."""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cusp import ADD, Label, Partition, Sync
from cusp.apps.operators.interfaces import InEdges, in_edges_of
from cusp.apps.operators.sums.interfaces import Rows
from cusp.apps.shared.lengths import refuse_unfit
from cusp.errors import OptionError, together
from cusp.kernels.arrays import compress, filled_rows, mapped, numbers, total_of_floats
from cusp.program.cli import between, positive
from cusp.runtime.devices import backend
from cusp.runtime.threads import num_threads
from gluon.reduction import ASSIGN

EDGES_AT_ONCE = 1 << 19  # of a thread, while messages are on their way: a millisecond or less
ITERATED: dict[str, Any] = {  # of an App with the options of add_options
    "needs_csc": lambda options, symmetric: not symmetric,
    "needs_source": False,
    "weighted": True,
    "rehearsed": {"tolerance": np.inf},  # one iteration
}


class ConvergenceError(OptionError):
    """An iteration ended by its limit, or since its values grew without end."""


class Neighbours(NamedTuple):
    """The rows over which every node adds up: those of its in-neighbours, or of its out-neighbours.

    Attributes
    ----------
    edges : InEdges
        In those of out-neighbours, ``sources`` are targets.
    rows : Any
        All rows with edges, as the operators take them, in groups: several of masters, then that of mirrors.
    groups : int
    weights : (edges,) any number type, or None
        What values are multiplied by; None where all edges count the same.
    """

    edges: InEdges
    rows: Any
    groups: int
    weights: Any


def in_neighbours(part: Partition, sync: Sync, weighted: bool) -> Neighbours:
    """In-neighbours. Weights of a symmetric graph may depend on the direction, so with them it gets a CSC."""
    if weighted:
        csc = part.csc or part.with_csc().csc
        assert csc is not None
        return _grouped(InEdges(csc.offsets, csc.sources, "src", "dst"), part, sync, csc.weights)
    edges = in_edges_of(part)
    assert edges is not None
    return _grouped(edges, part, sync, None)


def out_neighbours(part: Partition, sync: Sync, weighted: bool) -> Neighbours:
    """Out-neighbours."""
    return _grouped(InEdges(part.offsets, part.targets, "dst", "src"), part, sync, part.weights if weighted else None)


def _grouped(edges: InEdges, part: Partition, sync: Sync, weights: Any) -> Neighbours:
    """Where messages travel by themselves, masters have several groups of rows, mirrors one; else all rows are one."""
    lids = compress(filled_rows(edges.offsets), numbers(0, edges.offsets.size - 1, np.int32, part.device))
    bounds = [0, lids.size]
    if sync.exchange.transport.overlaps and part.num_proxies > part.num_masters:
        of_masters = int(edges.offsets[part.num_masters])
        steps = np.arange(0, of_masters, EDGES_AT_ONCE * num_threads())
        bounds = [*np.searchsorted(edges.offsets[lids], [*steps, of_masters]).tolist(), lids.size]
    rows = backend(Rows, part.device).group_rows(lids, bounds, edges.offsets)
    return Neighbours(edges, rows, len(bounds) - 1, weights)


def prepare_sums(part: Partition, sync: Sync, options: argparse.Namespace) -> Neighbours:
    """In-neighbours, for an app with the options of :func:`add_options`. Collective."""
    return in_neighbours(part, sync, _takes_weights(part, sync, options))


def prepare_both(part: Partition, sync: Sync, options: argparse.Namespace) -> tuple[Neighbours, Neighbours]:
    """In-neighbours and out-neighbours, likewise. Collective."""
    return both_neighbours(part, sync, _takes_weights(part, sync, options))


def both_neighbours(part: Partition, sync: Sync, weighted: bool) -> tuple[Neighbours, Neighbours]:
    """In-neighbours and out-neighbours."""
    return in_neighbours(part, sync, weighted), out_neighbours(part, sync, weighted)


def _takes_weights(part: Partition, sync: Sync, options: argparse.Namespace) -> bool:
    """Whether edges count by weight: the graph has weights, and they are wanted. Collective.

    Raises
    ------
    GraphFileError
        On every rank: a weight is negative or infinite.
    """
    if options.unweighted or sync.total(int(part.weights is None)) != (0,):
        return False
    assert part.weights is not None
    refuse_unfit(part, sync, part.weights, "sums")
    return True


class Sums:
    """For every node, the sum of what its neighbours give.

    Attributes
    ----------
    given, got : Label
        What each node gives; what it gets in all.
    """

    def __init__(self, part: Partition, sync: Sync, neighbours: Neighbours, precision: str = "float64") -> None:
        self.given, self.got = Label(part, precision, 0, ASSIGN), Label(part, precision, 0, ADD)
        self._sync, self._neighbours, self._ops = sync, neighbours, backend(Rows, part.device)

    def add_up(self) -> None:
        """Add up what the masters give. Before, what masters got must be 0. Collective.

        Sums of mirrors come first: they may travel while masters add up theirs.
        """
        (_, ends, read, write), rows, groups, weights = self._neighbours
        self.given.mark_all()
        self._sync.broadcast(self.given, read=read)

        def sum_up(group: int) -> None:
            self._ops.sum_rows(rows, group, ends, self.given.values, self.got.values, weights)

        sum_up(groups - 1)
        self.got.mark_all()
        self._sync.reduce(self.got, write=write, meanwhile=map(sum_up, range(groups - 1)) if groups > 1 else None)

    def of(self, values: Any) -> Any:
        """(masters,) what masters get if they give ``values``; it stays until the next call. Collective."""
        self.given.masters()[:], self.got.masters()[:] = values, 0
        self.add_up()
        return self.got.masters()


def repeat(
    sync: Sync, step: Callable[[Any], Any], values: Any, tolerance: float, iterations: int, raised: str = ""
) -> tuple[Any, int, float]:
    """Replace values by ``step(values)`` until one more step would change them by less than a tolerance. Collective.

    Parameters
    ----------
    values : (masters,) float64
    tolerance : float
        Of the sum of all absolute changes.
    iterations : int
        The most steps.
    raised : str
        The option to divide where changes grow from step to step, if there is one.

    Returns
    -------
    values, rounds, change
        Those of the last step, which made the change.

    Raises
    ------
    ConvergenceError
        On every rank.
    """
    rounds, growth, change = 0, 0.0, np.inf
    while True:
        with np.errstate(over="ignore", invalid="ignore"):
            new, before = step(values), change
            (change,) = sync.total(total_of_floats(mapped(lambda one, other: abs(one - other), new, values)))
        sync.end_round(change=change)
        rounds += 1
        if change < tolerance:
            return values, rounds, change
        growth = change / before if 0 < before and change < np.inf else growth
        with together(sync.comm):
            if rounds == iterations or not np.isfinite(change):
                advice = "allow more --iterations, or a larger --tolerance"
                if not np.isfinite(change):
                    advice = "use smaller weights, whose sums are below 1.8e308"
                if raised and growth >= 1:
                    advice = f"divide {raised} by more than {growth:.3g}, by which changes grow in each"
                raise ConvergenceError(
                    f"iteration {rounds:,} changes the values by {change:.3g}, not by less than --tolerance "
                    f"{tolerance:g}; {advice}"
                )
        values = new


def add_options(parser: argparse.ArgumentParser, tolerance: float, what: str) -> None:
    """Options of an app that repeats steps; ``what`` the tolerance bounds."""
    parser.add_argument(
        "--tolerance", type=between(0, 1), default=tolerance, metavar="T",
        help=f"stop when one more iteration would change {what} by less (default: {tolerance:g})",
    )  # fmt: skip
    parser.add_argument(
        "--iterations", type=positive, default=1000, metavar="N",
        help="give up, with an error, after N iterations (default: 1000)",
    )  # fmt: skip
    parser.add_argument("--unweighted", action="store_true", help="ignore weights: every edge counts 1")
