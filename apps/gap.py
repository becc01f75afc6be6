"""The GAP benchmark (Beamer, Asanovic, Patterson, arXiv:1508.03619): its kernels, numbers of trials and averages.

``mpirun -n 2 python -m apps.gap --kron 20``     or a graph file, or ``--urand 20``

BFS and SSSP run from 64 random sources that have out-edges, PageRank and connected components 16 times, betweenness 16
times from 4 of the sources each, triangle counting 3 times. Edges of generated graphs are undirected, with weights from
1 to 255. Reading and partitioning are not counted. What an algorithm prepares once for all its trials has a column of
its own: the benchmark counts it in every trial if no other kernel uses it.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cusp.apps import library
from cusp.apps.harness import append_rows, commit
from cusp.apps.library import partition_graph, partition_keywords
from cusp.apps.run.cli import add_rows_option, add_transport_option
from cusp.apps.run.partitioned_graph import PartitionedGraph
from cusp.apps.run.sources import draw_sources
from cusp.edge_lists.generators import generate
from cusp.errors import OptionError, together
from cusp.launch import Parser, parse_together, program, run_main
from cusp.output.whole_file import check_targets
from cusp.program import report
from cusp.program.cli import add_partition_options, add_trace, add_watching, inputs_of, integer, positive, scale
from cusp.program.traced import traced
from cusp.runtime.devices import name_of
from cusp.runtime.mpi import MPI

SOURCES = 64
ROOTS = 4  # per trial of betweenness
DEGREE = 16
WEIGHTS = "1:255"

Arguments = dict[str, Any]


class Kernel(NamedTuple):
    """An app of the library, the number of trials, and what makes the arguments of a trial's call."""

    app: str
    trials: int
    arguments: Callable[[int, list[int]], Arguments]


def some_of(trial: int, sources: list[int], each: int = 1) -> list[int]:
    """The next ``each`` of the sources, which are used again if there are fewer than trials."""
    return [sources[(each * trial + place) % len(sources)] for place in range(each)]


KERNELS = {
    "bfs": Kernel("bfs", SOURCES, lambda *now: {"source": some_of(*now)[0], "parents": True}),
    "sssp": Kernel("sssp", SOURCES, lambda *now: {"source": some_of(*now)[0]}),
    "pr": Kernel("pagerank", 16, lambda *now: {"tolerance": 1e-4, "iterations": 1000, "unweighted": True}),
    "cc": Kernel("cc", 16, lambda *now: {}),
    "bc": Kernel("betweenness", 16, lambda trial, sources: {"source": some_of(trial, sources, ROOTS)}),
    "tc": Kernel("triangles", 3, lambda *now: {}),
}


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Run the benchmark from its command line. Collective."""
    options = parse_together(comm, make_parser(), argv)
    with together(comm):
        names = chosen_kernels(options.kernels)
    check_targets(comm, {"--rows": options.rows, "--trace": options.trace}, inputs_of(options))
    with traced(comm, options.trace) as ranks:
        run_kernels(names, ranks, options)
    return 0


def run_kernels(names: list[str], comm: MPI.Intracomm, options: argparse.Namespace) -> None:
    """Partition, run and write as the options say. Collective."""
    report.progress(comm.rank, "partitioning")
    name, part = open_graph(options, comm)
    sources = draw_sources(part.part, comm, SOURCES, options.seed)
    report.progress(comm.rank, "")
    report.say(comm.rank, f"{name}: {part}")
    report.say(comm.rank, "kernel  trials     average s        best s  preparation s")
    rows: list[dict] = []
    for kernel in names:
        trials = trials_of(kernel, part, sources, options, comm)
        seconds = np.array([row["seconds"] for row in trials])
        preparing = trials[0]["preparation_seconds"]
        line = f"{kernel:6}  {seconds.size:6}  {seconds.mean():12.6f}  {seconds.min():12.6f}  {preparing:13.6f}"
        report.say(comm.rank, line + ("  verified" if options.verify else ""))
        rows += [row | {"graph": name, "policy": options.policy, "commit": commit()} for row in trials]
    if options.rows:
        append_rows(options.rows, rows, comm)


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = Parser(
        prog=program("cusp.apps.gap"), description="The GAP benchmark. Run it on several ranks with mpirun -n RANKS."
    )
    add = parser.add_argument
    add("graph", nargs="?", help="graph file, or folder of a saved partition")
    add("--kron", type=scale, metavar="SCALE", help=f"a Kronecker graph of 2**SCALE nodes, {DEGREE} edges per node")
    add("--urand", type=scale, metavar="SCALE", help="a uniform random graph of the same size")
    add("--kernels", default=",".join(KERNELS), help="kernels to run, separated by commas (default: %(default)s)")
    add("--trials", type=positive, metavar="N", help="trials per kernel, at most (default: as GAP specifies)")
    add("--verify", action="store_true", help="check the answer of the first trial of each kernel")
    add("--seed", type=integer, default=1, help="seed of generated graphs and sources (default: 1)")
    add_transport_option(parser)
    add_rows_option(parser, "trial")
    add_partition_options(parser)
    add_watching(parser)
    add_trace(parser)
    return parser


def chosen_kernels(text: str) -> list[str]:
    """Names of kernels, in the order given."""
    names = text.split(",")
    unknown = [name for name in names if name not in KERNELS]
    if unknown:
        raise OptionError(f"--kernels {unknown[0]}: the kernels are {', '.join(KERNELS)}")
    return names


def open_graph(options: argparse.Namespace, comm: MPI.Intracomm) -> tuple[str, PartitionedGraph]:
    """The name of the graph that the options name, and its partition. Collective."""
    named = [name for name in ("graph", "kron", "urand") if getattr(options, name)]
    with together(comm):
        if len(named) != 1:
            raise OptionError("name one graph: a file, --kron SCALE or --urand SCALE")
    graph: Any = options.graph
    if named != ["graph"]:
        scale = options.kron or options.urand
        parameters = {"scale": scale, "edge_factor": DEGREE} if options.kron else {
            "nodes": 2**scale, "edges": DEGREE * 2**scale}  # fmt: skip
        kind = "rmat" if options.kron else "uniform"
        builder = generate(
            kind, comm, seed=options.seed, weights=WEIGHTS, symmetrize=True, drop_loops=True, dedup=True, **parameters
        )
        graph = builder.build()
    chosen = {action.dest: getattr(options, action.dest) for action in partition_keywords().actions}
    name = options.graph or f"{named[0]}{options.kron or options.urand}"
    part = partition_graph(graph, comm=comm, **chosen)
    part.names = None  # sources are drawn, by number
    return name, part


def trials_of(
    kernel: str, part: PartitionedGraph, sources: list[int], options: argparse.Namespace, comm: MPI.Intracomm
) -> list[dict]:
    """A row for each trial of a kernel. Collective."""
    rules = KERNELS[kernel]
    run = getattr(library, rules.app)
    rows = []
    for trial in range(min(rules.trials, options.trials or rules.trials)):
        report.progress(comm.rank, f"{kernel} {trial + 1} of {rules.trials}")
        verify = options.verify and trial == 0
        arguments = rules.arguments(trial, sources)
        result = run(part, **arguments, gather=False, verify=verify)
        rows.append({
            "app": f"gap-{kernel}", "trial": trial, "ranks": comm.size, "device": name_of(part.plan.devices),
            "seconds": result.seconds, "preparation_seconds": part.preparation_seconds[rules.app],
            "rounds": result.rounds, "arguments": arguments, "verified": verify or None,
        })  # fmt: skip
    report.progress(comm.rank, "")
    return rows


if __name__ == "__main__":
    run_main(main)
