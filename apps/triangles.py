"""Triangles: how many there are, in all and at each node, and how often neighbours of a node are neighbours themselves.

``mpirun -n 4 python -m apps.triangles graph.h5 --verify --output clustering.h5``

>>> from cusp import partition_graph, triangles
>>> graph = partition_graph(([0, 1, 2, 2], [1, 2, 0, 3]))
>>> found = triangles(graph, per_node=True)
>>> found.triangles, found.transitivity, found.node_triangles
(1, 0.6, array([1, 1, 1, 0]))
"""

import argparse

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.operators.triangles.interfaces import Triangles
from cusp.apps.shared.graphs.oriented import Shares, orient, pairs_among, return_to_masters, rows_of_others
from cusp.apps.shared.graphs.undirected import as_undirected
from cusp.apps.verify.triangles import verify_triangles
from cusp.kernels.arrays import mapped
from cusp.runtime.devices import backend, urgent, xp_of


def prepare(part: Partition, sync: Sync) -> Shares:
    """Orient the graph by degree and share out its rows. Collective."""
    return orient(as_undirected(part, sync.comm, weights=False), sync)


def triangles(part: Partition, sync: Sync, per_node: bool = False, shares: Shares | None = None) -> Answer:
    """Triangles of the graph without directions, loops and parallel edges. Collective.

    Every edge leads to its end of higher degree, and a triangle is found at its node u of lowest degree: there it is a
    wedge u -> v, u -> w that v -> w closes. For that a rank needs the rows of all v, once for all its u; those of
    other ranks come in rounds of bounded size (DistTC, by Hoang et al., HPEC 2019, keeps all of them).

    Parameters
    ----------
    per_node : bool
        Count them at each node too, which takes longer.
    shares : Shares, optional
        What :func:`prepare` makes of ``part``, if that has been done.

    Returns
    -------
    Answer
        figures: ``triangles``; ``transitivity``, the share of paths of two edges that are closed, 0 if there are none.
        With ``per_node`` also ``average_clustering``, and for this rank's masters ``node_triangles`` (int64)
        and ``clustering`` (float64): the share of pairs of neighbours that are neighbours, 0 where there is no pair.
    """
    comm = sync.comm
    shares = shares or prepare(part, sync)
    graph, ops, xp = shares.graph, backend(Triangles, part.device), xp_of(part.device)
    counts = xp.zeros(shares.begins.size if per_node else 0, np.int64)
    rows = (shares.begins, shares.ends, shares.targets)
    rest = (shares.in_begins, shares.in_ends, shares.sources, *rows, counts)
    counting, count, rounds = ops.count_triangles(*rows, *rest), 0, 1
    with urgent(part.device):  # rows come while those before them are counted
        for others in rows_of_others(shares, comm):
            later = ops.count_triangles(*others, *rest)
            count, counting, rounds = count + counting(), later, rounds + 1
    count += counting()
    triangles, paths = sync.total(count, shares.paths)
    figures = {"triangles": triangles, "transitivity": 3 * triangles / paths if paths else 0.0}
    if not per_node:
        return Answer({}, None, rounds, figures)
    at_node = return_to_masters(shares, counts, comm)
    clustering = at_node / xp.maximum(mapped(pairs_among, graph.degrees), 1)
    figures["average_clustering"] = sync.total(float(clustering.sum()))[0] / part.num_nodes
    return Answer({"node_triangles": at_node, "clustering": clustering}, None, rounds, figures)


def _per_node(options: argparse.Namespace) -> bool:
    return options.per_node or bool(getattr(options, "output", None))


APP = App(
    name="triangles",
    summary="triangles and clustering coefficients, ignoring edge direction",
    prepare=lambda part, sync, options: prepare(part, sync),
    run=lambda part, sync, _, shares, options: triangles(part, sync, _per_node(options), shares),
    verify=lambda part, sync, _, answer, shares, options: verify_triangles(
        shares.graph, sync, answer.figures, answer.labels or triangles(part, sync, True, shares).labels
    ),
    add_options=lambda parser: parser.add_argument(
        "--per-node",
        action="store_true",
        help="also count at each node, with clustering coefficients (implied by --output)",
    ),
    needs_source=False,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
