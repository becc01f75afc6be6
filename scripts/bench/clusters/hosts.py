"""Messages between hosts: algorithms by transport, on hosts with limited links that have several ranks each.

python -m scripts.bench hosts                                                 # 2 and 4 hosts, 1 and 10 Gbit/s
python -m scripts.bench hosts --graphs kron20 --hosts 2 --rates 1gbit --policies oec,cvc,hvc
python -m scripts.bench hosts --show                                          # the table of the rows that are kept

Of a run (PageRank: 20 iterations), its rounds, and by each transport: milliseconds, those of all ranks on their cores,
and the kilobytes and packets that all hosts have sent; see algorithms. Hosts on one machine share its cores, see
scripts.hosts: where there are fewer cores than ranks, only what was sent means something.
"""

import argparse
import statistics
from functools import partial
from pathlib import Path
from typing import Any

from scripts.bench.shared.graphs import weighted
from scripts.bench.shared.rows import (
    add_file_options,
    add_run_options,
    algorithm_rows,
    call_on_hosts,
    keep,
    kept,
    table,
)

APPS, TRANSPORTS = "bfs,sssp,cc,pagerank,kcore", "mpi,hosts"
COLUMNS = {"ms": "ms", "cpu_ms": "on cores", "network_mb": "kB", "packets": "packets"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Graphs, hosts, links, transports."""
    parser.add_argument("--graphs", default="kron18,usa-road-ny", help="with commas; files too (default: %(default)s)")
    parser.add_argument("--hosts", default="2,4", help="how many, with commas (default: %(default)s)")
    parser.add_argument("--each", type=int, default=2, help="ranks of a host (default: %(default)s)")
    parser.add_argument("--rates", default="1gbit,10gbit", help="of links, with commas (default: %(default)s)")
    parser.add_argument("--transports", default=TRANSPORTS, help="with commas (default: %(default)s)")
    add_run_options(parser, "oec,cvc", APPS)
    add_file_options(parser, "hosts", show=True)


def run(options: argparse.Namespace) -> None:
    """Measure, keep the rows, print the table; or show what is kept."""
    for name in [] if options.show else options.graphs.split(","):
        graph = weighted(options.data, name)
        for hosts in map(int, options.hosts.split(",")):
            for rate in options.rates.split(","):
                for transport in options.transports.split(","):
                    keep(measure(graph, hosts, rate, transport, options), options.rows)
    found = kept(options.rows, lambda row: (*cell(row), row["transport"]))
    print(shown([row for row in found if row["app"] != "partition"]))


def measure(graph: Path, hosts: int, rate: str, transport: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows of all policies and algorithms."""
    start = partial(call_on_hosts, hosts, rate, hosts * options.each)
    rows = algorithm_rows(start, graph, 1, options, "--policies", options.policies, "--transport", transport)
    return [row | {"link": rate} for row in rows]


def cell(row: dict[str, Any]) -> tuple:
    """What is compared by several transports."""
    return row["graph"], row["hosts"], row["ranks"], row["link"], row["policy"], row["app"]


def shown(rows: list[dict[str, Any]]) -> str:
    """A line for each graph, number of hosts, link, policy and algorithm."""
    transports = list(dict.fromkeys(row["transport"] for row in rows))
    lines = [["graph", "hosts", "ranks", "link", "policy", "app", "rounds"]]
    lines[0] += [f"{column}, {transport}" for column in COLUMNS.values() for transport in transports]
    for key in dict.fromkeys(map(cell, rows)):
        found = {row["transport"]: row for row in rows if cell(row) == key}
        rounds = statistics.mean(next(iter(found.values()))["rounds"])
        figures = [
            f"{found[transport][field] * (1e3 if field == 'network_mb' else 1):,.4g}" if transport in found else ""
            for field in COLUMNS
            for transport in transports
        ]
        lines.append([*map(str, key), f"{rounds:.3g}", *figures])
    return table(lines)
