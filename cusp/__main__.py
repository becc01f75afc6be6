"""Partition a graph, print statistics, save or export it; compare policies; write a new one.

mpirun -n 4 cusp partition graph.h5 --policy cvc --save parts/
mpirun -n 4 cusp compare graph.h5 --ranks 64 --policies oec,cvc,hvc,fec --plot compare.png
cusp policies
cusp new-policy NAME
"""

import argparse
import time
from collections.abc import Callable

from cusp.errors import OptionError, together
from cusp.estimates.dry_run import dry_run
from cusp.estimates.quality import measure_quality
from cusp.formats import is_graph_file
from cusp.launch import Parser, parse_together, program, run_main
from cusp.names.graph_names import read_names
from cusp.output.export import EXPORTS, export, export_names
from cusp.output.saved import save_partition, saved_before
from cusp.output.whole_file import check_targets
from cusp.partitioner import partition_graph
from cusp.policies.compile_rules import compile_policy
from cusp.policies.policy import installed_policies
from cusp.program import cli, hints, report
from cusp.program.choose import chosen_policy, named_policy, open_graph
from cusp.program.compare import compare
from cusp.program.shares import given_shares, with_shares
from cusp.program.template import write_template
from cusp.program.traced import traced
from cusp.program.warm_up import tiny_policy, warm_up
from cusp.runtime import timeline
from cusp.runtime.devices import choose_device
from cusp.runtime.mpi import MPI
from cusp.runtime.storage import peak_mb
from cusp.runtime.timeline import Stopwatch


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Run the command that the first argument names; without one, partition. Collective."""
    command = COMMANDS.get(argv[0]) if argv else None
    return command(comm, argv[1:]) if command else partition(comm, argv)


def make_parser(command: str) -> argparse.ArgumentParser:
    """The command line of one of ``COMMANDS`` that is in this file."""
    whole = "cusp" if command == "partition" else f"cusp {command}"
    parser = Parser(prog=program(whole), description=COMMANDS[command].__doc__)
    if command == "partition":
        parser.epilog = f"other commands: {', '.join(COMMANDS)}; each has --help"
        add_partition_arguments(parser)
    elif command == "new-policy":
        parser.add_argument("name", help="writes NAME.py and test_NAME.py to this folder")
    return parser


def add_partition_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of ``partition``."""
    parser.set_defaults(purpose="")  # for --policy auto: any
    parser.add_argument("graph", help="graph file, or any file that cusp convert takes")
    cli.add_foreign_options(parser.add_argument_group("files of other formats"))
    cli.add_partition_options(parser)
    cli.add_watching(parser)
    out = parser.add_argument_group("output")
    cli.add_trace(out)
    out.add_argument("--save", metavar="FOLDER", help="save the partition; apps accept this folder instead of a graph")
    out.add_argument("--json", metavar="FILE", help="write the table as JSON")
    out.add_argument("--export", choices=EXPORTS, help="write the rank of each node's master, for other programs")
    out.add_argument("--export-to", metavar="PATH", default="masters", help="name of the export (default: masters...)")
    dry = parser.add_argument_group("dry run")
    dry.add_argument("--dry-run", action="store_true", help="only estimate memory and traffic")
    text = "estimate for this many ranks (default: as the job)"
    dry.add_argument("--ranks", type=cli.num_parts, metavar="P", help=text)


def partition(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Partition a graph and print its statistics; optionally save or export the partition."""
    options = parse_together(comm, make_parser("partition"), argv)
    exported = export_names(options.export, options.export_to, comm.size) if options.export else []
    targets = {"--save": options.save, "--json": options.json, "--trace": options.trace}
    check_targets(comm, targets | {f"--export-to {name}": name for name in exported}, cli.inputs_of(options))
    with traced(comm, options.trace) as ranks:
        partition_as_chosen(ranks, options)
    return 0


def partition_as_chosen(comm: MPI.Intracomm, options: argparse.Namespace) -> None:
    """Partition, or estimate, and write, as the options say. Collective."""
    with together(comm):
        foreign = not is_graph_file(options.graph)
        for name in ("dry_run", "save", "memory_limit") if foreign else ():
            if getattr(options, name):
                raise OptionError(f"--{name.replace('_', '-')}: needs a graph file; cusp convert makes one")
        if options.ranks and not options.dry_run:
            raise OptionError(f"--ranks {options.ranks}: only with --dry-run; mpirun -n says how many ranks there are")
        parts = options.ranks or comm.size
        policy = named_policy(options, parts)
    header, edges = open_graph(comm, options)
    report.say(comm.rank, report.describe_graph(options.graph, header, edges is not None and edges.names is not None))
    placement = choose_device("cpu" if options.dry_run else options.device, comm, options.threads)
    policy, why = chosen_policy(policy, options, header, edges, placement, parts, comm)
    if why:
        report.say(comm.rank, why)
    if options.dry_run:
        with together(comm):
            policy = given_shares(policy, options.shares, parts)
        result = dry_run(header, policy, parts, options.split, comm, options.memory_limit)
        report.say(comm.rank, report.dry_run(result, policy.name, options.memory_limit))
        return
    device = placement.device
    policy, shares = with_shares(policy, options.shares, header, placement, comm)
    with together(comm):
        compiled = compile_policy(policy, device)
    with timeline.phase("start-up"):
        warm_up(comm, header, lambda few, path: partition_graph(path, tiny_policy(policy, path), few, device=device))
    watch = Stopwatch()
    comm.Barrier()
    began = time.perf_counter()
    with timeline.phase("partition"):
        part = partition_graph(
            options.graph if edges is None else edges, compiled, comm, options.split, order=options.order, watch=watch,
            memory_limit=options.memory_limit, device=device,
        )  # fmt: skip
        seconds = comm.allreduce(time.perf_counter() - began, MPI.MAX)
    phases = {name: comm.allreduce(value, MPI.MAX) for name, value in watch.seconds.items()}
    quality = measure_quality(part, comm)
    report.say(comm.rank, report.partition_table(quality, policy.name, seconds, phases))
    report.hint(comm.rank, hints.about_partition(policy, quality))
    peak = comm.allreduce(peak_mb(), MPI.MAX)
    if shares:
        report.say(comm.rank, shares)
    report.say(comm.rank, report.describe_placement(placement, compiled.where, comm))
    report.say(comm.rank, *report.describe_card(device, comm))
    report.say(comm.rank, f"memory: up to {peak:,.0f} MB per rank, the program included")
    if options.json:
        figures = {"graph": options.graph, "policy": policy.name, "partition_seconds": seconds, "phases": phases}
        figures["peak_mb"] = peak
        report.write_json(options.json, figures | quality.summary(), comm)
    if options.save:
        before = saved_before(options.save) if comm.rank == 0 else None
        save_partition(
            options.save, part, comm, graph=options.graph, policy=policy.name,
            parameters=cli.policy_parameters(options), order=options.order, split=options.split,
        )  # fmt: skip
        report.say(comm.rank, f"saved to {options.save}{before and f', in place of {before}' or ''}")
    if options.export:
        names = read_names(options.graph, comm, header.num_nodes)
        path = export(options.export, options.export_to, part, comm, names)
        by_number = names is not None and not path.endswith((".csv", ".parquet"))
        report.say(comm.rank, f"wrote {path}{'; nodes are by number there, --export csv has names' * by_number}")


def policies(comm: MPI.Intracomm, argv: list[str]) -> int:
    """List all policies, one per line."""
    parse_together(comm, make_parser("policies"), argv)
    report.say(comm.rank, "\n".join(f"{name:<10} {text}" for name, text in installed_policies()))
    return 0


def new_policy(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Write a commented policy file and its test, to start from."""
    options = parse_together(comm, make_parser("new-policy"), argv)
    with together(comm):
        written = write_template(options.name) if comm.rank == 0 else []
    report.say(comm.rank, *written)
    return 0


COMMANDS: dict[str, Callable[[MPI.Intracomm, list[str]], int]] = {
    "partition": partition,
    "compare": compare,
    "policies": policies,
    "new-policy": new_policy,
}

if __name__ == "__main__":
    run_main(main)
