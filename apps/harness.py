"""Runs any app: partition, warm-up, sources, timed trials, verification, rows. It knows no algorithm."""

import argparse
import os
import time
from dataclasses import dataclass, replace
from typing import Any

from cusp.apps.run.app import Answer, App
from cusp.apps.run.checkpoint import open_checkpoint
from cusp.apps.run.cli import parser_of, with_gids
from cusp.apps.run.former import open_former
from cusp.apps.run.inputs import open_input
from cusp.apps.run.output import append_rows, commit, trial_line, write_answer
from cusp.apps.run.sources import draw_sources
from cusp.errors import check_same, shortened, together
from cusp.estimates.quality import Quality, measure_quality
from cusp.input.graph_file import read_header
from cusp.kernels.arrays import total
from cusp.launch import parse_together
from cusp.names.names import SortedNames
from cusp.output.tables import HDF5, TABLES, check_suffix
from cusp.output.whole_file import check_targets
from cusp.partition import Partition
from cusp.partitioner import partition_graph
from cusp.policies import Policy
from cusp.program import hints, report
from cusp.program.cli import inputs_of
from cusp.program.traced import traced
from cusp.program.warm_up import FAR_NODE, tiny_policy, warm_up
from cusp.runtime import debugging, signals, timeline
from cusp.runtime.compiled_code import CodeFiles, all_kept
from cusp.runtime.devices import Placement, backend, choose_device
from cusp.runtime.exchange import given
from cusp.runtime.mpi import MPI
from cusp.runtime.signals import local_ranks
from cusp.runtime.storage import peak_mb
from cusp.runtime.timeline import Stopwatch
from gluon.interfaces import Device
from gluon.plan import SyncPlan, make_plan
from gluon.sync import Sync
from gluon.transports import open_transport

__all__ = ["Answer", "App", "append_rows", "commit", "parser_of"]

PHASES = ("read", "assign_masters", "assign_edges", "allocate", "construct", "plan", "prepare")


@dataclass
class Job:
    """A partitioned graph, ready for trials."""

    graph: str
    policy: Policy
    placement: Placement
    part: Partition
    plan: SyncPlan
    prepared: Any
    quality: Quality
    partition_seconds: float
    phases: dict[str, float]
    startup_seconds: float
    names: SortedNames | None

    def name_of(self, gid: int | None) -> Any:
        """What a node is called: its number if it has no name."""
        return gid if self.names is None or gid is None else self.names[gid]


def main(app: App, comm: MPI.Intracomm, argv: list[str]) -> int:
    """Run an app from its command line. Collective; returns the exit code."""
    parser = parser_of(app)
    options = parse_together(comm, parser, argv)
    with together(comm):
        app.check_options(options)
        if options.output:
            check_suffix(options.output, HDF5 if app.listed else (*TABLES, *HDF5), "--output")
    names = ("output", "rows", "json", "trace", "checkpoint")
    targets = {f"--{name}": getattr(options, name) for name in names}
    check_targets(comm, targets, inputs_of(options))
    with traced(comm, options.trace) as ranks:
        run_trials(app, ranks, options, parser)
    return 0


def run_trials(app: App, comm: MPI.Intracomm, options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Partition, run, verify and write as the options say. Collective."""
    job, options = prepare_job(app, comm, options, parser)
    named = [options.source] if app.needs_source else [None]
    drawn = app.needs_source and options.source is None
    sources = draw_sources(job.part, comm, options.sources or 1, options.seed) if drawn else named
    options.checkpoint = checkpoint = open_checkpoint(app, job.part, comm, sources[0], options)
    options.start = open_former(comm, options, job.names)
    if checkpoint and checkpoint.goes_on:
        report.say(comm.rank, f"{app.name} {checkpoint}")
    rows: list[dict] = []
    for source in sources:
        for trial in range(options.trials):
            place = len(rows) + 1
            each = f" ({report.shown_seconds(sum(row['seconds'] for row in rows) / len(rows))} each)" if rows else ""
            report.progress(comm.rank, f"{app.name}, run {place:,} of {len(sources) * options.trials:,}{each}")
            answer, row = run_trial(app, comm, job, options, source, trial)
            report.progress(comm.rank, "")
            if options.verify and trial == 0:
                verify(app, comm, job, source, answer, options)
                row["verified"] = True
            if checkpoint and checkpoint.goes_on:
                row["rounds_before"] = checkpoint.rounds
            rows.append(row)
            report.say(comm.rank, trial_line(row, answer.figures))
            if len(rows) == 1 and job.placement.name == "cpu":
                local = local_ranks(), len(os.sched_getaffinity(0))
                report.hint(comm.rank, hints.about_run(job.quality, job.part.num_edges, *local))
        if app.show:
            show = Sync(job.plan, comm), source, answer.on_host(), options, lambda gid: shortened(job.name_of(gid))
            report.say(comm.rank, *app.show(job.part, *show))
    if options.output:
        wrote = write_answer(options.output, answer.on_host(), job.part, comm, job.names, app.nodes)
        report.say(comm.rank, *wrote)
    if options.rows:
        append_rows(options.rows, rows, comm)
    if options.json:
        figures = {"app": app.name, "graph": job.graph, "partition_seconds": job.partition_seconds,
                   "startup_seconds": job.startup_seconds, "phases": job.phases, "trials": rows}  # fmt: skip
        report.write_json(options.json, job.quality.summary() | figures, comm)
    if checkpoint:
        checkpoint.remove()


def prepare_job(
    app: App, comm: MPI.Intracomm, options: argparse.Namespace, parser: argparse.ArgumentParser
) -> tuple[Job, argparse.Namespace]:
    """Load compiled code, partition the graph and show the table; the options with nodes by number. Collective."""
    began = time.perf_counter()
    report.progress(comm.rank, "opening")
    with timeline.phase("open"):
        placement = choose_device(options.device, comm, options.threads)
        source = open_input(comm, options, app.reads_weights(options), placement, app.generate)
        with together(comm):
            options = with_gids(parser, options, source.names, source.header.num_nodes)
        check_same(comm, "options", vars(options))  # of which some were read from files
        open_transport(options.transport, comm, placement.device)  # connects the GPUs before a clock runs
    report.progress(comm.rank, "loading compiled code (compiled once, then kept)")
    device = placement.device
    with timeline.phase("start-up"):
        how = device, options.transport
        warm_up(comm, source.header, lambda few, path: rehearse(app, few, source.policy, options, path, *how))
    startup = comm.allreduce(time.perf_counter() - began, MPI.MAX)
    compiled = comm.allreduce(CodeFiles.compiled)
    report.progress(comm.rank, "partitioning")
    watch = Stopwatch(lambda phase: report.progress(comm.rank, f"partitioning: {phase}"))
    comm.Barrier()
    began = time.perf_counter()
    with timeline.phase("partition"):
        part = source.build(watch, app.needs_csc(options, source.header.symmetric))
        with watch("plan"):
            plan = make_plan(part, comm, options.transport)
        with watch("prepare"):
            prepared = app.prepare(part, Sync(plan, comm, execution=options.execution), options)
            part.storage.settle()
        seconds = comm.allreduce(time.perf_counter() - began, MPI.MAX)
    phases = {name: comm.allreduce(watch.seconds.get(name, 0.0), MPI.MAX) for name in PHASES}
    quality = measure_quality(part, comm)
    report.progress(comm.rank, "")
    report.say(comm.rank, *source.notes, report.describe_graph(source.name, source.header, source.names is not None))
    if source.header.weight_dtype is not None and hasattr(options, "weighted") and not app.reads_weights(options):
        report.say(comm.rank, f"{app.name} counts edges and leaves the weights out; --weighted takes them")
    report.say(comm.rank, report.partition_table(quality, source.policy.name, seconds, phases), *source.settled)
    what = f"to compile {compiled} functions, which are kept for later runs" if compiled else "to load compiled code"
    what = what if all_kept() else "to compile code, which is not kept"
    report.say(comm.rank, f"start-up: {startup:.2f} s {what}")
    report.say(comm.rank, report.describe_placement(placement, source.compiled.where, comm))
    if placement.name != "cpu":
        report.say(comm.rank, f"transport: {plan.transport}")
    report.say(comm.rank, *report.describe_card(device, comm))
    report.warn_of_idle_ranks(part, comm.size, comm.rank)
    report.hint(comm.rank, hints.about_partition(source.policy, quality))
    job = Job(
        source.name, source.policy, placement, part, plan, prepared, quality, seconds, phases, startup, source.names
    )
    return job, options


def rehearse(
    app: App, comm: MPI.Intracomm, policy: Policy, options: argparse.Namespace, path: str, device: str, transport: str
) -> None:
    """Call everything that a run calls, on a tiny graph. Collective."""
    given = vars(options)
    fitting = {name: value(given[name]) if callable(value) else value for name, value in app.rehearsed.items()}
    options = argparse.Namespace(**(given | fitting | {"checkpoint": None}))
    symmetric = read_header(path).symmetric
    csc = app.needs_csc(options, symmetric)
    weights = app.reads_weights(options)
    part = partition_graph(path, tiny_policy(policy, path), comm, weights=weights, csc=csc, device=device)
    plan = make_plan(part, comm, transport if device == "cpu" else "mpi")  # GPUs would be connected again
    prepared = app.prepare(part, Sync(plan, comm, execution=options.execution), options)
    source = FAR_NODE if app.needs_source else None
    answer = app.run(part, Sync(plan, comm, execution=options.execution), source, prepared, options)
    if options.verify:
        app.check(part, Sync(plan, comm), source, answer, prepared, options)


def run_trial(
    app: App, comm: MPI.Intracomm, job: Job, options: argparse.Namespace, source: int | None, trial: int
) -> tuple[Answer, dict]:
    """One timed run, on the clock of the slowest rank; the labels of the answer stay on the device. Collective."""
    sync = Sync(job.plan, comm, execution=options.execution)
    answer, seconds = timed_run(app, job.part, sync, source, job.prepared, options, trial=trial)
    messages = sync.total(sum(exchange.messages for exchange in sync.traffic))[0]
    reduced, broadcast, other = sync.total(*(sync.bytes_sent(kind) for kind in ("reduce", "broadcast", "other")))
    answer = answer.in_numbers()
    own = slice(None) if answer.reached is None else answer.reached[: job.part.num_masters]
    degrees = job.part.degrees[own]
    reached, traversed = sync.total(degrees.size, total(degrees))
    rounds = sync.highest(answer.rounds)
    row = {
        "app": app.name, "graph": job.graph, "nodes": job.part.num_nodes, "edges": job.part.num_edges,
        "policy": job.policy.name, "ranks": comm.size,
        "threads": max(job.placement.threads), "device": job.placement.name, "transport": job.plan.transport,
        "execution": options.execution, "source": job.name_of(source), "trial": trial,
        "seconds": seconds, "partition_seconds": job.partition_seconds, "phases": job.phases,
        "startup_seconds": job.startup_seconds, "rounds": rounds, "messages": messages,
        "mb_sent": (reduced + broadcast + other) / 1e6, "mb_reduced": reduced / 1e6, "mb_broadcast": broadcast / 1e6,
        "reached": reached, "traversed_edges": traversed, "replication": job.quality.replication,
        "edge_balance": job.quality.edge_balance, "peak_mb": comm.allreduce(peak_mb(), MPI.MAX),
        "verified": None, "commit": commit(),
    }  # fmt: skip
    return answer, row | answer.figures


def verify(
    app: App, comm: MPI.Intracomm, job: Job, source: int | None, answer: Answer, options: argparse.Namespace
) -> None:
    """Check an answer. Collective."""
    report.progress(comm.rank, "verifying")
    with timeline.phase("verify"):
        app.check(job.part, Sync(job.plan, comm), source, answer, job.prepared, options)
    report.progress(comm.rank, "")


def timed_run(
    app: App, part: Partition, sync: Sync, source: int | None, prepared: Any, options: argparse.Namespace, **facts: Any
) -> tuple[Answer, float]:
    """An answer and the seconds that it took on the slowest rank; a timeline shows the run with ``facts``. Collective.

    The arrays of the answer are on the device of the partition.
    """
    sync.comm.Barrier()
    before = replace(given(sync.comm))
    began = time.perf_counter()
    with timeline.phase("run", app=app.name, source=source, **facts) as facts_of_run:
        answer = app.run(part, sync, source, prepared, options)
        debugging.agree(sync.comm, "ends the run")
        signals.end_at_once()  # there are no more rounds for whose end they could wait
        wait(part)
        seconds = sync.comm.allreduce(time.perf_counter() - began, MPI.MAX)
    with together(sync.comm):
        app.check_answer(part, answer)
    facts_of_run["rounds"] = int(answer.rounds)
    after = given(sync.comm)
    sync.add_traffic("other", after.messages - before.messages, after.bytes - before.bytes)
    return answer, seconds


def wait(part: Partition) -> None:
    """Return when the device of a partition has finished all its work."""
    backend(Device, part.device).wait()
