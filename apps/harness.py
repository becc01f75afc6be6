"""Runs any app: partition, warm-up, sources, timed trials, verification, rows. It knows no algorithm."""

import argparse
import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mpi4py import MPI

from apps.run.cli import check_nodes, make_parser
from apps.run.inputs import open_input
from apps.run.output import write_labels
from cusp.edge_lists.csr_builder import CsrSlice
from cusp.errors import OptionError, together
from cusp.estimates.quality import Quality, measure_quality
from cusp.input.graph_file import read_header
from cusp.launch import parse_together
from cusp.output.whole_file import append_lines, check_targets
from cusp.partition import Partition
from cusp.partitioner import partition_graph
from cusp.policies import Policy
from cusp.policies.compile_rules import Rules
from cusp.program import report
from cusp.program.cli import inputs_of, wanted_device
from cusp.program.warm_up import FAR_NODE, tiny_policy, warm_up
from cusp.runtime.devices import Placement, backend, choose_device, to_host
from cusp.runtime.stopwatch import Stopwatch
from cusp.runtime.storage import peak_mb
from gluon.interfaces import Device
from gluon.plan import SyncPlan, make_plan
from gluon.sync import Sync
from gluon.transports import open_transport

PHASES = ("read", "assign_masters", "assign_edges", "allocate", "construct", "plan")


@dataclass(frozen=True)
class Answer:
    """What an algorithm found, for the masters of this rank.

    Attributes
    ----------
    labels : dict of (masters,) arrays
        What ``--output`` writes.
    reached : (masters,) bool, or None for all
        Nodes whose out-edges were traversed, for the rate of traversed edges.
    rounds : int
    figures : dict of numbers
        What holds for the whole graph, the same on every rank: how many triangles, the modularity ...
    """

    labels: dict[str, Any]
    reached: Any
    rounds: Any
    figures: dict[str, Any] = field(default_factory=dict)

    def on_host(self) -> "Answer":
        """The same in the memory of the host."""
        labels = {name: to_host(values) for name, values in self.labels.items()}
        figures = {name: to_host(value) for name, value in self.figures.items()}
        figures = {name: value.item() if isinstance(value, np.generic) else value for name, value in figures.items()}
        return Answer(labels, to_host(self.reached), int(self.rounds), figures)


@dataclass(frozen=True)
class App:
    """An algorithm as the harness sees it.

    Attributes
    ----------
    name, summary : str
    run : function (part, sync, source, prepared, options) -> Answer
    verify : function (part, sync, source, answer, prepared, options)
        Raises VerificationError.
    show : function (part, sync, source, answer, options) -> list of str
        Lines to print below the trials of a source, the same on every rank. Collective.
    generate : function (comm, options) -> (name, CsrSlice), or None
        Makes the graph instead of the harness. Collective.
    needs_source : bool
        It starts from one node; else ``source`` is None, and there are no options that choose sources.
    prepare : function (part, sync, options) -> anything
        Work that is done once for all sources; its seconds count as partitioning.
    add_options : function (parser)
    needs_csc : function (options, symmetric) -> bool
    weighted : bool
        Edge weights are read.
    rehearsed : dict of options
        Values that take the place of those that may not fit the tiny graph of the warm-up, such as nodes by number.
    """

    name: str
    summary: str
    run: Callable[[Partition, Sync, Any, Any, argparse.Namespace], Answer]
    verify: Callable[[Partition, Sync, Any, Answer, Any, argparse.Namespace], None]
    prepare: Callable[[Partition, Sync, argparse.Namespace], Any] = lambda part, sync, options: None
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    needs_csc: Callable[[argparse.Namespace, bool], bool] = lambda options, symmetric: False
    weighted: bool = False
    needs_source: bool = True
    rehearsed: dict[str, Any] = field(default_factory=dict)
    show: Callable[[Partition, Sync, Any, Answer, argparse.Namespace], list[str]] = lambda *arguments: []
    generate: Callable[[MPI.Intracomm, argparse.Namespace], tuple[str, CsrSlice]] | None = None


@dataclass
class Job:
    """A partitioned graph, ready for trials."""

    graph: str
    policy: Policy
    placement: Placement
    part: Partition
    plan: SyncPlan
    prepared: Any
    verify: Callable[[int | None, Answer], None]
    quality: Quality
    partition_seconds: float
    phases: dict[str, float]
    startup_seconds: float
    rows: list[dict] = field(default_factory=list)


def main(app: App, comm: MPI.Intracomm, argv: list[str]) -> int:
    """Run an app from its command line. Collective; returns the exit code."""
    parser = make_parser(app.name, app.summary, app.needs_source)
    app.add_options(parser)
    options = parse_together(comm, parser, argv)
    check_targets(comm, {"--output": options.output, "--rows": options.rows}, inputs_of(options))
    job = prepare_job(app, comm, options)
    sources = [*choose_sources(job.part, comm, options)] if app.needs_source else [None]
    for source in sources:
        for trial in range(options.trials):
            answer, row = run_trial(app, comm, job, options, source, trial)
            if options.verify and trial == 0:
                report.progress(comm.rank, "verifying")
                job.verify(source, answer)
                report.progress(comm.rank, "")
                row["verified"] = True
            job.rows.append(row)
            report.say(comm.rank, trial_line(row, answer.figures))
        for line in app.show(job.part, Sync(job.plan, comm), source, answer, options):
            report.say(comm.rank, line)
    if options.output:
        write_labels(options.output, job.part, answer.labels, comm)
        report.say(comm.rank, f"wrote {', '.join(answer.labels)} to {options.output}")
    if options.rows:
        append_rows(options.rows, job.rows, comm)
    return 0


def prepare_job(app: App, comm: MPI.Intracomm, options: argparse.Namespace) -> Job:
    """Load code, partition the graph and show the table. Collective."""
    began = time.perf_counter()
    report.progress(comm.rank, "opening")
    placement = choose_device(wanted_device(options), comm)
    source = open_input(comm, options, app.weighted, placement.device, app.generate)
    open_transport(options.transport, comm, placement.device)  # connects the GPUs before a clock runs
    report.progress(comm.rank, "loading compiled code (compiled once, then kept)")
    warm_up(comm, source.header, lambda few, path: rehearse(app, few, source.policy, options, path, placement.device))
    startup = comm.allreduce(time.perf_counter() - began, MPI.MAX)
    report.progress(comm.rank, "partitioning")
    watch = Stopwatch(lambda phase: report.progress(comm.rank, f"partitioning: {phase}"))
    comm.Barrier()
    began = time.perf_counter()
    part = source.build(watch, app.needs_csc(options, source.header.symmetric))
    with watch("plan"):
        plan = make_plan(part, comm, options.transport)
        prepared = app.prepare(part, Sync(plan, comm), options)
    seconds = comm.allreduce(time.perf_counter() - began, MPI.MAX)
    phases = {name: comm.allreduce(watch.seconds.get(name, 0.0), MPI.MAX) for name in PHASES}
    quality = measure_quality(part, comm)
    report.progress(comm.rank, "")
    report.say(comm.rank, report.describe_graph(source.name, source.header))
    report.say(comm.rank, report.partition_table(quality, source.policy.name, seconds, phases))
    report.say(comm.rank, f"start-up: {startup:.2f} s to load compiled code")
    report.say(comm.rank, report.describe_placement(placement, Rules(source.policy, placement.device).where))
    if plan.exchange.transport:
        report.say(comm.rank, f"transport: {plan.exchange.transport.name}")
    report.warn_of_idle_ranks(part, comm.size, comm.rank)
    verify = make_verifier(app, part, plan, prepared, options, comm)
    return Job(source.name, source.policy, placement, part, plan, prepared, verify, quality, seconds, phases, startup)


def make_verifier(
    app: App, part: Partition, plan: SyncPlan, prepared: Any, options: argparse.Namespace, comm: MPI.Intracomm
) -> Callable[[int | None, Answer], None]:
    """What checks an answer: on the CPU, also those of GPUs, whose graph is copied there when the first is checked."""
    ready: list[tuple[Partition, SyncPlan, Any]] = [(part, plan, prepared)] if part.device == "cpu" else []

    def verify(source: int | None, answer: Answer) -> None:
        if not ready:
            host = part.on("cpu")
            host_plan = make_plan(host, comm)
            ready.append((host, host_plan, app.prepare(host, Sync(host_plan, comm), options)))
        host, host_plan, host_prepared = ready[0]
        app.verify(host, Sync(host_plan, comm), source, answer, host_prepared, options)

    return verify


def rehearse(
    app: App, comm: MPI.Intracomm, policy: Policy, options: argparse.Namespace, path: str, device: str
) -> None:
    """Call all that a run calls, on a tiny graph. Collective."""
    options = argparse.Namespace(**(vars(options) | app.rehearsed))
    symmetric = read_header(path).symmetric
    csc = app.needs_csc(options, symmetric)
    part = partition_graph(path, tiny_policy(policy, path), comm, weights=app.weighted, csc=csc, device=device)
    plan = make_plan(part, comm, "mpi")
    prepared = app.prepare(part, Sync(plan, comm), options)
    source = FAR_NODE if app.needs_source else None
    answer = app.run(part, Sync(plan, comm), source, prepared, options)
    if options.verify:
        make_verifier(app, part, plan, prepared, options, comm)(source, answer.on_host())


def choose_sources(part: Partition, comm: MPI.Intracomm, options: argparse.Namespace) -> list[int]:
    """The source asked for, or seeded ones with out-edges: the same for any policy and number of ranks. Collective."""
    if options.source is not None:
        check_nodes(part, [options.source], "--source")
        return [options.source]
    wanted = options.sources or 1
    candidates = to_host(part.gids[: part.num_masters][part.degrees > 0])
    lots = scramble(candidates, options.seed)
    best = np.argsort(lots, kind="stable")[:wanted]
    mine = list(zip(lots[best].tolist(), candidates[best].tolist()))
    drawn = sorted(pair for pairs in comm.allgather(mine) for pair in pairs)
    if not drawn:
        raise OptionError("no node has an out-edge, so none can be drawn as a source; name one with --source")
    if len(drawn) < wanted:
        report.warn(comm.rank, f"--sources {wanted}: only {len(drawn)} nodes have out-edges")
    return [gid for _, gid in drawn[:wanted]]


def scramble(gids: np.ndarray, seed: int) -> np.ndarray:
    """A random-looking uint64 for each node."""
    mixed = gids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def run_trial(
    app: App, comm: MPI.Intracomm, job: Job, options: argparse.Namespace, source: int | None, trial: int
) -> tuple[Answer, dict]:
    """One timed run, on the clock of the slowest rank. Collective."""
    sync = Sync(job.plan, comm)
    comm.Barrier()
    began = time.perf_counter()
    answer = app.run(job.part, sync, source, job.prepared, options)
    wait(job.part)
    seconds = comm.allreduce(time.perf_counter() - began, MPI.MAX)
    messages = sync.total(sum(exchange.messages for exchange in sync.traffic))[0]
    reduced, broadcast = sync.total(*(sync.bytes_sent(kind) for kind in ("reduce", "broadcast")))
    own = slice(None) if answer.reached is None else answer.reached[: job.part.num_masters]
    degrees = job.part.degrees[own]
    reached, traversed = sync.total(degrees.size, int(degrees.sum()))
    answer = answer.on_host()
    row = {
        "app": app.name, "graph": job.graph, "nodes": job.part.num_nodes, "edges": job.part.num_edges,
        "policy": job.policy.name, "ranks": comm.size, "device": job.placement.device,
        "transport": getattr(job.plan.exchange.transport, "name", "mpi"), "source": source, "trial": trial,
        "seconds": seconds, "partition_seconds": job.partition_seconds, "phases": job.phases,
        "startup_seconds": job.startup_seconds, "rounds": answer.rounds, "messages": messages,
        "mb_sent": (reduced + broadcast) / 1e6, "mb_reduced": reduced / 1e6, "mb_broadcast": broadcast / 1e6,
        "reached": reached, "traversed_edges": traversed, "replication": job.quality.replication,
        "edge_balance": job.quality.edge_balance, "peak_mb": comm.allreduce(peak_mb(), MPI.MAX),
        "verified": None, "commit": commit(),
    }  # fmt: skip
    return answer, row | answer.figures


def wait(part: Partition) -> None:
    """Return when the device of a partition has done all that was asked of it."""
    backend(Device, part.device).wait()


def trial_line(row: dict, figures: dict[str, Any]) -> str:
    """One trial in a line."""
    source = row["source"]
    started = [] if source is None else [f"{row['reached']:,} nodes reached"]
    values = (
        f"{name.replace('_', ' ')} {value:{',' if isinstance(value, int) else '.6g'}}"
        for name, value in figures.items()
    )
    parts = [
        f"{row['app']}{'' if source is None else f' from {source}'}: {row['seconds'] * 1e3:.2f} ms", *values,
        f"{row['rounds']} rounds", f"{row['messages']} messages", f"{row['mb_sent']:.3f} MB sent", *started,
        f"{row['traversed_edges'] / row['seconds'] / 1e6:,.1f} M edges/s", *(["verified"] if row["verified"] else []),
    ]  # fmt: skip
    return ", ".join(parts)


def commit() -> str | None:
    """Short hash of the commit that this code is from, if it is a checkout."""
    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=folder, capture_output=True, text=True)
    except OSError:
        return None
    return asked.stdout.strip() or None


def append_rows(path: str, rows: list[dict], comm: MPI.Intracomm) -> None:
    """Append one JSON line a trial. Collective."""
    with together(comm):
        if comm.rank == 0:
            append_lines(path, [json.dumps(row) for row in rows])
