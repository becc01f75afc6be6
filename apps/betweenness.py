"""Betweenness centrality: how large a share of the shortest paths between other nodes each node is on.

``mpirun -n 4 python -m apps.betweenness graph.h5 --policy cvc --sources 16 --verify --output betweenness.h5``

>>> from apps.library import betweenness, partition_graph
>>> graph = partition_graph(([0, 0, 1, 2], [1, 2, 3, 3]))
>>> betweenness(graph, normalized=False).betweenness
array([0. , 0.5, 0.5, 0. ])
"""

import argparse
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from apps.bfs import bfs
from apps.bfs import prepare as prepare_bfs
from apps.harness import Answer, App, main
from apps.operators.sums.interfaces import Betweenness, CpuBetweenness, Rows
from apps.run.checkpoint import Checkpoint
from apps.run.cli import add_checkpoint_options, check_nodes
from apps.run.sources import draw_sources
from apps.shared.in_edges import InEdges, in_edges_of
from apps.shared.whole_graph import sum_of_copies, whole_graph
from apps.verify.betweenness import verify_betweenness
from cusp.errors import GraphFileError, together
from cusp.launch import run_main
from cusp.partition import Partition
from cusp.program import report
from cusp.program.cli import one_node, positive
from cusp.runtime.devices import backend, to_host
from cusp.runtime.stopwatch import Stopwatch
from gluon.interfaces import Device
from gluon.label import Label
from gluon.reduction import ADD, ASSIGN
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
    whole : (offsets, targets), or None
        A copy of a small graph, in which each rank adds some of the sources by itself.
    bfs : Any
        What :func:`apps.bfs.prepare` returned.
    """

    sources: list[int]
    scale: float
    whole: tuple[Any, Any] | None
    bfs: Any


class Levels(NamedTuple):
    """The proxies that a search reached, by level.

    Attributes
    ----------
    deepest : int
        The last level of all ranks.
    lids : (reached,) int32
    bounds : list of int
        Those of level l are ``lids[bounds[l] : bounds[l + 1]]``.
    out_rows, in_rows : RowGroups
        Their out-edges and in-edges, level by level.
    in_edges : InEdges
    """

    deepest: int
    lids: Any
    bounds: list[int]
    out_rows: Any
    in_rows: Any
    in_edges: InEdges

    def range(self, level: int) -> tuple[int, int]:
        """Where a level begins and ends in ``lids``."""
        return self.bounds[level], self.bounds[level + 1]


class Sweeps:
    """Dependencies, summed over the rows of one level at a time; its labels serve one source after the other.

    Path counts go from level to level along edges, shares against them (Brandes, J. Math. Sociol. 2001, section 4). No
    operator asks for the levels of neighbours: values that are not known yet are 0, and no edge leads more than one
    level further, so only edges on shortest paths count. A symmetric graph has both neighbourhoods in its
    rows.

    Attributes
    ----------
    centrality : (masters,) float64
        Sum of the dependencies of the sources so far.
    """

    def __init__(self, part: Partition, sync: Sync) -> None:
        self.part, self.sync = part, sync
        self.ops = backend(Betweenness, part.device)
        self.rows = backend(Rows, part.device)
        self.levels = Label(part, np.int32, -1, ASSIGN)
        self.paths, self.shares = Label(part, np.float64, 0, ASSIGN), Label(part, np.float64, 0, ASSIGN)
        self.sums = Label(part, np.float64, 0, ADD)
        self.centrality = self.paths.masters() * 0

    def add(self, source: int, prepared: Any) -> int:
        """Add the dependencies of a source; returns the number of levels. Collective.

        ``prepared`` is what :func:`apps.bfs.prepare` returned.
        """
        levels = self._levels(bfs(self.part, self.sync, source, prepared=prepared).labels["hops"])
        self._count_paths(source, levels)
        self._refuse_overflow(source)
        self._add_dependencies(levels)
        return levels.deepest

    def add_alone(self, whole: tuple[Any, Any], sources: list[int]) -> int:
        """Add those of several sources, each rank some by itself; returns the number of levels. Collective."""
        comm, sums = self.sync.comm, np.zeros(self.part.num_nodes)
        own = np.array(sources[comm.rank :: comm.size], np.int64)
        levels, wrong = backend(CpuBetweenness, self.part.device).sweep(*whole, own, sums)
        wrong = self.sync.lowest(self.part.num_nodes if wrong < 0 else int(own[wrong]))
        if wrong < self.part.num_nodes:
            raise _too_many_paths(wrong)
        self.centrality += sum_of_copies(self.part, comm, sums)
        return int(self.sync.total(levels)[0])

    def _levels(self, hops: Any) -> "Levels":
        """The proxies of every level, and the rows of their in-edges and out-edges. Collective."""
        part = self.part
        deepest = self.sync.highest(int(hops.max()) if hops.size else 0)
        self.levels.masters()[:] = hops
        self.levels.mark_all()
        self.sync.broadcast(self.levels, read="any")
        lids, bounds = self.ops.by_level(self.levels.values, deepest)
        in_edges = in_edges_of(part)
        assert in_edges is not None
        out_rows = self.rows.group_rows(lids, bounds, part.offsets)
        in_rows = out_rows if part.symmetric else self.rows.group_rows(lids, bounds, in_edges.offsets)
        return Levels(deepest, lids, bounds, out_rows, in_rows, in_edges)

    def _count_paths(self, source: int, levels: "Levels") -> None:
        """Shortest paths to every node: as many as to its predecessors together, level by level. Collective."""
        sync, paths, sums, in_edges = self.sync, self.paths, self.sums, levels.in_edges
        paths.values.fill(0)
        paths.write(source, 1)
        paths.swap_updated()
        for level in range(1, levels.deepest + 1):
            where = levels.range(level)
            self.rows.sum_rows(levels.in_rows, level, in_edges.sources, paths.values, sums.values)
            self.ops.mark(*where, levels.lids, sums.updated)
            sync.reduce(sums, write=in_edges.write)
            self.ops.give_paths(*where, self.part.num_masters, levels.lids, sums.values, paths.values, paths.updated)
            sync.broadcast(paths, read=in_edges.read)
            paths.swap_updated()

    def _add_dependencies(self, levels: "Levels") -> None:
        """What depends on every node, from what depends on its successors, from the deepest level up. Collective."""
        sync, shares, sums = self.sync, self.shares, self.sums
        shares.values.fill(0)
        for level in range(levels.deepest, 0, -1):
            where = levels.range(level)
            if level < levels.deepest:
                self.rows.sum_rows(levels.out_rows, level, self.part.targets, shares.values, sums.values)
                self.ops.mark(*where, levels.lids, sums.updated)
                sync.reduce(sums, write="src")
            self.ops.give_shares(*where, self.part.num_masters, levels.lids, self.paths.values, sums.values,
                                 self.centrality, shares.values, shares.updated)  # fmt: skip
            sync.broadcast(shares, read="dst")
            shares.swap_updated()

    def _refuse_overflow(self, source: int) -> None:
        """Raise if there are too many paths to be counted. Collective."""
        own = self.paths.masters()
        with together(self.sync.comm):
            if own.size and not bool(own.max() < np.inf):
                raise _too_many_paths(source)


def _too_many_paths(source: int) -> GraphFileError:
    return GraphFileError(f"there are more than 1.8e308 shortest paths from node {source:,}: too many to count")


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
    step = 1 if wanted.whole is None else sync.comm.size * max(1, BATCH // max(part.num_edges, 1))
    for first in range(done, len(wanted.sources), step):
        some = wanted.sources[first : first + step]
        levels += sweeps.add_alone(wanted.whole, some) if wanted.whole else sweeps.add(some[0], wanted.bfs)
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
    small = backend(Betweenness, part.device).sweeps(part, sync)
    wanted = Wanted(sources, scale, whole_graph(part, sync.comm) if small else None, prepare_bfs(part, sync))
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
