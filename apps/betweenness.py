"""Betweenness centrality: how large a share of the shortest paths between other nodes each node is on.

``mpirun -n 4 python -m apps.betweenness graph.h5 --policy cvc --sources 16 --verify --output betweenness.h5``

>>> from apps.library import betweenness, partition_graph
>>> graph = partition_graph(([0, 0, 1, 2], [1, 2, 3, 3]))
>>> betweenness(graph, normalized=False).betweenness
array([0. , 0.5, 0.5, 0. ])
"""

import argparse
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from apps.bfs import prepare as prepare_bfs
from apps.harness import Answer, App, main
from apps.run.checkpoint import Checkpoint
from apps.run.cli import add_checkpoint_options, check_nodes
from apps.run.sources import draw_sources
from apps.shared.dependencies import Alone, Sweeps, sweeps_alone
from apps.verify.betweenness import verify_betweenness
from cusp.launch import run_main
from cusp.partition import Partition
from cusp.program import report
from cusp.program.cli import one_node, positive
from cusp.runtime.devices import backend, to_host
from cusp.runtime.stopwatch import Stopwatch
from gluon.interfaces import Device
from gluon.sync import Sync

MANY = 256  # sources: as a sample, enough to tell the first nodes from the others
BATCH = 1 << 28  # edges that each rank walks along by itself before the sums of all are added up: a few seconds
LONG = 30.0  # seconds that are worth a word


@dataclass(frozen=True)
class Wanted:
    """The sources, and the scale of their sum.

    Attributes
    ----------
    sources : list of int
    scale : float
        Factor of the sum of the dependencies of the sources.
    alone : function, or None
        Where each rank has a copy of a small graph, in which it adds some of the sources by itself: see
        :func:`~apps.shared.dependencies.sweeps_alone`.
    bfs : Any
        What :func:`apps.bfs.prepare` returned.
    """

    sources: list[int]
    scale: float
    alone: Alone | None
    bfs: Any


def betweenness(part: Partition, sync: Sync, wanted: Wanted, checkpoint: Checkpoint | None = None) -> Answer:
    """Betweenness of all nodes. Collective.

    Each of several parallel edges makes a path of its own, as in igraph; loops make none.

    Parameters
    ----------
    part : Partition
        With ``csc`` if the graph is not symmetric.
    wanted : Wanted
        What :func:`prepare` returned.
    checkpoint : Checkpoint, optional
        Where to go on from, and to write to.

    Returns
    -------
    Answer
        ``betweenness`` (float64) of this rank's masters; figure ``sources``, their number.

    Raises
    ------
    GraphFileError
        More shortest paths than float64 can count.
    """
    sweeps = Sweeps(part, sync)
    done = levels = 0
    if checkpoint and checkpoint.goes_on:
        sweeps.centrality[:] = checkpoint.label("centrality", np.float64)
        levels, done = checkpoint.rounds, checkpoint.fact("sources", int)
    step = 1 if wanted.alone is None else sync.comm.size * max(1, BATCH // max(part.num_edges, 1))
    for first in range(done, len(wanted.sources), step):
        some = wanted.sources[first : first + step]
        levels += sweeps.add_alone(wanted.alone, some) if wanted.alone else sweeps.add(some[0], wanted.bfs)
        if checkpoint and checkpoint.is_due(sync):
            checkpoint.write(levels, {"centrality": sweeps.centrality}, sources=first + len(some))
    return Answer({"betweenness": sweeps.centrality * wanted.scale}, None, levels, {"sources": len(wanted.sources)})


def prepare(part: Partition, sync: Sync, options: argparse.Namespace) -> Wanted:
    """Choose the sources, and how their sum is scaled. Collective.

    Raises
    ------
    OptionError
        On every rank: a source is not a node.
    """
    check_nodes(part, options.source or [], "--source")
    local = to_host(part.gids[: part.num_masters][part.degrees > 0])
    (senders,) = sync.total(local.size)
    scale = 1.0
    if options.source:
        sources = sorted(set(options.source))
    elif options.sources == "all" or options.sources >= senders:
        sources = np.sort(np.concatenate(sync.comm.allgather(local))).tolist()
    else:
        sources = draw_sources(part, sync.comm, options.sources, options.seed)
        scale = senders / len(sources)
    others = (part.num_nodes - 1) * (part.num_nodes - 2)
    normalized = not options.source if options.normalized is None else options.normalized
    if normalized:
        scale /= max(others, 1)
    elif part.symmetric:
        scale /= 2
    wanted = Wanted(sources, scale, sweeps_alone(part, sync, len(sources)), prepare_bfs(part, sync))
    if options.sources == "all" and not options.source and senders > MANY:
        _tell_duration(part, sync, wanted)
    return wanted


def _tell_duration(part: Partition, sync: Sync, wanted: Wanted) -> None:
    """Try some of many sources; where all would take long, say how long, and how to sample them. Collective."""
    watch, tried = Stopwatch(), wanted.sources[:: len(wanted.sources) // (2 * sync.comm.size)]
    with watch("try"):
        betweenness(part, sync, replace(wanted, sources=tried))
        backend(Device, part.device).wait()
    seconds = sync.highest(watch.seconds["try"] / len(tried))
    if len(wanted.sources) * seconds > LONG:
        whole, sample = (report.shown_seconds(number * seconds) for number in (len(wanted.sources), MANY))
        report.warn(
            sync.comm.rank,
            f"exact betweenness, from {len(wanted.sources):,} nodes, will take about {whole}; an estimate from {MANY} "
            f"of them, about {sample}: --sources {MANY}, or sources={MANY} in Python",
        )


def _number_or_all(text: str) -> int | str:
    return text if text == "all" else positive(text)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument(
        "--sources",
        type=_number_or_all,
        default="all",
        metavar="K",
        help="estimate it from K seeded nodes that have out-edges; or 'all', the default: exactly",
    )
    parser.add_argument(
        "--source",
        type=one_node,
        nargs="+",
        metavar="NODE",
        help="only paths from these nodes, by name or number; not scaled",
    )
    parser.add_argument(
        "--normalized",
        action=argparse.BooleanOptionalAction,
        help="as a share of all pairs of other nodes, from 0 to 1 (default: yes, but not with --source)",
    )
    add_checkpoint_options(parser)


APP = App(
    name="betweenness",
    summary="betweenness centrality of every node",
    prepare=prepare,
    run=lambda part, sync, source, wanted, options: betweenness(part, sync, wanted, options.checkpoint),
    verify=lambda part, sync, source, answer, wanted, options: verify_betweenness(
        part, sync, answer.labels["betweenness"], wanted.sources, wanted.scale
    ),
    add_options=add_options,
    needs_csc=lambda options, symmetric: not symmetric,
    needs_source=False,
    rehearsed={"source": None},
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
