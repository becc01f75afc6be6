"""Shortest paths as lists of nodes: a search from the source, then back-tracking from each target.

``mpirun -n 4 python -m apps.path graph.h5 --source 17 --targets 3,99``

>>> from cusp import partition_graph, path
>>> graph = partition_graph(([0, 0, 1], [1, 2, 2], [2, 9, 3]))  # sources, targets, weights
>>> path(graph, source=0).path(2)
[0, 1, 2]
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.bfs import bfs
from cusp.apps.bfs import prepare as prepare_bfs
from cusp.apps.shared.lengths import Lengths, measure
from cusp.apps.shared.tree import find_parents, trace
from cusp.apps.sssp import sssp
from cusp.apps.verify.paths import verify_distances, verify_hops
from cusp.program.cli import node_list
from cusp.runtime.devices import to_host

SHOWN = 30  # nodes of a path


def shortest_tree(part: Partition, sync: Sync, source: int, lengths: Lengths | None, prepared: Any) -> Answer:
    """Distances from ``source`` and a parent of every node, by weight or, without ``lengths``, by hops. Collective.

    Returns
    -------
    Answer
        ``distance`` or ``hops``, and ``parents`` (int64): the source is its own; -1 where there is no path.
    """
    if lengths is None:
        return bfs(part, sync, source, parents=True, prepared=prepared)
    answer = sssp(part, sync, source, lengths)
    parents = find_parents(part, sync, source, answer.labels["distance"], lengths.weights)
    return Answer(answer.labels | {"parents": parents}, answer.unreached, answer.rounds)


def paths_to(part: Partition, sync: Sync, answer: Answer, targets: list[int]) -> list[tuple[np.ndarray, Any]]:
    """For each target the nodes from the source to it, (nodes,) int64, and its distance. Collective.

    Empty, and -1 or inf, where there is no path.

    Raises
    ------
    OptionError
        On every rank: a target is not a node of the graph.
    """
    for target in targets:
        part.check_node(target, "target")
    distances = to_host(answer.labels.get("distance", answer.labels.get("hops")))
    lids = part.lid_map.lids(np.array(targets, np.int64))
    local = {place: distances[lid].item() for place, lid in enumerate(lids) if 0 <= lid < part.num_masters}
    known = {place: value for others in sync.comm.allgather(local) for place, value in others.items()}
    paths = trace(part, sync.comm, answer.labels["parents"], targets)
    return [(path, known[place]) for place, path in enumerate(paths)]


def show(
    part: Partition, sync: Sync, source: int, answer: Answer, options: argparse.Namespace, name_of: Callable[[int], str]
) -> list[str]:
    """A line for each target. Collective."""
    lines = []
    unit = "distance" if "distance" in answer.labels else "hops"
    for target, (path, distance) in zip(options.targets, paths_to(part, sync, answer, options.targets)):
        nothing = f"there is no path from {name_of(source)} to {name_of(target)}"
        lines.append(shown(path, unit, distance, name_of) if path.size else nothing)
    return lines


def shown(path: np.ndarray, unit: str, distance: Any, name_of: Callable[[int], str]) -> str:
    """A path in a line."""
    nodes = [name_of(node) for node in path.tolist()]
    if len(nodes) > SHOWN:
        nodes[SHOWN // 2 : -SHOWN // 2] = [f"({len(nodes) - SHOWN:,} more)"]
    return f"{unit} {distance}: {' -> '.join(nodes)}"


def prepare(part: Partition, sync: Sync, options: argparse.Namespace) -> tuple[Lengths | None, Any]:
    """What does not depend on the source."""
    if options.hops or sync.total(int(part.weights is None))[0]:
        return None, prepare_bfs(part, sync)
    return measure(part, sync), None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument(
        "--targets", type=node_list, default=[], metavar="NODE,NODE...", help="print the path to each of these nodes"
    )
    parser.add_argument("--hops", action="store_true", help="count edges, ignoring their weights")


APP = App(
    name="path",
    summary="shortest paths from a source to targets, node by node",
    prepare=prepare,
    run=lambda part, sync, source, prepared, options: shortest_tree(part, sync, source, *prepared),
    verify=lambda part, sync, source, answer, prepared, options: (
        verify_hops if prepared[0] is None else verify_distances
    )(part, sync, source, *answer.labels.values()),
    nodes=("parents",),
    show=show,
    add_options=add_options,
    needs_csc=lambda options, symmetric: not (options.hops and symmetric),
    weighted=True,
    needs_rounds=lambda options: "",
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
