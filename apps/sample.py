"""Samples of neighbours, hop by hop, for learning on graphs: batches of nodes, with some of the edges around them.

``mpirun -n 4 python -m apps.sample graph.h5 --policy cvc --fan-out 15,10 --batch-size 512 --output samples.h5``

>>> from cusp import partition_graph, sample
>>> graph = partition_graph(([0, 0, 0, 1, 2], [1, 2, 3, 4, 5]))
>>> found = sample(graph, source=[0], fan_out=[2, 1], seed=7)
>>> found.node, found.row, found.col, found.num_nodes
(array([0, 2, 3, 5]), array([1, 2, 3]), array([0, 0, 1]), array([[1, 2, 1]]))
"""

import argparse

import numpy as np

from cusp import Answer, App, Partition, Sync, main, run_main
from cusp.apps.run.sources import add_source_options, choose_sources
from cusp.apps.shared.graphs.whole_rows import TIME, UNIFORM, WEIGHT
from cusp.apps.shared.learning.sampler import Sample, Sampler
from cusp.apps.verify.samples import verify_samples
from cusp.errors import OptionError, shortened
from cusp.kernels.arrays import joined
from cusp.program.cli import positive
from cusp.program.warm_up import FAR_NODE

AT_ONCE = 16  # batches of a rank that are drawn together
Prepared = tuple[Sampler, np.ndarray]  # with the seeds of all batches


def sample(part: Partition, sync: Sync, prepared: Prepared, size: int, until: float | None) -> Answer:
    """Draw all batches, of which each rank gets an equal share. Collective.

    Returns
    -------
    Answer
        As arrays, those of a :class:`Sample`, of all batches one after the other. Places count from the first node of
        a batch; ``num_nodes`` (batches, hops + 1) and ``num_edges`` (batches, hops) say where each one ends.
    """
    sampler, seeds = prepared
    count, ranks = -(-seeds.size // size), sync.comm.size
    first, last = (count * rank // ranks for rank in (part.rank, part.rank + 1))
    samples: list[Sample] = []
    for at in range(0, -(-count // ranks), AT_ONCE):
        some = range(first + at, min(first + at + AT_ONCE, last))
        batches = {number: seeds[number * size : (number + 1) * size] for number in some}
        samples += sampler.sample(batches, np.inf if until is None else until)
        sync.end_round()
    none = sampler.nothing
    names = [name for name in ("node", "row", "col", "weight", "edge") if getattr(none, name) is not None]
    arrays = {name: joined([getattr(one, name) for one in (none, *samples)]) for name in names}
    for name in "num_nodes", "num_edges":
        arrays[name] = np.array([getattr(one, name) for one in (none, *samples)], np.int64)[1:]
    nodes, edges = sync.total(arrays["node"].size, arrays["row"].size)
    figures = {"batches": count, "sampled_nodes": nodes, "traversed_edges": edges}
    return Answer({}, None, len(sampler.fan_out), figures, arrays=arrays)


def prepare(part: Partition, sync: Sync, options: argparse.Namespace) -> Prepared:
    """The rows of all nodes at their masters, and the seeds. Collective.

    Raises
    ------
    InputError
        On every rank: no such node; weights that are not there, or not what they are for.
    """
    if options.weighted and options.until is not None:
        raise OptionError("--weighted, --until: weights are shares or times, not both; leave out one of them")
    by = TIME if options.until is not None else WEIGHT if options.weighted else UNIFORM
    how = {"by": by, "replace": options.replace, "incoming": options.incoming}
    how |= {"numbered": options.numbered, "seed": options.seed}
    sampler = Sampler(part, sync.comm, options.fan_out, **how)
    return sampler, np.array(choose_sources(part, sync, options)[0], np.int64)


def fan_outs(text: str) -> list[int]:
    """Numbers from ``15,10,all``; -1 for all."""
    try:
        return [-1 if word.strip() in ("all", "-1") else positive(word) for word in text.split(",")]
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise argparse.ArgumentTypeError(f"{shortened(text)!r} is not a list such as 15,10,all") from error


def time(text: str) -> float:
    """A number, exact if it is whole."""
    return float(text) if not text.strip().lstrip("+-").isdecimal() else int(text)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    texts = "sample around these nodes, by name or number", "sample around K random nodes with out-edges"
    add_source_options(parser, *texts, "all, the default")
    parser.add_argument(
        "--fan-out",
        type=fan_outs,
        default=[15, 10],
        metavar="K,K...",
        help="edges of a node that a hop draws, or all (default: 15,10)",
    )
    parser.add_argument(
        "--batch-size", type=positive, default=1024, metavar="N", help="seeds of a batch (default: 1024)"
    )
    parser.add_argument(
        "--weighted", action="store_true", help="edges are as likely as they weigh (default: all alike)"
    )
    parser.add_argument("--until", type=time, metavar="TIME", help="weights are times: draw only edges up to this one")
    parser.add_argument("--replace", action="store_true", help="an edge may be drawn several times")
    parser.add_argument("--incoming", action="store_true", help="draw in-edges instead of out-edges")
    parser.add_argument("--numbered", action="store_true", help="tell the number of each edge")


APP = App(
    name="sample",
    listed=True,
    summary="samples of neighbours, hop by hop, for learning on graphs",
    prepare=prepare,
    run=lambda part, sync, source, prepared, options: sample(part, sync, prepared, options.batch_size, options.until),
    verify=lambda part, sync, source, answer, prepared, options: verify_samples(
        part, sync, answer, prepared[1], options
    ),
    add_options=add_options,
    needs_csc=lambda options, symmetric: options.incoming,
    needs_source=False,
    weighted=lambda options: options.weighted or options.until is not None,
    rehearsed={"source": [FAR_NODE]},
    seeded=True,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
