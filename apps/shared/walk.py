"""The walk of PageRank: its start nodes, by default or from a command line or file, and the data for its steps."""

import argparse
from typing import Any, NamedTuple

import numpy as np

from cusp import MAX, EdgeOperator, Label, Partition, Sync
from cusp.apps.operators.interfaces import Undirected
from cusp.apps.shared.lengths import refuse_unfit
from cusp.apps.shared.neighbour_sums import Neighbours, Sums, both_neighbours, in_neighbours
from cusp.errors import OptionError, together
from cusp.kernels.arrays import total
from cusp.program.cli import between, positive
from cusp.runtime.devices import backend, move, xp_of

LARGEST = EdgeOperator("weight", into="src.largest")
SMALL, LARGE = 2.0**-60, 2.0**90  # what the out-edges of a node weigh in all, if their products fit into a float32


class Walk(NamedTuple):
    """What does not change while ranks are computed.

    Attributes
    ----------
    teleport : (masters,) or (1,) float64
        With which probability it starts at each node, or at any.
    neighbours : Neighbours, or None if nothing is pulled
        In-neighbours.
    strengths : (senders,) number
        What the out-edges of each master that has some weigh in all; inf if they all weigh 0.
    stuck : (n,) lids
        Those: a walk ends there as it does without out-edges.
    """

    teleport: Any
    neighbours: Neighbours | None
    strengths: Any
    stuck: Any


def make_walk(part: Partition, sync: Sync, starting: dict[int, float] | None, pull: bool, weighted: bool) -> Walk:
    """A walk that starts at some nodes, given with their weights, or at all of them. Collective.

    Parameters
    ----------
    pull : bool
        Along in-edges; else residuals are pushed.
    weighted : bool
        A step follows each edge as often as it weighs; else all alike.

    Raises
    ------
    OptionError, GraphFileError
        On every rank: no such node; weights that cannot be shares.
    """
    teleport = part.storage.aside(starts_at(part, sync, starting))
    senders = total(part.degrees > 0)
    if not pull:
        return Walk(teleport, None, part.degrees[:senders], part.degrees[:0])
    if weighted:
        return _weighted_walk(part, sync, teleport, senders)
    return Walk(teleport, in_neighbours(part, sync, weighted=False), part.degrees[:senders], part.degrees[:0])


def starts_at(part: Partition, sync: Sync, weights: dict[int, float] | None) -> Any:
    """(masters,) float64: the probability that a walk starts there; (1,) if no nodes are given: at any. Collective.

    Raises
    ------
    OptionError
        On every rank.
    """
    if weights is None:
        return xp_of(part.device).full(1, 1 / part.num_nodes)
    with together(sync.comm):
        for gid in weights:
            part.check_node(gid, "--personalize")
        if not 0 < sum(weights.values()) < np.inf:
            raise OptionError("--personalize: the weights of the nodes must have a sum above 0 that is finite")
    gids = np.array(sorted(weights), np.int64)
    own, lids = part.masters_among(gids)
    values = np.array([weights[gid] for gid in gids.tolist()])
    teleport = np.zeros(part.num_masters)
    teleport[lids] = (values / values.sum())[own]
    return move(teleport, part.device)


def _weighted_walk(part: Partition, sync: Sync, teleport: Any, senders: int) -> Walk:
    """The walk along edges by weight, also where weights of a symmetric graph depend on the direction. Collective."""
    assert part.weights is not None
    refuse_unfit(part, sync, part.weights, "ranks")
    xp, (into, out) = xp_of(part.device), both_neighbours(part, sync, weighted=True)
    strengths = _strengths(part, sync, out)[:senders]
    some = strengths[strengths > 0]
    lowest, highest = (float(some.min()), float(some.max())) if some.size else (1.0, 1.0)
    if sync.total(int(not (SMALL <= lowest and highest <= LARGE)))[0]:
        out, into = _shares(part, sync, out, into)
        strengths = _strengths(part, sync, out)[:senders]
    stuck = xp.flatnonzero(strengths == 0)
    strengths[stuck] = np.inf
    return Walk(teleport, into, strengths, stuck)


def _strengths(part: Partition, sync: Sync, out: Neighbours) -> Any:
    """(masters,) float64: what the out-edges of each weigh in all. Collective."""
    return Sums(part, sync, out).of(1.0).copy()


def _shares(part: Partition, sync: Sync, out: Neighbours, into: Neighbours) -> tuple[Neighbours, Neighbours]:
    """Weights of out-edges and in-edges as shares of the largest of their source, so no sum is infinite. Collective."""
    xp, largest = xp_of(part.device), Label(part, np.float64, 0, MAX)
    LARGEST(part, largest=largest)
    sync.reduce(largest, write="src")
    sync.broadcast(largest, read="any")
    largest.values[largest.values == 0] = 1
    rows = backend(Undirected, part.device).rows_of_edges(part.offsets)
    shares = xp.divide(out.weights, largest.values[rows]), xp.divide(into.weights, largest.values[into.edges.sources])
    return out._replace(weights=shares[0]), into._replace(weights=shares[1])


def check_tolerance(options: argparse.Namespace, least: float, what: str, needed: str | None = None) -> None:
    """Raise OptionError if an iteration cannot be as exact as its options ask, or would never end.

    ``what`` is exact to ``least``; without the option ``needed``, if one is named, tolerance is not 0.
    """
    tolerance = options.tolerance
    if tolerance == 0 and (needed or not options.iterations):
        more = f" and {needed}" if needed else ""
        raise OptionError(f"--tolerance 0 never ends: give --iterations{more}")
    if 0 < tolerance < least:
        raise OptionError(f"--tolerance {tolerance:g}: {what} are exact to {least:.2g} only")


def add_walk_options(parser: argparse.ArgumentParser) -> None:
    """Options of a walk, and of when iterations end."""
    parser.add_argument(
        "--damping", type=between(1e-3, 1), default=0.85, metavar="D",
        help="probability that a walk continues at a node (default: 0.85)",
    )  # fmt: skip
    parser.add_argument(
        "--tolerance", type=between(0, 1), default=1e-6, metavar="T",
        help="stop when the sum of all changes in one iteration is lower (default: 1e-6)",
    )  # fmt: skip
    parser.add_argument(
        "--iterations", type=positive, metavar="N",
        help="stop after N iterations; with --tolerance 0, run exactly N (default: no limit)",
    )  # fmt: skip
    parser.add_argument(
        "--unweighted", action="store_true", help="ignore weights: follow all edges of a node with equal probability"
    )
