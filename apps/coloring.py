"""Greedy coloring: neighbours have different colors, and each node the lowest that those before it leave free.

``mpirun -n 4 python -m apps.coloring graph.h5 --policy cvc --seed 7 --verify --output colors.h5``

>>> from cusp import coloring, partition_graph
>>> graph = partition_graph(([0, 1, 2, 2], [1, 2, 0, 3]))
>>> coloring(graph, seed=5).color
array([2, 1, 0, 1], dtype=int32)
"""

import argparse
from typing import Any

import numpy as np

from cusp import ADD, Answer, App, EdgeOperator, Label, Partition, Sync, main, run_main
from cusp.apps.shared.splitmix64 import distinct_lots, key_of
from cusp.apps.verify.independent import verify_coloring
from cusp.kernels.arrays import total
from cusp.runtime.devices import move, to_host, xp_of
from gluon.reduction import ASSIGN, Reduction

COUNT, WIDTH = 32, 31  # bits of a count, and of the colors that are given away at a time
LOW, HIGH = (1 << COUNT) - 1, (1 << WIDTH) - 1 << COUNT
SEEN = Reduction("seen", f"(old | value) & {HIGH} | (old + value) & {LOW}", neutral=0, idempotent=False)
OUTSIDE = 2**63 - 1  # in place of the turn of a node that has one of the colors before, or none of these
WAYS = ("src", "dst"), ("dst", "src")  # the second only if the graph is not symmetric
AHEAD = [EdgeOperator("1", f"{to}.ahead", f"0 <= {of}.turn < {to}.turn < outside") for of, to in WAYS]
TELL = [EdgeOperator("1 - min(turn, 0)", f"{to}.seen", f"0 <= {to}.turn < outside") for _, to in WAYS]
ENDS = EdgeOperator("1", into="dst.ends")


def coloring(part: Partition, sync: Sync, strategy: str = "largest-first", seed: int = 1) -> Answer:
    """Colors of all nodes of the graph without directions and loops. Collective.

    A node takes its color when all neighbours whose turn is earlier have told theirs (Jones and Plassmann, SIAM J. Sci.
    Comput. 1993; by degree: Hasenplaugh et al., SPAA 2014): this is what a loop over the nodes by turn would give them,
    so the seed decides, not the partition. The first ``WIDTH`` colors are given away before the next, to nodes that
    found none of them free.

    Parameters
    ----------
    strategy : {'largest-first', 'random'}
        Nodes with more edges first and those with as many at random, or all at random.

    Returns
    -------
    Answer
        ``color`` (int32, from 0) of this rank's masters; the number of ``colors`` as a figure.
    """
    turns, xp = _turns(part, sync, strategy == "largest-first", key_of(seed)), xp_of(part.device)
    color = xp.full(part.num_masters, -1, np.int32)
    turn, first, rounds = Label(part, np.int64, OUTSIDE, ASSIGN), 0, 0
    while sync.total(total(color < 0)) != (0,):
        turn.masters()[:] = xp.where(color < 0, turns, OUTSIDE)
        rounds += _give_away(part, sync, turn)
        given = xp.flatnonzero(turn.masters() < 0)
        color[given] = first - COUNT + xp.log2(-turn.masters()[given]).round().astype(np.int32)
        first += WIDTH
    highest = sync.highest(int(color.max()) if color.size else -1)
    return Answer({"color": color}, None, rounds, {"colors": highest + 1})


def _give_away(part: Partition, sync: Sync, turn: Label) -> int:
    """Give nodes the lowest free of the next colors: its bit in ``HIGH``, as a negative turn. Collective.

    Those that find none free are then outside. Returns the rounds.
    """
    xp, own, rounds = xp_of(part.device), turn.masters(), 0
    ahead, seen = Label(part, np.int64, 0, ADD), Label(part, np.int64, 0, SEEN)
    ways = slice(2 - part.symmetric)
    turn.mark_all()
    sync.broadcast(turn, read="any")
    turn.swap_updated()
    for count in AHEAD[ways]:
        count(part, turn=turn, ahead=ahead, outside=OUTSIDE)
    sync.reduce(ahead, write="any")
    ready = xp.flatnonzero((own < OUTSIDE) & (ahead.masters() == 0))
    while sync.total(ready.size) != (0,):
        free = ~seen.values[ready] & HIGH
        own[ready] = xp.where(free > 0, -(free & -free), OUTSIDE)
        turn.mark(ready)
        sync.broadcast(turn, read="any")
        frontier = turn.swap_updated()
        for tell in TELL[ways]:
            tell(part, frontier=frontier, turn=turn, seen=seen, outside=OUTSIDE)
        sync.reduce(seen, write="any")
        told = seen.take_updated()
        told = told[told < part.num_masters]
        ready = told[seen.values[told] & LOW == ahead.values[told]]
        sync.end_round()
        rounds += 1
    return rounds


def _turns(part: Partition, sync: Sync, by_degree: bool, seed: int) -> Any:
    """(masters,) int64 from 0 to 2^62 - 1, all different: the lowest comes first. Collective."""
    lots = distinct_lots(part.gids[: part.num_masters], seed, part.num_nodes)
    if not by_degree:
        return lots
    xp, degrees = xp_of(part.device), part.degrees
    if not part.symmetric:
        ends = Label(part, np.int64, 0, ADD)
        ENDS(part, ends=ends)
        sync.reduce(ends, write="dst")
        degrees = degrees + ends.masters()
    distinct = np.unique(np.concatenate(sync.comm.allgather(to_host(xp.unique(degrees)))))
    bits = 62 - distinct.size.bit_length()
    above = distinct.size - 1 - xp.searchsorted(move(distinct, part.device), degrees)
    return above << bits | lots & ((1 << bits) - 1)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument(
        "--strategy", choices=("largest-first", "random"), default="largest-first",
        help="the order in which nodes choose: those with more edges first, or at random (default: largest-first)",
    )  # fmt: skip


APP = App(
    name="coloring",
    summary="colors that differ between neighbours, ignoring edge direction",
    run=lambda part, sync, source, prepared, options: coloring(part, sync, options.strategy, options.seed),
    verify=lambda part, sync, source, answer, prepared, options: verify_coloring(
        part, sync, answer.labels["color"], **answer.figures
    ),
    add_options=add_options,
    needs_csc=lambda options, symmetric: not symmetric,
    needs_source=False,
    seeded=True,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
