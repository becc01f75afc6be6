"""Betweenness centrality: how large a share of the shortest paths between other nodes each node is on.

``mpirun -n 4 python -m apps.betweenness graph.h5 --policy cvc --sources 16 --verify --output betweenness.h5``

>>> from cusp import betweenness, partition_graph
>>> graph = partition_graph(([0, 0, 1, 2], [1, 2, 3, 3]))
>>> betweenness(graph, normalized=False).betweenness
array([0. , 0.5, 0.5, 0. ])
"""

import argparse
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cusp import Answer, App, Checkpoint, Partition, Sync, main, run_main
from cusp.apps.bfs import prepare as prepare_bfs
from cusp.apps.run.cli import add_checkpoint_options
from cusp.apps.run.sources import add_source_options, choose_sources, tell_duration
from cusp.apps.shared.dependencies import AddAlone, make_sweeps, sweeps_alone
from cusp.apps.shared.graphs.whole_graph import tasks_at_once
from cusp.apps.shared.lengths import Lengths, measure
from cusp.apps.verify.betweenness import verify_betweenness
from cusp.errors import GraphFileError, OptionError, together
from cusp.kernels.arrays import total
from cusp.program import report
from cusp.program.warm_up import FAR_NODE
from cusp.runtime import progress
from cusp.runtime.threads import num_threads


@dataclass(frozen=True)
class Wanted:
    """The sources, and the scale of their sum.

    Attributes
    ----------
    part : Partition
        The graph; without weights unless they count.
    sources : list of int
    scale : float
        Factor of the sum of the dependencies of the sources.
    alone : function, or None
        See :func:`~cusp.apps.shared.dependencies.sweeps_alone`.
    search : Any
        What :func:`cusp.apps.bfs.prepare` returned; Lengths for paths by weights, and for edges.
    edge_scale : float, or None
        The same for edges, if they are wanted.
    """

    part: Partition
    sources: list[int]
    scale: float
    alone: AddAlone | None
    search: Any
    edge_scale: float | None = None


def betweenness(sync: Sync, wanted: Wanted, checkpoint: Checkpoint | None = None) -> Answer:
    """Betweenness of all nodes. Collective.

    Each of several parallel edges makes a path of its own, as in igraph; loops make none. In a symmetric graph, the
    values of both directions of an edge add up to its betweenness.

    Parameters
    ----------
    wanted : Wanted
        What :func:`prepare` returned.
    checkpoint : Checkpoint, optional
        Where to go on from, and to write to.

    Returns
    -------
    Answer
        ``betweenness`` (float64) of this rank's masters, and of its edges if they are wanted; figure ``sources``, their
        number.

    Raises
    ------
    GraphFileError
        More shortest paths than float64 can count.
    """
    part, edges = wanted.part, wanted.edge_scale is not None
    if edges and checkpoint:
        raise OptionError("--checkpoint: keeps what nodes have, not edges; leave out --checkpoint or --edges")
    sweeps = make_sweeps(part, sync, wanted.search, edges)
    done = levels = 0
    if checkpoint and checkpoint.goes_on:
        sweeps.centrality[:] = checkpoint.label("centrality", np.float64)
        levels, done = checkpoint.rounds, checkpoint.fact("sources", int)
    step = 1 if wanted.alone is None else tasks_at_once(part, sync.comm)
    for first in range(done, len(wanted.sources), step):
        some = wanted.sources[first : first + step]
        search, alone = wanted.search, wanted.alone
        levels += alone(sweeps, some, search) if alone else sweeps.add(some[0], search)
        progress.update(first + len(some), len(wanted.sources), "source", done)
        if checkpoint and checkpoint.is_due(sync):
            checkpoint.write(levels, {"centrality": sweeps.centrality}, sources=first + len(some))
    figures = {"sources": len(wanted.sources)}
    answer = Answer({"betweenness": sweeps.centrality * wanted.scale}, None, levels, figures)
    return replace(answer, edges={"betweenness": sweeps.edges * wanted.edge_scale}) if edges else answer


def prepare(part: Partition, sync: Sync, options: argparse.Namespace) -> Wanted:
    """Choose the sources, and how their sum is scaled. Collective.

    Parameters
    ----------
    part : Partition
        With ``csc`` if the graph is not symmetric.

    Raises
    ------
    OptionError
        On every rank: a source is not a node.
    GraphFileError
        On every rank: a weight that counts is not above 0, or infinite.
    """
    sources, scale = choose_sources(part, sync, options)
    if part.weights is not None and not options.weighted:
        report.hint(
            sync.comm.rank, ["the weights do not count in this betweenness; weighted=True takes paths by weights"]
        )
    others = part.num_nodes - 1
    normalized = not options.source if options.normalized is None else options.normalized
    shares = (others * (others - 1), others * part.num_nodes) if normalized else (2, 2) if part.symmetric else (1, 1)
    scale, edge_scale = (scale / max(share, 1) for share in shares)
    counted = part if options.weighted else part.without_weights()
    search = _lengths(counted, sync) if options.weighted or options.edges else prepare_bfs(counted, sync)
    by_weights = search if isinstance(search, Lengths) and options.weighted else None
    alone = sweeps_alone(counted, sync, len(sources), by_weights, options.edges)
    wanted = Wanted(counted, sources, scale, alone, search, edge_scale if options.edges else None)
    at_once = num_threads() if alone else 1
    tell_duration(part, sync, options, sources, lambda some: betweenness(sync, replace(wanted, sources=some)), at_once)
    return wanted


def _lengths(part: Partition, sync: Sync) -> Lengths:
    """The lengths of the edges, which are above 0. Collective."""
    lengths = measure(part, sync)
    (zeros,) = sync.total(total(lengths.weights == 0))
    with together(sync.comm):
        if zeros:
            raise GraphFileError(
                f"the weights of {zeros:,} edges are 0; betweenness with weights needs weights above 0, since edges of "
                "length 0 may make endlessly many shortest paths"
            )
    return lengths


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    add_source_options(parser, "only paths from these nodes, by name or number; not scaled")
    parser.add_argument(
        "--normalized", action=argparse.BooleanOptionalAction,
        help="as a share of all pairs of other nodes, from 0 to 1 (default: yes, but not with --source)",
    )  # fmt: skip
    parser.add_argument(
        "--weighted", action="store_true", help="shortest paths by weights, which are above 0 (default: by hops)"
    )
    parser.add_argument("--edges", action="store_true", help="also the betweenness of every edge")
    add_checkpoint_options(parser)


APP = App(
    name="betweenness",
    summary="betweenness centrality of every node",
    prepare=prepare,
    run=lambda part, sync, source, wanted, options: betweenness(sync, wanted, options.checkpoint),
    verify=lambda part, sync, source, answer, wanted, options: verify_betweenness(
        wanted.part, sync, answer, wanted.sources, wanted.scale, wanted.edge_scale
    ),
    add_options=add_options,
    needs_csc=lambda options, symmetric: not symmetric,
    needs_source=False,
    weighted=True,
    rehearsed={"source": [FAR_NODE]},
    seeded=True,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
