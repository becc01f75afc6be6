"""Random walks: from each node, along edges at random, or as node2vec does.

``mpirun -n 4 python -m apps.walks graph.h5 --policy cvc --length 40 --walks 10 --seed 7 --output walks.h5``

>>> from cusp import partition_graph, walks
>>> graph = partition_graph(([0, 1, 1, 2], [1, 0, 2, 3]))
>>> walks(graph, source=[0], length=4, walks=2).walks
array([[0, 1, 0, 1, 0],
       [0, 1, 0, 1, 0]])
"""

import argparse
from typing import Any

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.operators.samples.interfaces import ROUND, WALKER, Samples, Walks
from cusp.apps.run.sources import add_source_options, choose_sources
from cusp.apps.shared.graphs.whole_rows import UNIFORM, WEIGHT, WholeRows, whole_rows
from cusp.apps.shared.splitmix64 import key_of
from cusp.apps.verify.samples import verify_walks
from cusp.errors import OptionError, together
from cusp.kernels.arrays import by_rank, total
from cusp.kernels.interfaces import Build
from cusp.program.cli import positive
from cusp.program.warm_up import FAR_NODE
from cusp.runtime.devices import backend, move
from cusp.runtime.exchange import pieces
from cusp.runtime.mpi import MPI
from cusp.runtime.storage import host_bytes

MOST = 100.0  # of p and q, and of their inverses: a walker draws until a step is taken
Prepared = tuple[WholeRows, np.ndarray]  # with the nodes where walks start


def walks(sync: Sync, prepared: Prepared, length: int, p: float = 1.0, q: float = 1.0, seed: int = 1) -> Answer:
    """Walk from some nodes. Collective.

    A walker is where the master of its node is, and leaves when it comes to that of another rank (Yang et al., SOSP
    2019). Of two nodes in a row, node2vec takes a step back 1 / p times as often as one to an out-neighbour of the
    first, and one to any other node 1 / q times (Grover and Leskovec, KDD 2016, section 3.2.2): a step that was drawn
    is taken or not at the rank of the second node or, if it matters whether there is an edge, at that of the first.

    Parameters
    ----------
    prepared
        What :func:`prepare` returned. Each rank gets an equal share of the walks.

    Returns
    -------
    Answer
        As an array: ``walks`` (walks, length + 1) int64, the nodes of each; -1 behind a node without out-edges.
    """
    whole, starts = prepared
    build, ops, comm = backend(Build, whole.device), backend(Samples, whole.device), sync.comm
    xp, bounds = build.xp, np.array([starts.size * rank // comm.size for rank in range(comm.size + 1)])
    first, last = bounds[comm.rank : comm.rank + 2].tolist()
    how = Walks(length, key_of(seed), 1 / p, 1 / q, whole.bits, comm.rank)
    own = xp.full((last - first, length + 1), -1, np.int64)
    own[:, 0] = move(starts[first:last], whole.device)
    walkers = xp.full((last - first, WALKER), -1, np.int64)
    walkers[:, 0] = xp.arange(first, last)
    walkers[:, 1] = walkers[:, 5] = 0
    walkers[:, 3] = whole.addresses(own[:, 0].copy(), comm)
    rounds = 0
    while sync.total(len(walkers))[0]:
        order, ends = by_rank(xp.where(walkers[:, 4] < 0, walkers[:, 3], walkers[:, 2]) >> whole.bits, comm.size)
        sent = pieces(walkers[order].ravel(), ends * WALKER)
        walkers = xp.concatenate(build.all_to_all(comm, sent)).reshape(-1, WALKER)
        away = (walkers[:, 0] < first) | (walkers[:, 0] >= last)
        walkers = xp.concatenate([walkers[away], walkers[~away]])
        log, steps = xp.full((total(away), ROUND), -1, np.int64), walkers[:, 1].copy()
        ops.walk(whole.rows, whole.lid_map, walkers, how, own, first, log)
        _send_home(whole, comm, walkers, steps, log, bounds, own)
        walkers = walkers[walkers[:, 1] < length]
        sync.end_round()
        rounds += 1
    (steps,) = sync.total(total(own[:, 1:].ravel() >= 0))
    return Answer({}, None, rounds, {"num_walks": starts.size, "traversed_edges": steps}, arrays={"walks": own})


def _send_home(
    whole: WholeRows, comm: MPI.Intracomm, walkers: Any, steps: Any, log: Any, bounds: np.ndarray, own: Any
) -> None:
    """Write what others have logged of this rank's walks, from so many ``steps`` on, to their places. Collective."""
    build, width = backend(Build, whole.device), own.shape[1]
    noted = build.xp.flatnonzero(log.ravel() >= 0)
    number, nodes = walkers[noted // ROUND, 0], log.ravel()[noted]
    places = number * width + steps[noted // ROUND] + noted % ROUND + 1
    homes = build.xp.searchsorted(move(bounds[1:], whole.device), number, side="right")
    order, ends = by_rank(homes, comm.size)
    places, nodes = (
        build.xp.concatenate(build.all_to_all(comm, pieces(some[order], ends))) for some in (places, nodes)
    )
    own.ravel()[places - int(bounds[comm.rank]) * width] = nodes


def prepare(part: Partition, sync: Sync, options: argparse.Namespace) -> Prepared:
    """The rows of all nodes at their masters, and where walks start. Collective.

    Raises
    ------
    InputError
        On every rank: no such node; weights that are not there, or are no shares; p or q that are too far from 1.
    """
    for name in "p", "q":
        if not 1 / MOST <= getattr(options, name) <= MOST:
            raise OptionError(f"--{name} {getattr(options, name):g}: expected a number from {1 / MOST:g} to {MOST:g}")
    starts = np.array(choose_sources(part, sync, options)[0], np.int64)
    size = 8 * starts.size * options.walks * (options.length + 1) / sync.comm.size
    with together(sync.comm):
        if size > host_bytes():
            much = f"the walks of a rank take {size / 1e9:,.0f} GB, its host has {host_bytes() / 1e9:,.0f}"
            raise OptionError(f"--length {options.length}, --walks {options.walks}: {much}")
    starts = starts.repeat(options.walks)
    return whole_rows(part, sync.comm, WEIGHT if options.weighted else UNIFORM), starts


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    texts = "start at these nodes, by name or number", "start at K random nodes with out-edges", "all, the default"
    add_source_options(parser, *texts)
    parser.add_argument("--length", type=positive, default=40, metavar="STEPS", help="steps of a walk (default: 40)")
    parser.add_argument("--walks", type=positive, default=1, metavar="N", help="walks from each node (default: 1)")
    parser.add_argument(
        "--weighted", action="store_true", help="edges are as likely as they weigh (default: all alike)"
    )
    likely = "of node2vec: 1/%s as likely are steps "
    parser.add_argument("--p", type=float, default=1.0, help=likely % "p" + "back to the node before (default: 1)")
    parser.add_argument("--q", type=float, default=1.0, help=likely % "q" + "away from the node before (default: 1)")


APP = App(
    name="walks",
    summary="random walks, also those of node2vec",
    prepare=prepare,
    run=lambda part, sync, source, prepared, options: walks(
        sync, prepared, options.length, options.p, options.q, options.seed
    ),
    verify=lambda part, sync, source, answer, prepared, options: verify_walks(part, sync, answer, prepared[1], options),
    add_options=add_options,
    needs_source=False,
    weighted=True,
    rehearsed={"source": [FAR_NODE], "length": lambda given: min(given, 40), "walks": 1},
    seeded=True,
    listed=True,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
