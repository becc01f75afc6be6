"""The k shortest paths between two nodes, of those that visit no node twice, by weights or hops.

``mpirun -n 4 python -m apps.paths graph.h5 --source 17 --target 99 --k 5 --output paths.csv``

>>> from cusp import partition_graph, paths
>>> graph = partition_graph(([0, 0, 1, 1, 2], [1, 2, 2, 3, 3], [1, 3, 1, 5, 1]))  # sources, targets, weights
>>> result = paths(graph, source=0, target=3, k=2)
>>> result.number, result.node, result.distance
(array([0, 0, 0, 0, 1, 1, 1]), array([0, 1, 2, 3, 0, 2, 3]), array([0, 1, 2, 3, 0, 3, 4]))
"""

import argparse
import heapq
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.path import shown
from cusp.apps.shared.detours import Detours, Graphs, graphs_of
from cusp.apps.verify.table import verify_paths
from cusp.program.cli import one_node, positive
from cusp.program.warm_up import FAR_NODE

GUESS, PATH = 0, 1  # of equal lengths, guesses come first: each may stand for a path of that length
LOOKS = 4  # with a limit, before one without


class Detour(NamedTuple):
    """A path, or a guess of one; the shortest of those that begin with the same nodes and do not go on to some.

    Attributes
    ----------
    length : number
        Of a guess, that of the path at least.
    kind : {GUESS, PATH}
    order : tuple
        Of those of the same length.
    path : (nodes,) int64
        The path; of a guess, the one that it leaves.
    place : int
        Of the last node that is the same.
    banned : frozenset
        The nodes that do not come next.
    head : int
        Of a guess, the node that comes next if the path is as short.
    looks : int
        Of a guess, how many searches have found nothing up to its length.
    """

    length: float
    kind: int
    order: tuple[int, ...]
    path: np.ndarray
    place: int = 0
    banned: frozenset[int] = frozenset()
    head: int = -1
    looks: int = 0


def paths(sync: Sync, graphs: Graphs, source: int, target: int, k: int) -> Answer:
    """The k shortest paths without circles, or all if there are fewer. Collective.

    All paths but the shortest leave a shorter one at some node (Yen, Management Science 1971), and are found once
    (Lawler, Management Science 1972). If nodes could occur twice, one search for all would tell the shortest way to
    leave a path; mostly it is the answer. Another search waits until no shorter guess is left.

    Returns
    -------
    Answer
        The table has a row for each node of each path: the ``number`` of the path, 0 for the shortest; ``node``; and
        how far that is from the source, ``distance`` (int64 or float64), or ``hops`` without weights. Of paths of the
        same length, those come first whose nodes are lower; with edges of length 0, in an order that depends on the
        graph alone. Figure ``paths``: their number.
    """
    detours, found = Detours(graphs, sync, source, target), list[np.ndarray]()
    shortest = detours.tail(source, detours.whole)
    heap = [Detour(0, PATH, (), shortest)] if shortest.size else []
    while heap and len(found) < k:
        each = heapq.heappop(heap)
        if each.kind == GUESS:
            better = look(detours, each, heap[0].length if heap else each.length)
        else:
            found.append(each.path)
            banned = {each.place: each.banned}  # besides the node of the path
            better = [
                Detour(length, GUESS, (len(found), place), each.path, place, banned.get(place, frozenset()), head)
                for length, place, head in detours.leave(each.path, each.place, each.banned, detours.whole)
            ]
        for detour in better:
            heapq.heappush(heap, detour)
    unit = "hops" if graphs.part.weights is None else "distance"
    columns = {
        "number": np.repeat(np.arange(len(found)), [path.size for path in found]),
        "node": np.concatenate([shortest[:0], *found]),
        unit: np.concatenate([np.zeros(0, detours.dtype), *map(detours.distances, found)]),
    }
    return Answer({}, None, detours.rounds, {"paths": len(found)}, table=columns)


def look(detours: Detours, guess: Detour, next_length: float) -> list[Detour]:
    """The path that a guess stands for, or the guess with a higher length; nothing if there is none. Collective."""
    kept = guess.path[: guess.place + 1]
    length, tail = guess.length, detours.tail(guess.head, detours.whole)
    if guess.looks or np.isin(tail, kept).any():
        limit = detours.limit(max(next_length, length * (1 + 8.0**guess.looks / 1024)), guess.looks < LOOKS)
        rests = detours.without(kept, limit)
        ways = detours.leave(guess.path[: guess.place + 2], guess.place, guess.banned, rests)
        if not ways or ways[0][0] > limit:
            return [guess._replace(length=limit, looks=guess.looks + 1)] if guess.looks < LOOKS else []
        length, _, head = ways[0]
        tail = detours.tail(head, rests)
    path = np.concatenate([kept, tail])
    banned = guess.banned | {int(guess.path[guess.place + 1])}
    return [Detour(length, PATH, tuple(path.tolist()), path, guess.place, banned)]


def show(
    part: Partition, sync: Sync, _: None, answer: Answer, options: argparse.Namespace, name_of: Callable[[int], str]
) -> list[str]:
    """A line for each path."""
    numbers, nodes, far = answer.table.values()
    ends = np.flatnonzero(np.diff(numbers, append=-1))
    unit = [*answer.table][-1]
    lines = [shown(path, unit, far[end], name_of) for path, end in zip(np.split(nodes, ends + 1), ends)]
    return lines or [f"there is no path from {name_of(options.source)} to {name_of(options.target)}"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    for end, text in (("source", "where paths begin"), ("target", "where they end")):
        parser.add_argument(f"--{end}", type=one_node, required=True, metavar="NODE", help=f"{text}, by name or number")
    parser.add_argument("--k", type=positive, default=10, help="how many paths (default: 10)")
    parser.add_argument("--hops", action="store_true", help="count edges, ignoring their weights")


APP = App(
    name="paths",
    summary="the k shortest paths between two nodes that visit no node twice",
    prepare=lambda part, sync, options: graphs_of(part, sync, options.hops),
    run=lambda part, sync, _, graphs, options: paths(sync, graphs, options.source, options.target, options.k),
    verify=lambda part, sync, _, answer, graphs, options: verify_paths(
        graphs.part, sync, answer, options.source, options.target, options.k
    ),
    nodes=("node",),
    show=show,
    add_options=add_options,
    needs_csc=lambda options, symmetric: not (options.hops and symmetric),
    needs_source=False,
    weighted=True,
    rehearsed={"source": FAR_NODE, "target": 5, "k": 12},  # so many that some come back to where they left
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
