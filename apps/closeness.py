"""Closeness centrality: how near each node is to those that lead to it; also harmonic closeness, and eccentricity.

``mpirun -n 4 python -m apps.closeness graph.h5 --policy cvc --sources 1024 --verify --output closeness.h5``

>>> from cusp import closeness, partition_graph
>>> graph = partition_graph(([0, 1, 1, 2], [1, 0, 2, 1]))
>>> result = closeness(graph)
>>> result.closeness, result.harmonic, result.eccentricity, result.figures["diameter"]
(array([0.66666667, 1.        , 0.66666667]), array([1.5, 2. , 1.5]), array([2., 1., 2.]), 2.0)
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cusp import Answer, App, Checkpoint, Partition, Sync, main, run_main
from cusp.apps.bfs import bfs
from cusp.apps.bfs import prepare as prepare_bfs
from cusp.apps.operators.batches.interfaces import Batches, CpuBatches, HopSums
from cusp.apps.operators.batches.search import WIDTH, Batch
from cusp.apps.operators.ways import way_of
from cusp.apps.run.cli import add_checkpoint_options
from cusp.apps.run.sources import add_source_options, choose_sources, tell_duration
from cusp.apps.shared.graphs.whole_graph import (
    WholeGraph,
    copy_for,
    in_copies,
    sum_of_copies,
    tasks_at_once,
    whole_graph,
)
from cusp.apps.shared.lengths import Lengths, measure
from cusp.apps.sssp import sssp
from cusp.apps.verify.table import verify_closeness
from cusp.kernels.arrays import mapped
from cusp.program.warm_up import FAR_NODE
from cusp.runtime import progress
from cusp.runtime.devices import backend, move, to_host, xp_of
from gluon.interfaces import Device

FEW = 8  # edges per node: with fewer, searches are long, and share little

Found = tuple[np.ndarray, int]  # the distance to the farthest node from each source, and rounds
Adding = Callable[[list[int], HopSums], Found]  # adds to the sums what searches from some sources find


@dataclass(frozen=True)
class Wanted:
    """The sources, and what searches from them need.

    Attributes
    ----------
    part : Partition
        The graph; without weights unless they count.
    sources : list of int
    scale : float
        How many nodes with out-edges a source stands for.
    lengths : Lengths, or None
        Those of edges, if weights count: of the copy, if ``copy`` is a partition.
    copy : WholeGraph, (Partition, Sync), or None
        The whole of a small graph, in which each rank searches from some of the sources by itself, on CPUs each thread.
    """

    part: Partition
    sources: list[int]
    scale: float
    lengths: Lengths | None
    copy: WholeGraph | tuple[Partition, Sync] | None


def closeness(sync: Sync, wanted: Wanted, checkpoint: Checkpoint | None = None) -> Answer:
    """Closeness of all nodes, from the distances to them. Collective.

    Where r others lead to a node, and their distances to it add up to d, closeness is (r / d) * r / (nodes - 1)
    (Wasserman and Faust, Social Network Analysis, 1994, section 5.2). From a sample of sources it is an estimate
    (Eppstein and Wang, J. Graph Algorithms Appl. 2004). Without weights, many searches run at once.

    Parameters
    ----------
    wanted : Wanted
        What :func:`prepare` returned.
    checkpoint : Checkpoint, optional
        Where to go on from, and to write to.

    Returns
    -------
    Answer
        Of this rank's masters: ``closeness``; ``harmonic``, the sum of 1 / distance; ``eccentricity``, the
        distance to the farthest node that a source leads to, -1 of nodes that are no sources; all float64; and
        ``reaching``, the number of other sources that lead to a node, int64.
        Figures: ``sources``, their number; ``diameter``, the largest eccentricity: that of the graph, if all nodes
        were sources.
    """
    part, search = wanted.part, _searches(sync, wanted)
    sums, done, rounds = _no_sums(part.num_masters, part.device), 0, 0
    farthest = sums.lengths - 1
    farthest[part.degrees == 0] = 0
    if checkpoint and checkpoint.goes_on:
        sums = HopSums(*(checkpoint.label(name, values.dtype) for name, values in sums._asdict().items()))
        farthest, rounds = checkpoint.label("farthest", np.float64), checkpoint.rounds
        done = checkpoint.fact("sources", int)
    step = WIDTH if wanted.copy is None else tasks_at_once(part, sync.comm)
    for first in range(done, len(wanted.sources), step):
        some = wanted.sources[first : first + step]
        reach, more = search(some, sums)
        rounds += more
        own, lids = part.masters_among(np.array(some, np.int64))
        farthest[move(lids, part.device)] = move(reach[own], part.device)
        progress.update(first + len(some), len(wanted.sources), "source", done)
        if checkpoint and checkpoint.is_due(sync):
            checkpoint.write(rounds, sums._asdict() | {"farthest": farthest}, sources=first + len(some))
    diameter = sync.highest(farthest.max().item() if farthest.size else 0.0)
    labels = _centralities(part, sums, wanted.scale) | {"eccentricity": farthest, "reaching": sums.reached}
    return Answer(labels, None, rounds, {"sources": len(wanted.sources), "diameter": diameter})


def _centralities(part: Partition, sums: HopSums, scale: float) -> dict[str, Any]:
    """From the sums over sources, each of which stands for so many."""
    xp, each = xp_of(part.device), scale / max(part.num_nodes - 1, 1)

    def near(reached: Any, lengths: Any) -> Any:
        return reached / xp.where(lengths > 0, lengths, np.inf) * xp.minimum(reached * each, 1)

    return {
        "closeness": mapped(near, sums.reached, sums.lengths, dtype=np.float64),
        "harmonic": mapped(lambda some: some * scale, sums.inverse),
    }


def _no_sums(size: int, device: str) -> HopSums:
    full = backend(Device, device).full
    return HopSums(*(full(size, 0, np.dtype(each)) for each in (np.int64, np.float64, np.float64)))


def _searches(sync: Sync, wanted: Wanted) -> Adding:
    """What adds up all that searches from some sources find. Collective."""
    part, lengths, copy = wanted.part, wanted.lengths, wanted.copy
    if copy is None:
        return _searches_together(part, sync, lengths)
    if isinstance(copy, WholeGraph):
        add_lengths = backend(CpuBatches, "cpu").add_lengths
        return partial(
            _add_alone, part, sync, copy.rows, lambda some, sums: (add_lengths(copy, copy.rows[some], sums), 0)
        )
    return partial(_add_alone, part, sync, np.argsort(to_host(copy[0].gids)), _searches_together(*copy, lengths))


def _searches_together(part: Partition, sync: Sync, lengths: Lengths | None) -> Adding:
    """The same by all ranks; by hops many at once, but where each is long and one kernel does it. Collective."""
    if lengths is not None:
        return partial(_add_each, part, sync, lambda source: sssp(part, sync, source, lengths))
    if way_of(("whole", "passes", "rounds"), part, sync, gpus_only=("whole",)) != "whole":
        return partial(_add_batches, Batch(part, sync))
    prepared = prepare_bfs(part, sync)
    return partial(_add_each, part, sync, lambda source: bfs(part, sync, source, prepared=prepared))


def _add_batches(batch: Batch, sources: list[int], sums: HopSums) -> Found:
    """Many searches at once. Collective."""
    ops, reach, rounds = backend(Batches, batch.part.device), np.zeros(len(sources)), 0
    for first in range(0, len(sources), WIDTH):
        some = slice(first, first + WIDTH)
        reach[some] = batch.search(sources[some], lambda hops, front: ops.add_hops(hops, front, sums))
        rounds += int(reach[some].max())
    return reach, rounds


def _add_each(part: Partition, sync: Sync, search: Callable[[int], Answer], sources: list[int], sums: HopSums) -> Found:
    """One search after the other. Collective."""
    xp, reach, rounds = xp_of(part.device), np.zeros(len(sources)), 0
    for place, source in enumerate(sources):
        answer, lid = search(source), part.lid(source)
        reached, (length,) = answer.reached, answer.labels.values()
        if 0 <= lid < part.num_masters:
            reached[lid] = False
        length = xp.where(reached, length, 0).astype(np.float64)
        found = HopSums(reached, length, xp.where(length > 0, 1 / xp.where(length > 0, length, 1), 0))
        _add(found, sums)
        reach[place] = sync.highest(length.max().item() if length.size else 0.0)
        rounds += int(answer.rounds)
    return reach, rounds


def _add(found: HopSums, sums: HopSums) -> None:
    for more, values in zip(found, sums):
        values += more


def _add_alone(
    part: Partition, sync: Sync, rows: np.ndarray, search: Adding, sources: list[int], sums: HopSums
) -> Found:  # fmt: skip
    """Each rank searches from some of the sources in its copy of the graph, where nodes have these rows. Collective."""
    comm, found = sync.comm, _no_sums(rows.size, part.device)
    own, levels = search(sources[comm.rank :: comm.size], found)
    _add(HopSums(*(sum_of_copies(part, comm, to_host(values)[rows]) for values in found)), sums)
    reach = np.empty(len(sources))
    for rank, some in enumerate(comm.allgather(own)):
        reach[rank :: comm.size] = some
    return reach, sync.total(levels)[0]


def prepare(part: Partition, sync: Sync, options: argparse.Namespace) -> Wanted:
    """Choose the sources, and where searches run. Collective.

    Raises
    ------
    OptionError
        On every rank: a source is not a node.
    GraphFileError
        On every rank: a weight that counts is negative or infinite.
    """
    sources, scale = choose_sources(part, sync, options)
    counted = part if options.weighted else part.without_weights()
    lengths = measure(part, sync) if options.weighted else None
    copy, lengths = _copy(counted, sync, len(sources), lengths)
    wanted = Wanted(counted, sources, scale, lengths, copy)
    together = WIDTH if copy or lengths is None else 1
    tell_duration(part, sync, options, sources, lambda some: closeness(sync, replace(wanted, sources=some)), together)
    return wanted


def _copy(part: Partition, sync: Sync, sources: int, lengths: Lengths | None) -> tuple[Any, Lengths | None]:
    """Where each rank searches by itself, if it does, and the lengths there. Collective.

    In long graphs CPUs do, along each path.
    """
    far, few = lengths is not None and lengths.may_overflow, part.num_edges < FEW * part.num_nodes
    if part.device == "cpu" and few and not far and in_copies(part, sync):
        return whole_graph(part, sync.comm, lengths), lengths
    copy = copy_for(part, sync, sources // WIDTH if lengths is None else sources)
    return copy, measure(*copy) if copy and lengths is not None else lengths


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    add_source_options(parser, "only distances from these nodes, by name or number; not scaled")
    parser.add_argument("--weighted", action="store_true", help="distances by weights, of 0 or more (default: by hops)")
    add_checkpoint_options(parser)


APP = App(
    name="closeness",
    summary="closeness and harmonic centrality, and eccentricity",
    prepare=prepare,
    run=lambda part, sync, source, wanted, options: closeness(sync, wanted, options.checkpoint),
    verify=lambda part, sync, source, answer, wanted, options: verify_closeness(
        wanted.part, sync, answer, wanted.sources, wanted.scale
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
