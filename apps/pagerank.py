"""PageRank: how likely a random walk is to be at each node, if each step follows an edge or, sometimes, starts anew.

``mpirun -n 4 python -m apps.pagerank graph.h5 --policy cvc --tolerance 1e-9 --verify --output ranks.h5``

>>> from cusp import pagerank, partition_graph
>>> graph = partition_graph(([0, 1, 2, 2], [1, 2, 0, 3]))
>>> pagerank(graph).pagerank.round(3)
array([0.214, 0.265, 0.308, 0.214])
"""

import argparse
from typing import Any

import numpy as np

from cusp import ADD, MAX, Answer, App, Checkpoint, Label, Partition, Sync, main, run_main
from cusp.apps.operators.sums.interfaces import Pagerank
from cusp.apps.operators.ways import Algorithm, Form
from cusp.apps.run.cli import add_checkpoint_options
from cusp.apps.run.former import REHEARSED, Former, FormerError, add_from_option
from cusp.apps.shared.neighbour_sums import Sums
from cusp.apps.shared.walk import Walk, add_walk_options, check_tolerance, make_walk
from cusp.apps.verify.centrality import verify_pagerank
from cusp.errors import GraphFileError, OptionError, together
from cusp.kernels.arrays import total, total_of_floats
from cusp.program.cli import weighted_node
from cusp.runtime.devices import backend
from gluon.mail.post import Channel, until_quiet
from gluon.reduction import ASSIGN

UNIT = 2**62  # residuals are whole numbers, this many for a rank of 1
SPARED = 0.4  # at most this share of all residuals waits in a round
OFF = {"float32": 1e-3, "float64": 1e-9}  # how far rounding may take the sum of all ranks from 1
FEW = 20  # iterations of a rehearsal, however many the run is to have
LEAST = {"float32": 1e-6, "float64": 1e-14}  # smallest tolerance: rounding changes the ranks by nearly as much
NOISE = {"float32": 1e-6, "float64": 1e-10}  # at most that much where hubs add up many ranks in another order


def pagerank(
    part: Partition, sync: Sync, walk: Walk, damping: float = 0.85, tolerance: float = 1e-6,
    iterations: int | None = None, precision: str = "float64", checkpoint: Checkpoint | None = None,
    former: Former | None = None,
) -> Answer:  # fmt: skip
    """Ranks of all nodes by the power method (Brin and Page, WWW 1998). Collective.

    Every node divides ``damping`` times its rank among its out-edges, by weight if they have weights; each of several
    parallel edges counts. The rest, and the whole rank of nodes without out-edges, or with such that weigh 0, goes to
    where the walk starts. Nodes pull: each adds up what its in-neighbours give. A symmetric graph without weights is
    pulled along its own rows.

    Parameters
    ----------
    walk : Walk
        What :func:`prepare` returned.
    tolerance : float
        Stop when the sum of the absolute changes in one iteration is below it.
    iterations : int, optional
        Stop after this many. With tolerance 0, exactly this many are done.
    precision : {'float32', 'float64'}
        Of the ranks and of the values that travel.
    checkpoint : Checkpoint, optional
        Where to go on from, and to write to.
    former : Former, optional
        Ranks in the graph before it grew, with which the iterations begin; nodes that were not there begin with 1 / n.

    Returns
    -------
    Answer
        ``pagerank`` of this rank's masters, whose sum over all ranks is 1; figure ``l1_change`` of the last iteration.
    """
    assert walk.neighbours is not None
    ops, sums = backend(Pagerank, part.device), Sums(part, sync, walk.neighbours, precision)
    teleport, factors, ranks = ops.begin(damping, precision, walk.teleport, walk.strengths, part.num_masters)
    state = (teleport, factors, sums.got.values, ranks, sums.given.values)

    def step(kept: float) -> tuple[float, float]:
        change, dangling = ops.new_ranks(kept, *state)
        stuck = total_of_floats(ranks[walk.stuck]) if walk.stuck.size else 0.0
        return sync.total(change, dangling + stuck)

    change, dangling = step(1)
    rounds = 0
    if checkpoint and checkpoint.goes_on:
        sums.got.masters()[:] = checkpoint.label("pagerank", precision)
        _, dangling = step(0)  # the ranks are these sums
        rounds, change = checkpoint.rounds, checkpoint.fact("l1_change")
    elif former:
        sums.got.masters()[:] = _shares_of(part, sync, former)
        _, dangling = step(0)
    while change >= tolerance and rounds != iterations:
        sums.add_up()
        change, dangling = step(1 - damping + damping * dangling)
        sync.end_round(change=change)
        rounds += 1
        if checkpoint and checkpoint.is_due(sync):
            checkpoint.write(rounds, {"pagerank": ranks}, l1_change=change)
    return Answer({"pagerank": ranks}, None, rounds, {"l1_change": change})


def _shares_of(part: Partition, sync: Sync, former: Former) -> Any:
    """(masters,) the former ranks, scaled so that they add up to 1 again. Collective.

    Raises
    ------
    FormerError
        On every rank: they are no ranks.
    """
    ranks = former.label(part, sync.comm, "pagerank", "f", 1.0 / part.num_nodes)
    whole, wrong = sync.total(total_of_floats(ranks), total(~(ranks >= 0)))
    with together(sync.comm):
        if wrong or not 0 < whole < np.inf:
            raise FormerError(f"{former.path}: /pagerank has no ranks: they are not below 0, and add up to 1")
    return ranks / whole


def push_residuals(
    part: Partition, sync: Sync, walk: Walk, damping: float = 0.85, tolerance: float = 1e-6,
    iterations: int | None = None, checkpoint: Checkpoint | None = None,
) -> Answer:  # fmt: skip
    """Ranks of all nodes by pushing residuals. Collective.

    A node's residual is what one more step would add to its rank. A node that settles its residual adds it to its rank
    and pushes it to where a step leads from there (Andersen, Chung and Lang, FOCS 2006, section 3; data-driven as in
    Whang et al., Euro-Par 2015). Nodes whose residual is small for the number of their edges wait, but with at most the
    share ``SPARED`` of all residuals: so a round settles most of them along few edges. Residuals add up to 0. So of
    each sign a share of ``0.5 - SPARED`` or more is settled, and what returns to where walks start cancels out:
    residuals shrink in every round.

    ``tolerance`` bounds the L1 norm of the residuals: the changes of all ranks in one more step, added up. The ranks
    are then within ``tolerance / (1 - damping)`` of the right ones, in the L1 norm.

    Residuals are whole numbers, so sums do not depend on the order: any policy, number of ranks and device give the
    same answer, bit for bit.

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
    lowest = 1 / damping + 1  # per out-edge: a node with less has nothing to give to each out-neighbour
    threshold, pending, whole, rounds = -1.0, 0.0, 0, 0  # in the first round, all settle where walks start
    if checkpoint and checkpoint.goes_on:
        own[:], settled[:] = checkpoint.label("residual", np.int64), checkpoint.label("settled", np.int64)
        rounds, pending, whole = checkpoint.rounds, checkpoint.fact("pending"), checkpoint.fact("whole")
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
        ops.push_shares(frontier, shares.values, residuals)
        sync.reduce(residuals, write="dst")
        sync.end_round()
        pending = (1 - damping) * moved + damping * dangling - (UNIT if rounds == 0 else 0)
        whole += moved
        rounds += 1
        if checkpoint and checkpoint.is_due(sync):
            checkpoint.write(rounds, {"residual": own, "settled": settled}, pending=pending, whole=whole)
    return Answer({"pagerank": settled / float(whole)}, None, rounds, {"l1_change": left / whole})


def push_alone(part: Partition, sync: Sync, walk: Walk, damping: float = 0.85, tolerance: float = 1e-6) -> Answer:
    """Ranks of all nodes by pushing residuals, every rank at its own pace. Collective.

    As :func:`push_residuals`, but nodes without out-edges keep what they get: what a walk from there would do is what
    it does from the start, so ranks only have to be scaled to add up to 1 (Del Corso, Gulli, Romani, Internet
    Mathematics 2005, section 2). Then nobody has to know the sum of all residuals before the end, which comes when all
    are small: with what is left of them, one more iteration would change ranks by less than ``tolerance``. Until then,
    residuals that are small beside others of this rank wait.

    A node sends its mirrors what it has given to each out-neighbour in all; they push what has been added since.

    Returns
    -------
    Answer
        As that of :func:`pagerank`; ``l1_change`` bounds what one more iteration would change.
    """
    ops = backend(Pagerank, part.device)
    residuals, given = Label(part, np.int64, 0, ADD), Label(part, np.int64, 0, MAX)
    masters, passed_on = slice(0, part.num_masters), given.values.copy()
    own, shares = residuals.values[masters], passed_on[masters] * 0
    own[:] = ((1 - damping) * UNIT * walk.teleport).astype(np.int64)
    settled = own * 0
    least = max(tolerance * (1 - damping) * UNIT / (2 * max(part.num_edges, 1)), 1 / damping + 1)
    edges = max(total(part.degrees), 1)

    def step() -> bool:
        residuals.swap_updated()
        ops.push_shares(given.swap_updated(), given.values - passed_on, residuals)
        passed_on[:] = given.values
        shares[:] = 0
        threshold = max(SPARED * int(abs(own).sum()) / edges, least)
        moved, _ = ops.settle(threshold, damping, part.degrees, own, settled, shares, given.updated)
        given.values[masters] += shares
        return moved > 0

    rounds = until_quiet(sync, step, Channel("reduce", residuals, "dst"), Channel("broadcast", given, "src"))
    left, whole = sync.total(int(abs(own).sum()), int(settled.sum()))
    return Answer({"pagerank": settled / float(whole)}, None, rounds, {"l1_change": 2 * left / whole})


PUSHING = Algorithm(
    {
        "rounds": Form(push_residuals),
        "mail": Form(lambda part, sync, walk, *limits: push_alone(part, sync, walk, *limits[:2])),
    }
)


def prepare(part: Partition, sync: Sync, options: argparse.Namespace) -> Walk:
    """Check the options, and prepare the walk for them. Collective.

    Raises
    ------
    OptionError
        On every rank.
    GraphFileError
        On every rank: a weight is negative or infinite.
    """
    pull = options.algorithm == "pull"
    weighted = not options.unweighted and sync.total(int(part.weights is None)) == (0,)
    _check(part, options, pull, weighted)
    return make_walk(part, sync, options.personalize, pull, weighted)


def _check(part: Partition, options: argparse.Namespace, pull: bool, weighted: bool) -> None:
    """Raise if options do not go together."""
    if options.start and not pull:
        raise OptionError("--from: residuals are pushed from the start of all walks; use --algorithm pull")
    if weighted and not pull:
        raise OptionError("--algorithm push-residual takes all edges to weigh the same: use --unweighted, or pull")
    if pull:
        least, what = LEAST[options.precision], f"ranks of --precision {options.precision}"
    else:
        least = (100 + 1 / options.damping) * (part.num_nodes + part.num_edges) / UNIT
        what = f"residuals on {part.num_edges:,} edges"
    check_tolerance(options, least, what, None if pull else "--algorithm pull")


def run(part: Partition, sync: Sync, walk: Walk, options: argparse.Namespace) -> Answer:
    """Run the algorithm that the options name. Collective.

    Raises
    ------
    GraphFileError
        On every rank: the ranks do not add up to 1.
    """
    limits = (options.damping, options.tolerance, options.iterations)
    if options.algorithm == "pull":
        answer = pagerank(part, sync, walk, *limits, options.precision, options.checkpoint, options.start)
    else:
        answer = PUSHING.form(part, sync).run(part, sync, walk, *limits, options.checkpoint)
    check_sums(sync, np.array(sync.total(total_of_floats(answer.labels["pagerank"]))), options.precision)
    return answer


def check_sums(sync: Sync, sums: np.ndarray, precision: str = "float64") -> None:
    """Check the sums of all ranks, the same on every rank. Collective.

    Raises
    ------
    GraphFileError
        On every rank: one is not 1.
    """
    with together(sync.comm):
        for wrong in sums[~(abs(sums - 1) <= OFF[precision])].tolist():
            raise GraphFileError(f"the ranks add up to {wrong!r}, not to 1: weights differ too much for their sums")


def verify(part: Partition, sync: Sync, answer: Answer, walk: Walk, options: argparse.Namespace) -> None:
    """Check an answer against the tolerance or, if ``--iterations`` ended it, against its last change. Collective."""
    tolerance = options.tolerance
    if answer.rounds == options.iterations:
        tolerance = max(tolerance, answer.figures["l1_change"])
    noise = NOISE[answer.labels["pagerank"].dtype.name]
    ranks, weighted = answer.labels["pagerank"], walk.neighbours is not None and walk.neighbours.weights is not None
    verify_pagerank(part, sync, ranks, walk.teleport, options.damping, tolerance + noise, weighted)


def needs_rounds(options: argparse.Namespace) -> str:
    """Why the options ask for rounds."""
    if options.algorithm == "pull":
        return "it pulls along all edges; --algorithm push-residual does not"
    return "--iterations counts them" if options.iterations else ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    add_walk_options(parser)
    parser.add_argument(
        "--algorithm", choices=("pull", "push-residual"), default="pull",
        help="pull along all edges, or push along those of nodes with large residuals (default: pull)",
    )  # fmt: skip
    parser.add_argument(
        "--precision", choices=("float32", "float64"), default="float64",
        help="type of the ranks; float32 is faster, and correct to about six digits (default: float64)",
    )  # fmt: skip
    parser.add_argument(
        "--personalize", nargs="+", type=weighted_node, metavar="NODE[:WEIGHT]",
        help="start walks only at these nodes, by name or number; or a file with one NODE [WEIGHT] per line",
    )  # fmt: skip
    add_checkpoint_options(parser)
    add_from_option(parser)


APP = App(
    name="pagerank",
    summary="PageRank of every node",
    prepare=prepare,
    run=lambda part, sync, source, walk, options: run(part, sync, walk, options),
    verify=lambda part, sync, source, answer, walk, options: verify(part, sync, answer, walk, options),
    add_options=add_options,
    needs_csc=lambda options, symmetric: options.algorithm == "pull" and not symmetric,
    needs_source=False,
    weighted=True,
    needs_rounds=needs_rounds,
    rehearsed=REHEARSED | {"personalize": None, "iterations": lambda given: given and min(given, FEW)},
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
