"""Predict time, memory and cost of an algorithm on more ranks than there are, before they are paid for.

cusp plan graph.h5 --for pagerank --machine cluster.toml --ranks 4..4096
cusp plan graph.h5 --for bfs --run bfs.json --times 1000 --plot plan.png

For each number of ranks, the policy that is predicted to be the fastest, of those that fit. cluster.toml describes a
host:

    ranks = 4              # of each host
    cores = 16
    memory = "64GB"        # with gpus, of all its cards
    link = "10gbit"
    latency = "10us"       # of an exchange with a rank of another host
    gpus = 4               # may be left out
    price = 1.20           # of a host for an hour; may be left out

Time is that in which all labels change once: an iteration of PageRank, a whole search. Searches take several times as
long. With --run, it is that of a whole run, with the rounds, bytes and seconds of one on ranks of one host, at least
two and no more than its cores. With --times K, a part has K times as many edges, nodes and mirrors, and as many
partners: as in a graph K times as large with the same degrees and locality.
"""

import argparse
from dataclasses import replace
from typing import Any

from cusp.errors import check_same, together
from cusp.estimates.cost import DEMANDS, USUAL, Run, read_run
from cusp.estimates.plot import check_plot, digits, plot_plan, short_name
from cusp.input.graph_file import GraphHeader
from cusp.launch import parse_together, parser_for, run_main
from cusp.output.whole_file import check_targets
from cusp.program import report
from cusp.program.choose import open_graph
from cusp.program.cli import add_watching, inputs_of, whole
from cusp.program.compare import Column, add_subject, compiled_policies, estimates, numbers_of_parts
from cusp.program.machine import Machine, best_by_parts, figures_of, hosts_needed, read_machine, this_host
from cusp.runtime.mpi import MPI

MOST_BITS = 1 << 31  # for which parts have edges of which nodes; of more, a sample of the nodes is counted
WEIGHTED = ("sssp",)  # whose ranks have the weights of edges, too
COLUMNS = (
    Column("parts", "ranks", 7, "{:,}".format),
    Column("hosts", "hosts", 7, "{:,}".format),
    Column("policy", "policy", 10, short_name),
    Column("replication", "replication", 12, "{:.2f}".format),
    Column("predicted_ms", "ms", 9, digits),
    Column("work_ms", "work", 9, digits),
    Column("rounds_ms", "rounds", 9, digits),
    Column("exchange_ms", "exchange", 9, digits),
    Column("network_ms", "network", 9, digits),
    Column("memory_mb", "MB/part", 9, digits),
    Column("host_mb", "MB/host", 10, digits),
    Column("speed_up", "speed-up", 9, "{:.2f}".format),
    Column("efficiency", "efficiency", 11, "{:.0%}".format),
    Column("host_seconds", "host s", 9, digits),
)
PRICE = Column("price", "price", 9, digits)  # if it is known


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = parser_for("cusp.commands.plan", __doc__)
    add_subject(parser, "1..64", "%(default)s")
    add = parser.add_argument_group("prediction").add_argument
    add("--for", dest="purpose", choices=DEMANDS, default=USUAL, help="the algorithm (default: %(default)s)")
    add("--machine", metavar="FILE.toml", help="what the hosts are (default: as this one, with one rank each)")
    text = (
        "rounds, bytes and time of a run on one host: what the algorithm wrote with --json, best with --execution bulk"
    )
    add("--run", metavar="FILE", help=text)
    text = "the graph stands for one so many times as large, of the same kind (default: 1)"
    add("--times", type=whole(1, 10**6), default=1, metavar="K", help=text)
    add_watching(parser)
    parser.add_argument("--json", metavar="FILE", help="write the figures of all policies")
    parser.add_argument("--plot", metavar="FILE.png", help="plot time, memory and cost (needs matplotlib)")
    return parser


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Predict what more ranks would gain, need and cost. Collective."""
    options = parse_together(comm, make_parser(), argv)
    inputs = [*inputs_of(options), options.machine, options.run]
    check_targets(comm, {"--json": options.json, "--plot": options.plot}, inputs)
    if options.plot:
        check_plot(options.plot, comm)
    with together(comm):
        compiled = compiled_policies(options, sorted(numbers_of_parts(options.ranks)))
        machine = read_machine(options.machine) if options.machine else this_host()
        device = "gpu" if machine.gpus else "cpu"
        run = read_run(options.run, options.purpose, device) if options.run else None
    check_same(comm, "runs", run)
    if options.machine:
        check_same(comm, "machine files", machine)
    header, edges = open_graph(comm, options)
    large = scaled(header, options.times, options.purpose)
    demand = run and run.demand(options.purpose)
    rows = []
    for policy, found, _, one_in in estimates(comm, options, header, edges, compiled, MOST_BITS):
        quality = found.quality.times(options.times)
        figures = figures_of(quality, large, machine, options.purpose, demand)
        rows.append({"policy": policy, "for": options.purpose, "times": options.times, "one_in": one_in} | figures)
    best = best_by_parts(rows)
    report.say(comm.rank, "\n".join([*_assumptions(options, large, machine, run), table(best, machine.price > 0)]))
    sampled = {row["parts"]: row["one_in"] for row in rows if row["one_in"] > 1}
    if sampled:
        each = ", ".join(f"one in {one_in} for {parts:,} ranks" for parts, one_in in sampled.items())
        report.say(comm.rank, f"mirrors and partners are those of a sample of the nodes: {each}")
    report.say(comm.rank, _memory(best, large, machine))
    if options.json:
        report.write_json(options.json, rows, comm)
    if options.plot:
        plot_plan(options.plot, options.graph, best, machine.memory / 1e6, machine.price > 0, comm)
    return 0


def scaled(header: GraphHeader, times: int, algorithm: str) -> GraphHeader:
    """What is known of a graph so many times as large; without weights, if the algorithm leaves them out."""
    weights = header.weight_dtype if algorithm in WEIGHTED else None
    nodes, edges = times * header.num_nodes, times * header.num_edges
    return replace(header, num_nodes=nodes, num_edges=edges, weight_dtype=weights)


def _assumptions(options: argparse.Namespace, header: GraphHeader, machine: Machine, run: Run | None) -> list[str]:
    """What the table is about."""
    size = f"{header.num_nodes:,} nodes, {header.num_edges:,} edges"
    times = f", {options.times:,} times the file: parts have as many times its mirrors, and as many partners"
    graph = f"graph {options.graph}: {size}{times * (options.times > 1)}"
    has = _several(machine.gpus, "GPU") if machine.gpus else _several(machine.cores, "core")
    link = f"{8 * machine.link / 1e9:.3g} Gbit/s, {1e6 * machine.latency:.3g} us"
    hosts = f"hosts: {_several(machine.ranks, 'rank')}, {has}, {machine.memory / 1e9:,.3g} GB, {link}"
    what = "all labels change once"
    if run:
        sent = f"{run.label_bytes:.3g} bytes for each mirror" if run.label_bytes else "as many bytes as usual"
        what = f"a run takes with {run.rounds:.4g} rounds, {sent} and {run.work:.3g} times the usual work, as in "
        what += f"{options.run} on {_several(run.ranks, 'rank')} of one host"
    return [graph, hosts, f"{options.purpose}: ms in which {what}, as predicted"]


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number > 1)}"


def table(rows: list[dict[str, Any]], priced: bool) -> str:
    """A line for each number of ranks, with its policy."""
    columns = (*COLUMNS, PRICE) if priced else COLUMNS
    lines = ["".join(f"{column.title:>{column.width}}" for column in columns)]
    for row in rows:
        marks = [name for name in ("fastest", "cheapest") if row[name]] if row["fits"] else ["does not fit"]
        cells = "".join(f" {column.show(row[column.key]):>{column.width - 1}}" for column in columns)
        lines.append(f"{cells}  {', '.join(marks)}".rstrip())
    return "\n".join(lines)


def _memory(best: list[dict[str, Any]], header: GraphHeader, machine: Machine) -> str:
    """What fits."""
    memory = f"{machine.memory / 1e6:,.0f} MB"
    text = f"MB/host: of a host with {memory}, while its parts are built"
    if any(row["fits"] for row in best):
        return text
    hosts = hosts_needed(best[-1], header, machine)
    if hosts is None:
        advice = f"plan fewer ranks of a host than {machine.ranks}, or more memory"
        return f"{text}; none fits, and no number of such hosts would do: {advice}"
    return f"{text}; none fits: that takes at least {_several(hosts, 'host')}, with {hosts * machine.ranks:,} ranks"


if __name__ == "__main__":
    run_main(main)
