"""The graph that a command names, whatever its format, and its policy; ``--policy auto``: the fastest, as predicted."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cusp.convert.conversion import read_slice as read_foreign
from cusp.convert.conversion import request_of
from cusp.convert.memory_input import header_of
from cusp.errors import OptionError, check_same, forgiven, together
from cusp.estimates.cost import GPU_CORES, Cluster, predict
from cusp.estimates.estimate import estimate
from cusp.estimates.quality import Quality
from cusp.formats import is_graph_file
from cusp.input.edge_slice import EdgeSlice, read_slice
from cusp.input.graph_file import GraphHeader, read_header
from cusp.policies.compile_rules import CompiledPolicy, compile_policy
from cusp.policies.policy import AUTO, Policy, load_policy
from cusp.program import report
from cusp.program.cli import policy_parameters, refuse_foreign_options
from cusp.program.shares import given_shares, measure
from cusp.program.warm_up import warm_up
from cusp.runtime.devices import Placement
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import Stopwatch

CANDIDATES = ("oec", "iec", "cvc", "hvc", "dbh")  # whose rules need one look at each edge; first what is usual
SAMPLED = 1 << 16  # nodes whose mirrors are counted
BETTER = 0.98  # of what an earlier one takes, at most: less is not worth edges that travel


def open_graph(comm: MPI.Intracomm, options: argparse.Namespace) -> tuple[GraphHeader, EdgeSlice | None]:
    """What is known of a graph file; or, of a file of another format, this rank's slice of it too. Collective.

    Raises
    ------
    GraphFileError, OptionError
        On every rank.
    """
    with together(comm):
        header = read_header(options.graph) if is_graph_file(options.graph) else None
        if header is not None:
            refuse_foreign_options(options)
    check_same(comm, "graphs", header and replace(header, path=""))
    if header is not None:
        return header, None
    graph = read_foreign(comm, request_of(options, input=options.graph, seed=1))
    report.say(comm.rank, *graph.notes)
    return header_of(options.graph, graph.edges), graph.edges


def named_policy(options: argparse.Namespace, parts: int) -> Policy:
    """The policy that the options name; for ``auto`` the first candidate, until :func:`chosen_policy` has chosen.

    Raises
    ------
    PolicyError, OptionError
        It is not known, or its grid does not fit so many parts; there is a limit on the memory with which it would be
        chosen.
    """
    if options.policy == AUTO and options.memory_limit:
        raise OptionError(f"--policy {AUTO}: looks at all edges in memory; with --memory-limit, name a policy")
    name = CANDIDATES[0] if options.policy == AUTO else options.policy
    policy = load_policy(name, **policy_parameters(options))
    policy.grid_for(parts)
    return policy


def chosen_policy(
    policy: Policy, options: argparse.Namespace, header: GraphHeader, edges: EdgeSlice | None, placement: Placement,
    parts: int, comm: MPI.Intracomm,
) -> tuple[Policy, str | None]:  # fmt: skip
    """The same policy or, for ``auto``, the best of the candidates, and a line that says why. Collective.

    The rules of each are asked about every edge of the graph file, or of ``edges``, and the mirrors of a sample of the
    nodes are counted.
    """
    if options.policy != AUTO:
        return policy, None
    if parts == 1:
        return policy, f"policy {AUTO}: {policy.name}; one part is the same with any"
    hosts = hosts_of(placement, comm)
    with together(comm):
        candidates = [load_policy(name, **policy_parameters(options)) for name in CANDIDATES]
        if options.shares != AUTO:  # else they are measured later
            candidates = [given_shares(each, options.shares, parts) for each in candidates]
        compiled = [compile_policy(each) for each in candidates]
    load_estimates(comm, header, options.split, {parts: compiled})
    watch = Stopwatch()
    with watch("choose"):
        if edges is None:
            edges = read_slice(header.path, comm, options.split, weights=False)
        else:
            edges = replace(edges, weights=None)
        qualities = [sampled_quality(edges, each, parts, options.split, comm) for each in compiled]
    found = [predict(quality, options.purpose, hosts) for quality in qualities]
    best = best_of([each.seconds for each in found])
    others = sorted((each.seconds, name) for name, each in zip(CANDIDATES, found) if each is not found[best])
    listed = ", ".join(f"{name} {1e3 * seconds:.3g}" for seconds, name in others)
    line = (
        f"policy {AUTO}: {CANDIDATES[best]}, with which all labels{f' of {options.purpose}' * bool(options.purpose)} "
        f"are predicted to change once in {found[best]}; {listed}; chosen in {watch.seconds['choose']:.2f} s"
    )
    return replace(candidates[best], shares=policy.shares), line


def sampled_quality(
    edges: EdgeSlice, policy: Policy | CompiledPolicy, parts: int, split: str, comm: MPI.Intracomm
) -> Quality:
    """The quality by which policies are compared: the mirrors of some nodes count for all. Collective."""
    return estimate(edges, policy, parts, split, comm, max(1, edges.num_nodes // SAMPLED)).quality


def best_of(predicted: Sequence[float]) -> int:
    """The place of the least time, or of one before it that is nearly as short."""
    return next(place for place, each in enumerate(predicted) if each * BETTER <= min(predicted))


def load_estimates(
    comm: MPI.Intracomm, header: GraphHeader, split: str, compiled: Mapping[int, Sequence[CompiledPolicy]],
    in_degrees: bool = False,
) -> None:  # fmt: skip
    """Load all code that estimates of such a graph call, by number of parts. Collective."""

    def rehearse(few: MPI.Intracomm, path: str) -> None:
        tiny = read_slice(path, few, split, weights=False, in_degrees=in_degrees)
        for parts, policies in compiled.items():
            for rules in policies:
                with forgiven(few):  # an error of the tiny graph; that of the real one is reported
                    estimate(tiny, rules, parts, split, few)

    warm_up(comm, header, rehearse)


def hosts_of(placement: Placement, comm: MPI.Intracomm) -> Cluster:
    """The hosts of this job; the rate of their links is measured. Collective."""
    host = comm.Split_type(MPI.COMM_TYPE_SHARED)
    number, ranks = comm.allreduce(int(host.rank == 0)), comm.allreduce(host.size, MPI.MAX)
    cores = len(os.sched_getaffinity(0)) if placement.device == "cpu" else GPU_CORES * host.size
    host.Free()
    cores = comm.allreduce(cores, MPI.MIN)
    link = measure("cpu", 1.0, comm).bandwidth * ranks if number > 1 else float("inf")
    return Cluster(number, cores, comm.allreduce(link, MPI.MIN), "gpu" in placement.devices)
