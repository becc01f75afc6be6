"""Breadth-first search: hops from a source to every node, or parents; push, pull or whichever is cheaper.

``mpirun -n 4 python -m apps.bfs graph.h5 --policy cvc --source 17 --verify --output hops.h5``

>>> from cusp import bfs, partition_graph
>>> graph = partition_graph(([0, 0, 1, 2], [1, 2, 3, 3]))
>>> bfs(graph, source=0).hops
array([0, 1, 1, 2], dtype=int32)
"""

import argparse
from typing import Any

import numpy as np

from cusp import MIN, Answer, App, Label, Partition, Sync, main, run_main
from cusp.apps.operators.interfaces import in_edges_of
from cusp.apps.operators.traversal.interfaces import ALPHA, BETA, Bfs
from cusp.apps.operators.ways import Algorithm, Form
from cusp.apps.run.former import REHEARSED, Former, add_from_option
from cusp.apps.search import HOPS, distances_from, go_on
from cusp.apps.shared.lengths import measure
from cusp.apps.shared.tree import find_parents
from cusp.apps.verify.paths import verify_hops
from cusp.runtime.devices import backend
from gluon.interfaces import Device


def bfs(
    part: Partition, sync: Sync, source: int, direction: str = "auto", parents: bool = False, prepared: Any = None,
    former: Former | None = None,
) -> Answer:  # fmt: skip
    """Hops from ``source`` to every node along out-edges. Collective.

    Level by level, the frontier gives its level + 1 to its out-neighbours (push), or every unreached node looks for an
    in-neighbour in the frontier (pull), whichever is cheaper. Where levels are many and small, several ranks do not
    wait for each other after each of them: hops are then distances of edges that are 1 long.

    Parameters
    ----------
    part : Partition
        With ``csc`` if pulls are wanted and the graph is not symmetric.
    direction : {'auto', 'push', 'pull'}
        Without in-edges, every level is pushed.
    parents : bool
        Find a parent of each node too. Where several nodes of a level reach a node, its parent is the lowest of those
        that the ranks found, one each: parents, but not hops, depend on the partition. None depends on timing.
    prepared : optional
        What :func:`prepare` returned for this partition, to make it once for many searches.
    former : Former, optional
        The hops in the graph before it grew, from which to go on: then only edges that shorten paths are followed.

    Returns
    -------
    Answer
        ``hops`` (int32) of this rank's masters, -1 where there is no path; with ``parents`` also
        ``parents`` (int64), the source being its own.
    """
    prepared = prepare(part, sync, former is not None) if prepared is None else prepared
    if former is not None:
        hops, rounds = go_on(HOPS, part, sync, source, former, "hops", np.int32, prepared["former"].delta)
        return _of_distances(part, sync, hops.values, hops.identity, source, parents, rounds)
    search = BY_HOPS if direction == "auto" and not parents else BY_LEVELS
    answer: Answer = search.run(part, sync, prepared, source, direction, parents)
    return answer


def prepare(part: Partition, sync: Sync, from_former: bool = False) -> dict[str, Any]:
    """What all searches of one partition share, by the way in which they run, or go on. Collective."""
    if from_former:
        return {"former": measure(part.without_weights(), sync)}
    prepared = BY_HOPS.prepare(part, sync)
    return prepared if BY_LEVELS.way(part, sync) in prepared else prepared | BY_LEVELS.prepare(part, sync)


def _plan(part: Partition, sync: Sync, way: str) -> Any:
    """Memory that searches share. Collective."""
    in_edges = in_edges_of(part)
    return backend(Bfs, part.device).plan_bfs(part, in_edges and in_edges[:2], sync, way)


def _in_one_call(part: Partition, sync: Sync, prepared: Any, source: int, direction: str, parents: bool) -> Answer:
    """The whole search in one call: no other rank takes part, or all do, in one kernel on each GPU. Collective."""
    ops = backend(Bfs, part.device)
    hops, parent, levels = ops.bfs_drain(part, prepared, source, direction, ALPHA, BETA, parents)
    sync.count_peers(levels)
    return Answer({"hops": hops} | ({"parents": parent} if parents else {}), -1, levels)


def _by_distances(part: Partition, sync: Sync, prepared: Any, source: int, direction: str, parents: bool) -> Answer:
    """Hops as distances. Collective."""
    distances, rounds = distances_from(part, sync, source, prepared)
    return _of_distances(part, sync, distances, prepared.far, source, parents, rounds)


def _of_distances(
    part: Partition, sync: Sync, distances: Any, far: Any, source: int, parents: bool, rounds: int
) -> Answer:
    """The answer that distances of all proxies are. Collective."""
    own = distances[: part.num_masters]
    labels = {"hops": backend(Device, part.device).signed(own, far, np.dtype(np.int32))}
    if parents:
        labels["parents"] = find_parents(part, sync, source, labels["hops"])
    return Answer(labels, -1, rounds)


def _level_by_level(part: Partition, sync: Sync, prepared: Any, source: int, direction: str, parents: bool) -> Answer:
    """Each level a round. Collective."""
    search = BreadthFirstSearch(part, sync, source, parents, prepared)
    while search.count_frontier() > 0:
        search.advance(pull=search.pulls(direction))
    return search.answer()


class BreadthFirstSearch:
    """A search that advances one level at a time.

    With parents, a value is ``level << shift | global id of the parent``: MIN keeps the lowest level and, of the
    parents found there, the lowest. Without parents, ``shift`` is 0.

    Attributes
    ----------
    level : int
        Hops of the frontier.
    nodes, edges : int
        Nodes of the frontier in the whole graph, and their out-edges.
    nodes_before : int
        Nodes of the frontier before.
    unexplored : int
        Out-edges of all nodes that were not in an earlier frontier.
    pulled : bool
        Whether the frontier was reached by a pull.
    """

    def __init__(self, part: Partition, sync: Sync, source: int, parents: bool, plan: Any) -> None:
        self.part, self.sync, self.parents, self.plan = part, sync, parents, plan
        self.ops = backend(Bfs, part.device)
        self.in_edges = in_edges_of(part)
        self.level, self.pulled, self.nodes, self.edges, self.unexplored = 0, False, 0, 0, part.num_edges
        dtype = np.int64 if parents else np.int32
        self.shift = part.num_nodes.bit_length() if parents else 0
        self.gid_mask = np.int64((1 << self.shift) - 1)
        self.label = Label(part, dtype, np.iinfo(dtype).max, MIN)
        self.label.write(source, source & int(self.gid_mask))

    def count_frontier(self) -> int:
        """Count the nodes and edges of the frontier; returns the nodes. Collective."""
        self.nodes_before, self.unexplored = self.nodes, self.unexplored - self.edges
        self.nodes, self.edges = self.sync.total(*self.ops.frontier_size(self.label.updated, self.part.degrees))
        return self.nodes

    def pulls(self, direction: str) -> bool:
        """Whether to pull the next level: as the option says, or if it costs less (Beamer et al., SC 2012, section 5).

        After a push, pull when the frontier has a large part of the unexplored edges; after a pull, push when the
        frontier shrinks and is small.
        """
        if self.in_edges is None or direction != "auto":
            return self.in_edges is not None and direction == "pull"
        if self.pulled:
            return self.nodes >= self.nodes_before or self.nodes > self.part.num_nodes // BETA
        return self.edges > self.unexplored // ALPHA

    def advance(self, pull: bool) -> None:
        """Reach the next level where mirrors know the frontier, and bring it to the masters. Collective.

        Every frontier node gives it to its unreached out-neighbours, or every unreached node looks for an in-neighbour
        in the frontier and takes it.
        """
        self.pulled, label, part = pull, self.label, self.part
        edges = self.in_edges if pull else (part.offsets, part.targets, "src", "dst")
        assert edges is not None
        offsets, ends, read, write = edges
        operator: Any = self.ops.bfs_pull if pull else self.ops.bfs_push
        self.sync.broadcast(label, read=read, implied=self.level << self.shift)
        frontier = label.swap_updated()
        self.level += 1
        operator(label, frontier, offsets, ends, self.gid_mask, np.int64(self.level << self.shift), self.plan)
        self.sync.reduce(label, write=write, implied=None if self.parents else self.level)
        self.sync.end_round(frontier=self.nodes)

    def answer(self) -> Answer:
        """Hops and parents of this rank's masters."""
        values, where = self.label.masters(), self.label.device.xp.where
        reached = values != self.label.identity
        if not self.parents:
            return Answer({"hops": where(reached, values, np.int32(-1))}, -1, self.level)
        hops = where(reached, values >> self.shift, np.int64(-1)).astype(np.int32)
        parents = where(reached, values & self.gid_mask, np.int64(-1))
        return Answer({"hops": hops, "parents": parents}, -1, self.level)


ONE_CALL = Form(_in_one_call, _plan)
DISTANCES = Form(_by_distances, lambda part, sync, way: measure(part.without_weights(), sync))
FORMS = {
    "whole": ONE_CALL, "peers": ONE_CALL, "mail": DISTANCES, "ahead": DISTANCES,
    "rounds": Form(_level_by_level, _plan),
}  # fmt: skip
BY_HOPS = Algorithm(FORMS, gpus_only=("peers",), order=True)
BY_LEVELS = Algorithm({way: form for way, form in FORMS.items() if way != "ahead"}, gpus_only=("peers",), order=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument(
        "--direction",
        choices=("auto", "push", "pull"),
        default="auto",
        help="pull scans the unvisited nodes, push the frontier (default: whichever is cheaper)",
    )
    parser.add_argument("--parents", action="store_true", help="find a parent of each node too")
    add_from_option(parser)


APP = App(
    name="bfs",
    summary="breadth-first search: hops (and parents) from a source",
    prepare=lambda part, sync, options: prepare(part, sync, options.start is not None),
    run=lambda part, sync, source, prepared, options: bfs(
        part, sync, source, options.direction, options.parents, prepared, options.start
    ),
    nodes=("parents",),
    verify=lambda part, sync, source, answer, _, options: verify_hops(part, sync, source, *answer.labels.values()),
    add_options=add_options,
    needs_csc=lambda options, symmetric: options.direction != "push" and not symmetric,
    rehearsed=REHEARSED,
    needs_rounds=lambda options: (
        "" if options.direction == "auto" else f"--direction {options.direction} is about them"
    ),
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
