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

from cusp import ADD, Answer, App, EdgeOperator, Label, Partition, Sync, everywhere, main, run_main
from cusp.apps.operators.choices.interfaces import Coloring
from cusp.apps.shared.graphs.undirected import UndirectedGraph, undirected_graph
from cusp.apps.shared.splitmix64 import distinct_lots, key_of
from cusp.apps.verify.independent import verify_coloring
from cusp.runtime.devices import backend, move, to_host, xp_of

WAIT = EdgeOperator("-1", into="src.color", where="dst.turn < src.turn")


def coloring(
    part: Partition, sync: Sync, graph: UndirectedGraph, strategy: str = "largest-first", seed: int = 1
) -> Answer:
    """Colors of all nodes of the graph without directions and loops. Collective.

    A node takes its color when all neighbours whose turn is earlier have told theirs (Jones and Plassmann, SIAM J. Sci.
    Comput. 1993; by degree: Hasenplaugh et al., SPAA 2014): this is what a loop over the nodes by turn would give them,
    so the seed decides, not the partition. A rank colors its own until all that are left wait for others; then it
    broadcasts.

    Parameters
    ----------
    sync : Sync
        Its traffic counts what is sent.
    graph : UndirectedGraph
        What :func:`prepare` made of ``part``.
    strategy : {'largest-first', 'random'}
        Nodes with more neighbours first and those with as many at random, or all at random.

    Returns
    -------
    Answer
        ``color`` (int32, from 0) of this rank's masters; the number of ``colors`` as a figure.
    """
    part, sync = graph.part, sync.on(graph.plan)
    ops, xp, rounds = backend(Coloring, part.device), xp_of(part.device), 0
    color, turn = Label(part, np.int32, -1, ADD), _turns(part, sync, strategy == "largest-first", key_of(seed))
    WAIT(part, turn=everywhere(part, sync, turn, 0), color=color)
    color.swap_updated()
    color.mark(xp.flatnonzero(color.masters() == -1))
    waiting = sync.highest(-1 - int(color.masters().min()) if part.num_masters else 0)
    with ops.room_for_colors(part, graph.prepared, color.values, waiting) as room:
        while sync.total(color.num_updated_masters()) != (0,):
            ops.color_nodes(part, room, color.swap_updated(), color.updated)
            sync.broadcast(color, read="any")
            sync.end_round()
            rounds += 1
    colors = 1 + sync.highest(int(color.masters().max()) if part.num_masters else -1)
    return Answer({"color": color.masters()}, None, rounds, {"colors": colors})


def _turns(part: Partition, sync: Sync, by_degree: bool, seed: int) -> Any:
    """(masters,) int64 from 0 to 2^62 - 1, all different: the lowest comes first. Collective."""
    lots = distinct_lots(part.gids[: part.num_masters], seed, part.num_nodes)
    if not by_degree:
        return lots
    xp, degrees = xp_of(part.device), part.degrees
    occurs = xp.zeros(1 + sync.highest(int(degrees.max()) if degrees.size else 0), np.bool_)
    occurs[degrees] = True
    distinct = np.unique(np.concatenate(sync.comm.allgather(to_host(xp.flatnonzero(occurs)))))
    bits, above = 62 - distinct.size.bit_length(), xp.zeros(occurs.size, np.int64)
    above[move(distinct, part.device)] = xp.arange(distinct.size)[::-1]
    return above[degrees] << bits | lots & ((1 << bits) - 1)


def prepare(part: Partition, sync: Sync) -> UndirectedGraph:
    """The undirected graph, made once. Collective."""
    return undirected_graph(part, sync, lambda part, sync: backend(Coloring, part.device).plan_colors(part))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument(
        "--strategy", choices=("largest-first", "random"), default="largest-first",
        help="the order in which nodes choose: those with more neighbours first, or at random (default: largest-first)",
    )  # fmt: skip


APP = App(
    name="coloring",
    summary="colors that differ between neighbours, ignoring edge direction",
    prepare=lambda part, sync, options: prepare(part, sync),
    run=lambda part, sync, source, graph, options: coloring(part, sync, graph, options.strategy, options.seed),
    verify=lambda part, sync, source, answer, graph, options: verify_coloring(
        part, sync, answer.labels["color"], **answer.figures
    ),
    add_options=add_options,
    needs_source=False,
    seeded=True,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
