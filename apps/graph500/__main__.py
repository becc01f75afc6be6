"""The Graph500 benchmark (specification 2.0): construction, breadth-first search and shortest paths, validated.

``mpirun -n 4 python -m apps.graph500 --scale 20 --policy cvc``

Edges are drawn by the Kronecker generator with the parameters of the specification (probabilities to within 2**-16),
and their ends are scrambled by a bijection; loops and parallel edges stay in the list. Kernel 1 turns the list in
memory into a partition and everything that searches share. Weights are uniform in [0, 1) in steps of 2**-24, and kernel
1 keeps them as integers in that unit: sums are exact. Every tree is validated against the list by
:mod:`cusp.apps.graph500.validate`.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cusp.apps.bfs import prepare as prepare_bfs
from cusp.apps.graph500.interfaces import EdgeList
from cusp.apps.graph500.output import Outcome, Trial, official_output, rows_of
from cusp.apps.graph500.validate import EdgeTuples, Validator
from cusp.apps.harness import append_rows
from cusp.apps.path import shortest_tree
from cusp.apps.run.cli import add_rows_option, add_transport_option
from cusp.apps.run.sources import draw_sources
from cusp.apps.shared.lengths import Lengths, measure
from cusp.edge_lists import random_kernels
from cusp.edge_lists.generators import BATCH, MAX_SCALE, rmat
from cusp.errors import OptionError, together
from cusp.input.graph_file import GraphHeader, index_dtype
from cusp.launch import Parser, parse_together, program, run_main
from cusp.output.whole_file import check_targets
from cusp.partition import Partition
from cusp.partitioner import partition_slice
from cusp.policies import Policy, load_policy
from cusp.program import cli, report
from cusp.program.shares import with_shares
from cusp.program.traced import traced
from cusp.program.warm_up import warm_up
from cusp.runtime import timeline
from cusp.runtime.devices import backend, choose_device, is_mixed, move
from cusp.runtime.mpi import MPI
from cusp.runtime.threads import ordered_map
from cusp.runtime.timeline import Stopwatch
from gluon.interfaces import Device
from gluon.plan import SyncPlan, make_plan
from gluon.sync import Sync
from gluon.transports import open_transport

UNIT = 2.0**-24  # of weights
WEIGHT_KEY = 0x5743  # so that weights and ends of edges come from different random numbers
REHEARSAL = 8  # scale of the run that loads code


@dataclass(frozen=True)
class Graph:
    """What kernel 1 makes; searches do not change it."""

    part: Partition
    plan: SyncPlan
    searches: Any
    lengths: Lengths | None


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Run the benchmark from its command line. Collective."""
    options = parse_together(comm, make_parser(), argv)
    check_targets(comm, {"--rows": options.rows, "--trace": options.trace}, cli.inputs_of(options))
    with together(comm):
        if options.memory_limit:
            raise OptionError("--memory-limit: needs a graph file; the graph of this benchmark is made in memory")
        if not 1 <= options.scale <= MAX_SCALE:
            raise OptionError(f"--scale {options.scale}: not between 1 and {MAX_SCALE}")
        policy = load_policy(options.policy, **cli.policy_parameters(options))
        policy.grid_for(comm.size)
    with traced(comm, options.trace) as ranks:
        run_benchmark(policy, ranks, options)
    return 0


def run_benchmark(policy: Policy, comm: MPI.Intracomm, options: argparse.Namespace) -> None:
    """Rehearse, run and write as the options say. Collective."""
    placement = choose_device(options.device, comm, options.threads)
    open_transport(options.transport, comm, placement.device)
    header, edges = header_for(options), 2 * options.edgefactor << options.scale
    policy, shares = with_shares(policy, options.shares, replace(header, num_edges=edges), placement, comm)
    report.progress(comm.rank, "loading compiled code (compiled once, then kept)")
    with timeline.phase("start-up"):
        rehearse(options, policy, placement.device, comm)
    outcome = benchmark(options, policy, placement.device, comm, lambda text: report.progress(comm.rank, text))
    report.progress(comm.rank, "")
    if shares:
        report.say(comm.rank, shares)
    report.say(comm.rank, official_output(options, comm.size, outcome))
    if options.rows:
        append_rows(options.rows, rows_of(options, placement.name, comm.size, outcome), comm)


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = Parser(
        prog=program("cusp.apps.graph500"), description="Graph500. Run it on several ranks with mpirun -n RANKS."
    )
    add = parser.add_argument
    add("--scale", type=cli.scale, default=16, help="the graph has 2**SCALE nodes (default: 16)")
    add("--edgefactor", type=cli.positive, default=16, help="edges per node (default: 16)")
    add("--keys", type=cli.positive, default=64, help="searches of each kind (default: 64, as specified)")
    add("--skip-sssp", action="store_true", help="skip kernel 3, shortest paths")
    add("--seed", type=cli.integer, default=1, help="seed of edges, weights and search keys (default: 1)")
    add_transport_option(parser)
    add_rows_option(parser, "search")
    cli.add_partition_options(parser)
    cli.add_watching(parser)
    cli.add_trace(parser)
    return parser


def rehearse(options: argparse.Namespace, policy: Policy, device: str, comm: MPI.Intracomm) -> None:
    """Call all that the benchmark calls, on a small graph of the same types. Collective."""
    small = argparse.Namespace(
        **vars(options) | {"scale": min(REHEARSAL, options.scale), "keys": 1, "transport": "mpi"}
    )
    alone = replace(policy, grid=None, shares=None)
    warm_up(comm, header_for(options), lambda few, path: benchmark(small, alone, device, few))


def header_for(options: argparse.Namespace) -> GraphHeader:
    """What is known of the graph before it is generated; its edges are not."""
    nodes = 2**options.scale
    return GraphHeader("kron", nodes, 0, True, index_dtype(nodes), np.dtype(np.uint32), False)


def benchmark(
    options: argparse.Namespace, policy: Policy, device: str, comm: MPI.Intracomm,
    show: Callable[[str], None] = lambda text: None,
) -> Outcome:  # fmt: skip
    """Generate, construct, and run the searches of both kinds, each validated. Collective.

    Raises
    ------
    VerificationError
        On every rank: a tree is wrong.
    """
    weighted = not options.skip_sssp
    show("generating edges")
    generation, tuples = timed("generate", comm, device, lambda: generate(options, weighted, device, comm))
    show("kernel 1: construction")
    construction, graph = timed("construct", comm, device, lambda: construct(tuples, policy, options, comm))
    validator = Validator(tuples, graph.part, comm)
    keys = draw_sources(graph.part, comm, options.keys, options.seed)
    runs: dict[str, list[Trial]] = {"bfs": [], "sssp": []} if weighted else {"bfs": []}
    for name, trials in runs.items():
        by_weight = name == "sssp"
        search(graph, comm, keys[0], by_weight)  # memory and connections are ready for the clock
        for number, source in enumerate(keys):
            show(f"{name} {number + 1} of {len(keys)}")
            trials.append(run_trial(graph, validator, source, by_weight, comm))
    return Outcome(generation, construction, runs)


def run_trial(graph: Graph, validator: Validator, source: int, weighted: bool, comm: MPI.Intracomm) -> Trial:
    """One search and its validation. Collective."""
    device = graph.part.device
    seconds, (parents, depths) = timed("run", comm, device, lambda: search(graph, comm, source, weighted))
    checking, edges = timed("verify", comm, device, lambda: validator.check(source, parents, depths, weighted))
    return Trial(source, seconds, edges, checking)


def generate(options: argparse.Namespace, weighted: bool, device: str, comm: MPI.Intracomm) -> EdgeTuples:
    """This rank's share of the edge list, which is the same on any number of ranks, in the memory of its device."""
    stream = rmat(options.seed, options.scale, options.edgefactor)
    first, last = (stream.size * rank // comm.size for rank in (comm.rank, comm.rank + 1))
    index = index_dtype(stream.num_nodes)
    sources, targets = np.empty(last - first, index), np.empty(last - first, index)
    weights = np.empty(last - first, np.float32) if weighted else None
    key = random_kernels.key_of(options.seed ^ WEIGHT_KEY << 32)

    def draw(begin: int) -> None:
        end = min(begin + BATCH, last)
        part = slice(begin - first, end - first)
        sources[part], targets[part] = stream.edges(begin, end)
        if weights is not None:
            numbers = np.empty(end - begin)
            random_kernels.uniform_units(key, begin, numbers)
            weights[part] = np.floor(numbers / UNIT) * UNIT

    for _ in ordered_map(draw, range(first, last, BATCH)):
        pass
    ends = move(sources, device), move(targets, device)
    return EdgeTuples(stream.num_nodes, stream.size, *ends, move(weights, device), device)


def construct(tuples: EdgeTuples, policy: Policy, options: argparse.Namespace, comm: MPI.Intracomm) -> Graph:
    """Kernel 1: from the edge list to the partition, the sync plan and what searches share. Collective."""
    lengths = None if tuples.weights is None else (tuples.weights / np.float32(UNIT)).astype(np.uint32)
    device = "cpu" if is_mixed(comm.allgather(tuples.device)) else tuples.device
    sources, targets, lengths = (move(array, device) for array in (tuples.sources, tuples.targets, lengths))
    edges = [backend(EdgeList, device).undirected_slice(sources, targets, lengths, tuples.num_nodes, comm)]
    del sources, targets, lengths
    part = partition_slice(edges.pop(), policy, comm, options.order, device=tuples.device, split=options.split)
    plan = make_plan(part, comm, options.transport)
    sync = Sync(plan, comm)
    return Graph(part, plan, prepare_bfs(part, sync), None if part.weights is None else measure(part, sync))


def search(graph: Graph, comm: MPI.Intracomm, source: int, weighted: bool) -> tuple[Any, Any]:
    """Kernel 2, or kernel 3 by weights: parents, and hops or distances, of this rank's masters. Collective."""
    lengths = graph.lengths if weighted else None
    labels = shortest_tree(graph.part, Sync(graph.plan, comm), source, lengths, graph.searches).labels
    if not weighted:
        return labels["parents"], labels["hops"]
    steps = labels["distance"]
    distances = steps * UNIT
    distances[steps < 0] = np.inf
    return labels["parents"], distances


def timed(phase: str, comm: MPI.Intracomm, device: str, call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the slowest rank for a phase, and what the call returned. Collective."""
    watch, ready = Stopwatch(), backend(Device, device).wait
    ready()
    comm.Barrier()
    with watch(phase):
        result = call()
        ready()
    return comm.allreduce(watch.seconds[phase], MPI.MAX), result


if __name__ == "__main__":
    run_main(main)
