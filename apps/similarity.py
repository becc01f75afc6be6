"""Similarity of pairs of nodes, by the neighbours that they have in common: Jaccard, overlap and cosine.

``mpirun -n 4 python -m apps.similarity graph.h5 --policy cvc --pairs 3,17,3,4 --verify --output similarity.csv``

>>> from cusp import partition_graph, similarity
>>> graph = partition_graph(([0, 1, 2, 2], [1, 2, 0, 3]))
>>> found = similarity(graph, pairs=[0, 1, 0, 3]).edges
>>> found["source"], found["target"], found["common"], found["jaccard"]
(array([0, 0]), array([1, 3]), array([1, 1]), array([0.33333333, 0.5       ]))
"""

import argparse
from typing import NamedTuple

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.run.result import ends_of
from cusp.apps.shared.common import common_neighbours
from cusp.apps.shared.graphs.undirected import as_undirected
from cusp.apps.verify.triangles import verify_similarity
from cusp.errors import OptionError, together
from cusp.program.cli import node_list


class Wanted(NamedTuple):
    """The graph without directions, loops and parallel edges, and pairs of this rank, (2, n) int64."""

    graph: Partition
    pairs: np.ndarray


def similarity(part: Partition, sync: Sync, wanted: Wanted) -> Answer:
    """How many neighbours pairs of nodes have in common, as a share of those that they could have. Collective.

    Parameters
    ----------
    wanted : Wanted
        What :func:`prepare` made of ``part``.

    Returns
    -------
    Answer
        Of pairs, ``source`` and ``target`` (int64): their ``common`` neighbours (int64); and as float64, where a and b
        are how many neighbours each has: ``jaccard``, common / (a + b - common); ``overlap``, common / min(a, b);
        ``cosine``, common / sqrt(a b); 0 where that is 0 / 0. Figures: the number of ``pairs``, and ``mean_jaccard``.
    """
    common, (a, b) = common_neighbours(wanted.graph, sync.comm, wanted.pairs)
    shares = {"jaccard": a + b - common, "overlap": np.minimum(a, b), "cosine": np.sqrt(a) * np.sqrt(b)}
    values = {name: common / np.maximum(most, 1) for name, most in shares.items()}
    pairs, jaccard = sync.total(common.size, float(values["jaccard"].sum()))
    ends = dict(zip(("source", "target"), wanted.pairs))
    figures = {"pairs": pairs, "mean_jaccard": jaccard / max(pairs, 1)}
    return Answer({}, None, 1, figures, ends | {"common": common} | values)


def prepare(part: Partition, sync: Sync, options: argparse.Namespace) -> Wanted:
    """The undirected graph, and the pairs that options name, or all neighbours. Collective.

    Raises
    ------
    OptionError
        On every rank: a node without another.
    """
    graph = as_undirected(part, sync.comm, weights=False)
    if options.pairs is None:
        ends = np.stack([*ends_of(graph).values()])
        return Wanted(graph, ends[:, ends[0] < ends[1]])
    with together(sync.comm):
        if len(options.pairs) % 2:
            raise OptionError(f"--pairs: {len(options.pairs):,} nodes are not pairs; name an even number of them")
    return Wanted(graph, np.array(options.pairs, np.int64).reshape(-1, 2).T[:, sync.comm.rank :: sync.comm.size])


APP = App(
    name="similarity",
    summary="how many neighbours pairs of nodes have in common, ignoring edge direction",
    prepare=prepare,
    run=lambda part, sync, source, wanted, options: similarity(part, sync, wanted),
    verify=lambda part, sync, source, answer, wanted, options: verify_similarity(part, sync, answer, wanted.pairs),
    add_options=lambda parser: parser.add_argument(
        "--pairs", type=node_list, metavar="NODE,NODE,...",
        help="only these pairs: the first node and the second, the third and the fourth ... (default: all neighbours)",
    ),
    needs_source=False,
    rehearsed={"pairs": None},
)  # fmt: skip

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
