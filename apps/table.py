"""Tables of distances from each of some nodes to each of others: travel times, costs, hops.

``mpirun -n 4 python -m apps.table graph.h5 --from shops.txt --to 17 99 3 --output table.csv``

Many of them take long: ``--landmarks 16`` finds bounds instead, by few searches.

>>> from cusp import partition_graph, table
>>> graph = partition_graph(([0, 0, 1], [1, 2, 2], [2, 9, 3]))  # sources, targets, weights
>>> result = table(graph, origins=[0, 2], destinations=[1, 2, 0])
>>> result.distance
array([[ 2,  5,  0],
       [-1,  0, -1]])
>>> result.to_pandas().iloc[1].to_dict()
{'origin': 0, 'destination': 2, 'distance': 5}
>>> bounds = table(graph, origins=[0], destinations=[1, 2], landmarks=1)
>>> bounds.lower.tolist(), bounds.upper.tolist()
([[2, 0]], [[2, 5]])
"""

import argparse
from typing import Any, NamedTuple

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.operators.batches.search import WIDTH, Batch
from cusp.apps.shared.graphs.reversal import reversed_graph
from cusp.apps.shared.graphs.whole_graph import copy_for
from cusp.apps.shared.landmarks import bounds, farthest, with_most_edges
from cusp.apps.shared.lengths import Lengths, measure
from cusp.apps.sssp import sssp
from cusp.apps.verify.table import verify_table
from cusp.errors import OptionError
from cusp.program.cli import one_node, positive
from cusp.program.warm_up import FAR_NODE
from cusp.runtime import progress
from cusp.runtime.devices import move, to_host
from gluon.label import Label
from gluon.plan import SyncPlan


class Wanted(NamedTuple):
    """Where to search.

    Attributes
    ----------
    part : Partition
        The graph; without weights, unless they count.
    searched : Partition
        The same, or its reverse; or a copy of all of that.
    plan : SyncPlan
        Of ``searched``, if ranks search together.
    alone : Sync, or None
        Where each rank has a copy, in which it searches from some of the nodes by itself.
    lengths : Lengths, or None
        Those of the edges of ``searched``, if weights count.
    backward : bool
        Along in-edges: ``searched`` is reversed.
    back : Wanted, or None
        With landmarks, where to search along in-edges, unless that finds the same.
    """

    part: Partition
    searched: Partition
    plan: SyncPlan
    alone: Sync | None
    lengths: Lengths | None
    backward: bool
    back: "Wanted | None" = None


def table(sync: Sync, wanted: Wanted, origins: list[int], destinations: list[int]) -> Answer:
    """Distances from each origin to each destination, by weights, or else by hops. Collective.

    A search starts at every origin or, where destinations are fewer, at each of these, and goes along in-edges.

    Returns
    -------
    Answer
        The table has ``origin``, ``destination`` and, (origins, destinations), ``distance``, int64 with -1 or float64
        with inf where there is no path, or ``hops``, int32 with -1. Figure ``searches``: their number.
    """
    matrix, rounds = distances_between(sync, wanted, origins, destinations)
    searches = len(set(destinations if wanted.backward else origins))
    found = pairs_of(origins, destinations) | {"hops" if wanted.lengths is None else "distance": matrix}
    return Answer({}, None, rounds, {"searches": searches}, table=found)


def estimate(sync: Sync, wanted: Wanted, options: argparse.Namespace) -> Answer:
    """Bounds of these distances, from those to landmarks and from them. Collective.

    Returns
    -------
    Answer
        The table has ``lower`` and ``upper``, int64 or float64: -1 or inf in both where there is no path, in ``upper``
        alone where none is known. Figures: ``searches``; ``exact``, how many pairs have equal bounds.
    """
    (origins, destinations), k, part = ends_of(options), options.landmarks, wanted.part
    nodes, places = np.unique([*origins, *destinations], return_inverse=True)
    if (options.strategy or ("degree" if wanted.lengths is None else "farthest")) == "degree":
        landmarks = with_most_edges(part, sync, k, options.seed)
        away, rounds = distances_between(sync, wanted, landmarks, nodes.tolist())
    else:
        lengths = wanted.lengths or measure(part, sync)
        landmarks, away, rounds = farthest(part, sync, lengths, k, options.seed, nodes)
    back, more = away.T, 0
    if wanted.back:
        back, more = distances_between(sync, wanted.back, nodes.tolist(), landmarks)
    ends = places[: len(origins)], places[len(origins) :]
    lower, upper = bounds(away, back.T, *ends, shortest=int(wanted.lengths is None))
    figures = {"searches": 2 * k if wanted.back else k, "exact": int((lower == upper).sum())}
    found = pairs_of(origins, destinations) | {"lower": lower, "upper": upper}
    return Answer({}, None, rounds + more, figures, table=found)


def pairs_of(origins: list[int], destinations: list[int]) -> dict[str, np.ndarray]:
    """Columns (origins, 1) and (1, destinations)."""
    return dict(zip(("origin", "destination"), np.ix_(np.array(origins), np.array(destinations))))


def distances_between(
    sync: Sync, wanted: Wanted, origins: list[int], destinations: list[int]
) -> tuple[np.ndarray, int]:
    """(origins, destinations) numbers, -1 or inf where there is no path; and rounds. Collective."""
    comm, lengths = sync.comm, wanted.lengths
    first, last = (destinations, origins) if wanted.backward else (origins, destinations)
    sources, places = np.unique(first, return_inverse=True)
    own = slice(comm.rank, None, comm.size) if wanted.alone else slice(None)
    here, lids = wanted.searched.masters_among(np.array(last, np.int64))
    given = wanted.searched, wanted.alone or sync.on(wanted.plan), sources[own].tolist(), lids
    found, rounds = search_by_hops(*given) if lengths is None else search_by_lengths(*given, lengths)
    matrix = np.empty((sources.size, len(last)), found.dtype)
    for rows, columns, values in comm.allgather((np.arange(sources.size)[own], here, found)):
        matrix[np.ix_(rows, columns)] = values
    return matrix[places].T if wanted.backward else matrix[places], sync.highest(rounds)


def search_by_hops(part: Partition, sync: Sync, sources: list[int], lids: np.ndarray) -> tuple[np.ndarray, int]:
    """(sources, lids) int32: hops to some masters, -1 without a path; and rounds. Collective."""
    batch, found, rounds = Batch(part, sync), np.full((len(sources), lids.size), -1, np.int32), 0
    wanted = move(lids, part.device)
    for first in range(0, len(sources), WIDTH):
        some = found[first : first + WIDTH]

        def visit(hops: int, front: Label, some: np.ndarray = some) -> None:
            bits = to_host(front.values[wanted])
            if bits.any():
                bits = np.unpackbits(bits.astype("<i8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
                some[bits[:, : len(some)].T == 1] = hops

        rounds += int(batch.search(sources[first : first + WIDTH], visit).max())
        progress.update(first + len(some), len(sources), "search")
    return found, rounds


def search_by_lengths(
    part: Partition, sync: Sync, sources: list[int], lids: np.ndarray, lengths: Lengths
) -> tuple[np.ndarray, int]:
    """The same by weights: int64, or float64 with inf. Collective."""
    found = np.empty((len(sources), lids.size), np.float64 if lengths.dtype.kind == "f" else np.int64)
    wanted, rounds = move(lids, part.device), 0
    for place, source in enumerate(sources):
        answer = sssp(part, sync, source, lengths)
        found[place] = to_host(answer.labels["distance"][wanted])
        rounds += int(answer.rounds)
        progress.update(place + 1, len(sources), "search")
    return found, rounds


def prepare(part: Partition, sync: Sync, options: argparse.Namespace) -> Wanted:
    """Choose where to search. Collective.

    Raises
    ------
    OptionError
        On every rank: an origin or a destination is not a node; there are fewer nodes than landmarks; none are asked
        for, but how to choose them.
    GraphFileError
        On every rank: a weight that counts is negative or infinite.
    """
    origins, destinations = ends_of(options)
    for node in (*origins, *destinations):
        part.check_node(node, "--from, --to")
    hops, k = bool(options.hops or sync.total(int(part.weights is None))[0]), options.landmarks
    part = part.without_weights() if hops else part
    if k is None:
        if options.strategy:
            raise OptionError("--strategy: chooses landmarks; give --landmarks, too")
        backward = len(set(destinations)) < len(set(origins))
        return where_to_search(part, sync, hops, len(set(destinations if backward else origins)), backward)
    if k > part.num_nodes:
        raise OptionError(f"--landmarks {k:,}: the graph has {part.num_nodes:,} nodes")
    away = where_to_search(part, sync, hops, 0, False)
    return away if hops and part.symmetric else away._replace(back=where_to_search(part, sync, hops, k, True))


def where_to_search(part: Partition, sync: Sync, hops: bool, searches: int, backward: bool) -> Wanted:
    """For so many searches, along out-edges or in-edges. Collective."""
    searched, plan = reversed_graph(part, sync) if backward else (part, sync.plan)
    copy = copy_for(searched, sync, searches // WIDTH if hops else searches)
    searched, alone = copy or (searched, None)
    lengths = None if hops else measure(searched, alone or sync.on(plan))
    return Wanted(part, searched, plan, alone, lengths, backward)


def ends_of(options: argparse.Namespace) -> tuple[list[int], list[int]]:
    """Origins and destinations."""
    return options.origins, options.destinations or options.origins


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    nodes: dict[str, Any] = {"type": one_node, "nargs": "+", "metavar": "NODE"}
    text = "where paths begin: nodes by name or number, or a file with one a line"
    parser.add_argument("--from", dest="origins", required=True, **nodes, help=text)
    parser.add_argument("--to", dest="destinations", **nodes, help="likewise where they end (default: all origins)")
    parser.add_argument("--hops", action="store_true", help="count edges, ignoring their weights")
    text = "instead of distances, lower and upper bounds of them, from those to K nodes and from these"
    parser.add_argument("--landmarks", type=positive, metavar="K", help=text)
    text = "which: those with most edges, or each far from those before (default: by hops degree, else farthest)"
    parser.add_argument("--strategy", choices=("degree", "farthest"), help=text)


APP = App(
    name="table",
    summary="distances from each of some nodes to each of others",
    prepare=prepare,
    run=lambda part, sync, source, wanted, options: (
        table(sync, wanted, *ends_of(options)) if options.landmarks is None else estimate(sync, wanted, options)
    ),
    verify=lambda part, sync, source, answer, wanted, options: verify_table(wanted.part, sync, answer),
    nodes=("origin", "destination"),
    add_options=add_options,
    needs_csc=lambda options, symmetric: not (options.hops and symmetric),
    needs_source=False,
    weighted=True,
    seeded=True,
    rehearsed={"origins": [FAR_NODE], "destinations": None, "landmarks": lambda given: given and 1},
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
