"""PageRank: where a walk is that follows edges, but starts anew with a certain probability at every step.

``mpirun -n 4 python -m apps.pagerank graph.h5 --policy cvc --tolerance 1e-9 --verify --output ranks.h5``
"""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from apps.bfs import in_edges_of
from apps.harness import Answer, App, main
from apps.operators.interfaces import Frontier
from apps.operators.sums.interfaces import Pagerank, Rows
from apps.shared.teleport import starts
from apps.verify.pagerank import verify_pagerank
from cusp.errors import OptionError
from cusp.launch import run_main
from cusp.partition import Partition
from cusp.program.cli import positive
from cusp.runtime.devices import backend, move, xp_of
from gluon.label import Label
from gluon.reduction import ADD, ASSIGN
from gluon.sync import Sync

UNIT = 2**62  # residuals are whole numbers, in parts of this
LEAST = {"float32": 1e-6, "float64": 1e-14}  # smallest tolerance: rounding changes the ranks by nearly as much
SPARED = 0.4  # of all residuals, at most, waits in a round


@dataclass(frozen=True)
class Walk:
    """What does not change while ranks are computed.

    Attributes
    ----------
    teleport : (masters,) float64
        Where the walk starts: its sum over all ranks is 1.
    read, write : {'src', 'dst'}
        Ends of the edges as they are stored, for pulls.
    columns : (edges,) int32
        Where a pull reads, row by row.
    rows : Any
        The rows, for the operators; None if nothing is pulled.
    queue : Any
        Memory for operators that push.
    """

    teleport: Any
    read: str
    write: str
    columns: Any
    rows: Any
    queue: Any


def pagerank(
    part: Partition, sync: Sync, walk: Walk, damping: float = 0.85, tolerance: float = 1e-6,
    iterations: int | None = None, precision: str = "float64",
) -> Answer:  # fmt: skip
    """Ranks of all nodes by the power method (Brin and Page, WWW 1998). Collective.

    Every node shares ``damping`` times its rank out among its out-edges, of which parallel ones count each. What is
    left, and all that nodes without out-edges have, goes to where the walk starts. A node pulls: it adds up what its
    in-neighbours give. A symmetric graph is pulled along its own rows.

    Parameters
    ----------
    walk : Walk
        What :func:`prepare` returned.
    tolerance : float
        Stop when the sum of the absolute changes in one iteration is below it.
    iterations : int, optional
        Stop after so many. With tolerance 0, that many are done.
    precision : {'float32', 'float64'}
        Of the ranks and of what travels.

    Returns
    -------
    Answer
        ``pagerank`` of this rank's masters, whose sum over all ranks is 1; figure ``l1_change`` of the last iteration.
    """
    ops, rows = backend(Pagerank, part.device), backend(Rows, part.device)
    contributions, sums = Label(part, precision, 0, ASSIGN), Label(part, precision, 0, ADD)
    teleport = walk.teleport.astype(precision)
    factors = damping / _positive_degrees(part).astype(precision)
    ranks = teleport * 0
    state = (teleport, factors, sums.values, ranks, contributions.values)
    change, dangling = sync.total(*ops.new_ranks(1, *state))
    rounds = 0
    while change >= tolerance and rounds != iterations:
        _all_updated(contributions)
        sync.broadcast(contributions, read=walk.read)
        rows.sum_rows(walk.rows, 0, walk.columns, contributions.values, sums.values)
        _all_updated(sums)
        sync.reduce(sums, write=walk.write)
        change, dangling = sync.total(*ops.new_ranks(1 - damping + damping * dangling, *state))
        rounds += 1
    return Answer({"pagerank": ranks}, None, rounds, {"l1_change": change})


def push_residuals(
    part: Partition, sync: Sync, walk: Walk, damping: float = 0.85, tolerance: float = 1e-6,
    iterations: int | None = None,
) -> Answer:  # fmt: skip
    """Ranks of all nodes by pushing residuals. Collective.

    A node's residual is by how much one more step would change its rank. What one settles, it adds to its rank, and
    pushes to where a step leads from there (Andersen, Chung and Lang, FOCS 2006, section 3; data-driven as in Whang et
    al., Euro-Par 2015). Nodes with little, for the edges that they have, wait, but at most the share ``SPARED`` of all.
    So a round settles most along few edges. Residuals have the sum 0: of each sign, a share of ``0.5 - SPARED`` or
    more is settled, and what of it goes to where walks start cancels. So the residuals shrink in every round.

    Numbers are whole, so sums do not depend on an order: any policy, number of ranks and device give the same answer,
    bit for bit.

    Returns
    -------
    Answer
        As that of :func:`pagerank`; ``l1_change`` is what one more iteration would change.
    """
    ops = backend(Pagerank, part.device)
    residuals, shares = Label(part, np.int64, 0, ADD), Label(part, np.int64, 0, ASSIGN)
    own = residuals.values[: part.num_masters]
    own[:] = (walk.teleport * UNIT).astype(np.int64)
    settled = own * 0
    lowest = 1 / damping + 1  # times its out-degree: with less, a node has nothing to give to each out-neighbour
    threshold, pending, whole, rounds = -1.0, 0.0, 0, 0  # a good guess: all settle where walks start
    while True:
        (left,) = sync.total(ops.collect(pending, walk.teleport, own))
        if rounds > 0:
            if left < tolerance * whole or rounds == iterations:
                break
            threshold = max(SPARED * left / max(part.num_edges, 1), lowest)
        moved, dangling = sync.total(
            *ops.settle(threshold, damping, part.degrees, own, settled, shares.values, shares.updated)
        )
        sync.broadcast(shares, read="src")
        frontier = shares.swap_updated()
        ops.push_shares(frontier, part.offsets, part.targets, shares.values, residuals.values, residuals.updated,
                        part.num_masters, walk.queue)  # fmt: skip
        sync.reduce(residuals, write="dst")
        pending = (1 - damping) * moved + damping * dangling - (UNIT if rounds == 0 else 0)
        whole += moved
        rounds += 1
    return Answer({"pagerank": settled / float(whole)}, None, rounds, {"l1_change": left / whole})


def _positive_degrees(part: Partition) -> Any:
    """Out-degrees of the masters that have out-edges: they are the first ones."""
    return part.degrees[: int((part.degrees > 0).sum())]


def _all_updated(label: Label) -> None:
    label.updated.fill(~label.updated.dtype.type(0))


def prepare(part: Partition, sync: Sync, options: argparse.Namespace) -> Walk:
    """Check the options, and lay out what they ask for. Collective.

    Raises
    ------
    OptionError
        On every rank.
    """
    pull = options.algorithm == "pull"
    _check(part, options, pull)
    teleport = move(starts(part, sync, options.personalize), part.device)
    if not pull:
        queue = backend(Frontier, part.device).make_queue(part)
        return Walk(teleport, "src", "dst", None, None, queue)
    read, write = ("dst", "src") if part.symmetric else ("src", "dst")
    offsets, columns = in_edges_of(part) or (part.offsets, part.targets)
    xp = xp_of(part.device)
    lids = xp.flatnonzero(offsets[1:] > offsets[:-1]).astype(np.int32)
    rows = backend(Rows, part.device).group_rows(lids, [0, lids.size], offsets)
    return Walk(teleport, read, write, columns, rows, None)


def _check(part: Partition, options: argparse.Namespace, pull: bool) -> None:
    """Raise if options do not go together."""
    tolerance = options.tolerance
    if tolerance == 0 and not (pull and options.iterations):
        raise OptionError("--tolerance 0 never ends: give --iterations, with --algorithm pull")
    if pull:
        least, what = LEAST[options.precision], f"ranks of --precision {options.precision}"
    else:
        least = (100 + 1 / options.damping) * (part.num_nodes + part.num_edges) / UNIT
        what = f"residuals on {part.num_edges:,} edges"
    if 0 < tolerance < least:
        raise OptionError(f"--tolerance {tolerance:g}: {what} are exact to {least:.2g} only")


def run(part: Partition, sync: Sync, walk: Walk, options: argparse.Namespace) -> Answer:
    """The algorithm that was asked for. Collective."""
    limits = (options.damping, options.tolerance, options.iterations)
    if options.algorithm == "pull":
        return pagerank(part, sync, walk, *limits, options.precision)
    return push_residuals(part, sync, walk, *limits)


def verify(part: Partition, sync: Sync, answer: Answer, walk: Walk, options: argparse.Namespace) -> None:
    """Check an answer against the tolerance, or, where ``--iterations`` ended it, what it says. Collective."""
    tolerance = options.tolerance
    if answer.rounds == options.iterations:
        tolerance = max(tolerance, answer.figures["l1_change"])
    noise = LEAST[answer.labels["pagerank"].dtype.name]
    verify_pagerank(part, sync, answer.labels["pagerank"], walk.teleport, options.damping, tolerance + noise)


def _between(lowest: float, highest: float) -> Any:
    """Type of an option: a number from ``lowest`` to below ``highest``."""

    def number(text: str) -> float:
        value = float(text)
        if not lowest <= value < highest:
            raise argparse.ArgumentTypeError(f"{text}: expected a number from {lowest:g} to below {highest:g}")
        return value

    return number


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument(
        "--damping",
        type=_between(1e-3, 1),
        default=0.85,
        metavar="D",
        help="probability that a walk goes on at a node (default: 0.85)",
    )
    parser.add_argument(
        "--tolerance",
        type=_between(0, 1),
        default=1e-6,
        metavar="T",
        help="stop when the ranks change by less in one iteration, all changes added up (default: 1e-6)",
    )
    parser.add_argument(
        "--iterations",
        type=positive,
        metavar="N",
        help="stop after N; with --tolerance 0, N are done (default: no limit)",
    )
    parser.add_argument(
        "--algorithm",
        choices=("pull", "push-residual"),
        default="pull",
        help="pull along all edges, or push along those of nodes with much to give (default: pull)",
    )
    parser.add_argument(
        "--precision",
        choices=("float32", "float64"),
        default="float64",
        help="of the ranks; float32 is faster, and right to about six digits (default: float64)",
    )
    parser.add_argument(
        "--personalize",
        nargs="+",
        metavar="GID",
        help="start walks at these nodes only; or a file with a node, and maybe a weight, in each line",
    )


APP = App(
    name="pagerank",
    summary="PageRank of every node",
    prepare=prepare,
    run=lambda part, sync, source, walk, options: run(part, sync, walk, options),
    verify=lambda part, sync, source, answer, walk, options: verify(part, sync, answer, walk, options),
    add_options=add_options,
    needs_csc=lambda options, symmetric: options.algorithm == "pull" and not symmetric,
    needs_source=False,
    rehearsed={"personalize": None},
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
