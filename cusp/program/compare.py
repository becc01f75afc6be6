"""``cusp compare``: the quality of several policies on a graph, for any numbers of parts; no partition is built."""

import argparse
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from cusp.errors import OptionError, shortened, together
from cusp.estimates.cost import DEMANDS, USUAL, Cluster, predict
from cusp.estimates.estimate import Estimate, estimate
from cusp.estimates.plot import check_plot, digits, plot_comparison, short_name
from cusp.input.edge_slice import EdgeSlice, read_slice
from cusp.input.graph_file import GraphHeader
from cusp.launch import Parser, parse_together, program
from cusp.output.whole_file import check_targets
from cusp.policies.compile_rules import CompiledPolicy, compile_policy
from cusp.policies.policy import Policy, installed_policies, load_policy
from cusp.program import cli, report
from cusp.program.choose import load_estimates, open_graph
from cusp.program.shares import given_shares
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import Stopwatch


class Column(NamedTuple):
    """A figure in the table: the less, the better."""

    key: str
    title: str
    width: int
    show: Callable[[Any], str]


PREDICTED = Column("predicted_ms", "ms", 8, digits)  # if it was asked for
COLUMNS = (
    Column("replication", "replication", 12, "{:.3f}".format),
    Column("node_balance", "nodes", 7, "{:.2f}".format),
    Column("edge_balance", "edges", 7, "{:.2f}".format),
    Column("master_balance", "masters", 8, "{:.2f}".format),
    Column("cut", "cut edges", 10, "{:.1%}".format),
    Column("partners", "partners", 9, "{:.1f}".format),
    Column("mb_a_round", "MB/round", 9, digits),
    Column("memory_mb", "MB/part", 8, digits),
    Column("seconds", "seconds", 8, "{:.3f}".format),
)
FIRST = 10  # characters of a policy's name that always fit


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = Parser(prog=program("cusp compare"), description=compare.__doc__)
    add_subject(parser, None, "the number of ranks")
    add = parser.add_argument_group("prediction").add_argument
    text = f"predict the time in which all labels change once, of {', '.join(DEMANDS)}, or any other"
    add("--for", dest="purpose", metavar="APP", help=text)
    text = "hosts that the parts are divided among (default: 1)"
    add("--hosts", type=cli.positive, default=1, metavar="H", help=text)
    add("--cores", type=cli.positive, metavar="C", help="cores of each host (default: those of this one)")
    text = "what a host can send, such as 10gbit or 100mbit (default: %(default)s)"
    add("--link", type=cli.num_rate, default="10gbit", metavar="RATE", help=text)
    cli.add_watching(parser)
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    parser.add_argument(
        "--plot", metavar="FILE.png", help="plot replication, balance, traffic and memory (needs matplotlib)"
    )
    return parser


def add_subject(parser: argparse.ArgumentParser, ranks: str | None, shown: str) -> None:
    """The options that say what is estimated: a graph, numbers of parts, policies; ``shown`` tells of the default."""
    parser.add_argument("graph", help="graph file, or any file that cusp convert takes")
    text = f"numbers of parts, or 4..4096 for all powers of two from 4 to 4096 (default: {shown})"
    parser.add_argument("--ranks", metavar="P,...", default=ranks, help=text)
    text = "names or files, separated by commas, or all (default: %(default)s)"
    parser.add_argument("--policies", default="oec,iec,cvc,hvc", help=text)
    cli.add_foreign_options(parser.add_argument_group("files of other formats"))
    cli.add_policy_options(parser)


def compare(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Compare policies, for any numbers of parts."""
    options = parse_together(comm, make_parser(), argv)
    check_targets(comm, {"--json": options.json, "--plot": options.plot}, cli.inputs_of(options))
    if options.plot:
        check_plot(options.plot, comm)
    with together(comm):
        sizes = numbers_of_parts(options.ranks) if options.ranks else [comm.size]
        compiled = compiled_policies(options, sizes)
        if options.purpose == "":
            raise OptionError("--for: expected an algorithm, such as pagerank")
        if not options.purpose and (options.hosts > 1 or options.cores):
            raise OptionError("--hosts and --cores are for a prediction; add --for APP, such as --for pagerank")
        if options.hosts > min(sizes):
            raise OptionError(f"--hosts {options.hosts}: more than {min(sizes)} parts")
        hosts = Cluster(options.hosts, options.cores or len(os.sched_getaffinity(0)), options.link)
    header, edges = open_graph(comm, options)
    if options.purpose and options.purpose not in DEMANDS:
        report.warn(comm.rank, f"--for {options.purpose}: what it costs was never measured; predicted as {USUAL}")
    figures = []
    for policy, result, seconds, _ in estimates(comm, options, header, edges, compiled):
        row = {"policy": policy, "seconds": seconds, "cut_edges": result.cut_edges}
        if options.purpose:
            row |= {"for": options.purpose, "hosts": hosts.number}
            row |= predict(result.quality, options.purpose, hosts).figures()
        figures.append(row | result.quality.summary())
    for parts in sizes:
        some = [entry for entry in figures if entry["parts"] == parts]
        report.say(comm.rank, comparison_table(options.graph, parts, header.num_edges, some, options.purpose))
    if options.json:
        report.write_json(options.json, figures, comm)
    if options.plot:
        plot_comparison(options.plot, options.graph, figures, comm)
    return 0


def numbers_of_parts(text: str) -> list[int]:
    """Read ``4,16,64``, or ``4..64`` for the powers of two between.

    Raises
    ------
    OptionError
    """
    try:
        ends = [cli.num_parts(number) for number in text.split("..")] if ".." in text else []
        powers = [2**power for power in range(15) if ends and ends[0] <= 2**power <= ends[1]]
        if len(ends) > 2 or (ends and not powers):
            raise ValueError("no power of two is between")
        return powers or [*dict.fromkeys(cli.num_parts(number) for number in text.split(","))]
    except (ValueError, argparse.ArgumentTypeError) as error:
        known = "numbers of parts, separated by commas, such as 4,16,64, or the ends of a range, such as 4..64"
        raise OptionError(f"--ranks {shortened(text)}: {known}: {error}") from None


def compiled_policies(options: argparse.Namespace, sizes: list[int]) -> dict[int, list[CompiledPolicy]]:
    """The policies that the options name, by number of parts.

    Raises
    ------
    PolicyError, OptionError
    """
    return {parts: [compile_policy(policy) for policy in _policies(options, parts)] for parts in sizes}


def _policies(options: argparse.Namespace, parts: int) -> list[Policy]:
    names = options.policies.split(",")
    if names == ["all"]:
        names = [name for name, _ in installed_policies() if name != "map" or options.node_map]
    policies = [load_policy(name, **cli.policy_parameters(options)) for name in names]
    policies = [given_shares(policy, options.shares, parts) for policy in policies]
    for policy in policies:
        policy.grid_for(parts)
    return policies


def estimates(
    comm: MPI.Intracomm, options: argparse.Namespace, header: GraphHeader, edges: EdgeSlice | None,
    compiled: dict[int, list[CompiledPolicy]], most_bits: float = math.inf,
) -> Iterator[tuple[str, Estimate, float, int]]:  # fmt: skip
    """Name, estimate, seconds and sample of each policy and number of parts, one after the other. Collective.

    Parameters
    ----------
    most_bits : float
        With more bits, two for each node and part, the mirrors of one in so many nodes are counted that these suffice.
    """
    in_degrees = any(rules.uses.in_degrees for policies in compiled.values() for rules in policies)
    load_estimates(comm, header, options.split, compiled, in_degrees)
    if edges is None:
        edges = read_slice(options.graph, comm, options.split, weights=False, in_degrees=in_degrees)
    edges = replace(edges, weights=None)
    for parts, policies in compiled.items():
        one_in = max(1, math.ceil(2 * header.num_nodes * parts / most_bits))
        for rules in policies:
            report.progress(comm.rank, f"{rules.policy.name} in {parts} parts")
            comm.Barrier()
            watch = Stopwatch()
            with watch("estimate"):
                result = estimate(edges, rules, parts, options.split, comm, one_in)
            yield rules.policy.name, result, comm.allreduce(watch.seconds["estimate"], MPI.MAX), one_in
    report.progress(comm.rank, "")


def comparison_table(graph: str, parts: int, num_edges: int, figures: list[dict], algorithm: str | None = None) -> str:
    """A line for each policy, by what they send, or by the time that is predicted for an algorithm.

    The best of each column is marked, unless all are the same.
    """
    columns = (PREDICTED, *COLUMNS) if algorithm else COLUMNS
    rows = [entry | {"cut": entry["cut_edges"] / max(num_edges, 1)} for entry in figures]
    rows.sort(key=lambda entry: (entry.get("predicted_ms", 0), entry["mb_a_round"], entry["replication"]))
    shown = {column.key: [column.show(entry[column.key]) for entry in rows] for column in columns}
    best = {column.key: column.show(min(entry[column.key] for entry in rows)) for column in columns}
    names = [short_name(entry["policy"]) for entry in rows]
    first = max(FIRST, *map(len, names))
    before = first + sum(column.width for column in columns[: columns.index(COLUMNS[1])])
    balance = sum(column.width for column in COLUMNS[1:4])
    order = f"the ms in which all labels of {algorithm} change once, as predicted" if algorithm else "MB/round"
    lines = [
        f"{graph} in {parts} part{'s' * (parts > 1)}, estimated, by {order}; best marked *",
        f"{'':<{before}}{'largest part / mean of':^{balance}}".rstrip(),
        f"{'policy':<{first}}" + "".join(f"{column.title:>{column.width}}" for column in columns),
    ]
    for place, name in enumerate(names):
        cells = []
        for column in columns:
            text = shown[column.key][place]
            mark = "*" if text == best[column.key] and len({*shown[column.key]}) > 1 else " "
            cells.append(f" {text + mark:>{column.width - 1}}")
        lines.append(f"{name:<{first}}" + "".join(cells).rstrip())
    return "\n".join(lines)
