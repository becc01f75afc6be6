"""Plans against what came of them: what ``cusp plan`` predicts from runs on one host, and rows of runs on several.

python -m scripts.bench plans kron20.h5 --runs runs/*.json                 # beside benchmarks/hosts.jsonl
python -m scripts.bench plans kron20.h5 --runs runs/*.json --measured hosts.jsonl --each 2

A run is what an algorithm wrote with --json, on ranks of one host with as many threads as the rows have. For each
algorithm, number of ranks of the run, of hosts and link: how many times as long as predicted a row took, of the policy
of the run; how many times the bytes, if all are between hosts; how many times the memory of the job's first partition,
for algorithms that have weights, as rows do; and the time with the policy that is predicted to be the fastest, over
that of the fastest. PageRank takes as many iterations in both.
"""

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from scripts.bench.shared.rows import ROWS, add_file_options, call, keep, read_rows, table, written

Row = dict[str, Any]
KEY = ("app", "run_on", "link", "hosts")
FIGURES = ("time", "bytes", "memory")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The graph, runs on one host, and the hosts of the rows."""
    parser.add_argument("graph", type=Path, help="graph file, whose name the rows have")
    parser.add_argument("--runs", nargs="+", type=Path, required=True, help="what algorithms wrote with --json")
    parser.add_argument(
        "--measured", type=Path, default=ROWS / "hosts.jsonl", help="rows (default: benchmarks/hosts.jsonl)"
    )
    parser.add_argument("--each", type=int, default=1, help="ranks of a host, in the rows (default: 1)")
    parser.add_argument("--transport", default="mpi", help="of the rows (default: mpi)")
    add_file_options(parser, "plans")


def run(options: argparse.Namespace) -> None:
    """Predict what is in the rows, keep the ratios, print the table."""
    measured = [row for row in read_rows(options.measured) if told(row, options)]
    found = [
        ratios
        for path in options.runs
        for link in sorted({row["link"] for row in measured})
        for ratios in compared(options, path, link, measured)
    ]
    if not found:
        sys.exit(f"{options.measured}: has no rows of such runs of {options.graph.stem} with --each {options.each}")
    keep(found, options.rows)
    print(shown(found))


def told(row: Row, options: argparse.Namespace) -> bool:
    """The row is of such a run."""
    return (
        row["graph"] == options.graph.stem
        and row.get("link", "none") != "none"
        and (row["ranks"], row["transport"]) == (options.each * row["hosts"], options.transport)
    )


def compared(options: argparse.Namespace, path: Path, link: str, measured: list[Row]) -> Iterator[Row]:
    """The figures of the rows over those that the plan with a run predicts, for hosts with rows of all policies."""
    from cusp.commands.plan import WEIGHTED

    first = json.loads(path.read_text())["trials"][0]
    app, own = first["app"], first["policy"]
    rows = {
        (row["hosts"], row["policy"], row["app"]): row
        for row in measured
        if (row["link"], row["threads"]) == (link, first["threads"])
    }
    policies = list(dict.fromkeys(policy for _, policy, of in rows if of == app))
    hosts = sorted({hosts for hosts, *_ in rows if all((hosts, policy, app) in rows for policy in {own, *policies})})
    if not hosts:
        return
    for number, plan in planned(options, path, link, first, hosts, policies).items():
        took = {policy: rows[number, policy, app]["ms"] for policy in plan}
        best = min(plan.values(), key=itemgetter("predicted_ms"))["policy"]
        row, part = rows[number, own, app], rows.get((number, policies[0], "partition"))
        memory = part["peak_mb"] * options.each / plan[policies[0]]["host_mb"] if part and app in WEIGHTED else None
        yield {
            "graph": options.graph.stem, "app": app, "policy": own, "run_on": first["ranks"], "link": link,
            "hosts": number, "each": options.each, "transport": options.transport, "threads": first["threads"],
            "commit": row["commit"], "measured_on": row["hardware"], "time": took[own] / plan[own]["predicted_ms"],
            "bytes": row["network_mb"] / plan[own]["sent_mb"] if options.each == 1 else None, "memory": memory,
            "with_best": took[best] / min(took.values()),
        }  # fmt: skip


def planned(
    options: argparse.Namespace, path: Path, link: str, first: Row, hosts: Iterable[int], policies: Iterable[str]
) -> dict[int, dict[str, Row]]:
    """What the command predicts with a run, by number of hosts and policy; ``sent_mb`` for mirrors as in the run."""
    from cusp.estimates.cost import read_run
    from cusp.estimates.quality import LABEL_BYTES

    sent = (read_run(str(path), first["app"], "cpu").label_bytes or LABEL_BYTES) / LABEL_BYTES
    machine = {"ranks": options.each, "cores": options.each * first["threads"], "memory": '"64GB"', "link": f'"{link}"'}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "machine.toml"
        file.write_text("\n".join(f"{key} = {value}" for key, value in (machine | {"latency": '"10us"'}).items()))
        words = ("--for", first["app"], "--machine", file, "--policies", ",".join(policies), "--run", path)
        ranks = ",".join(str(number * options.each) for number in hosts)
        rows = json.loads(written("--json", call, 1, "cusp.commands.plan", options.graph, *words, "--ranks", ranks))
    return {
        number: {row["policy"]: row | {"sent_mb": sent * row["mb_a_round"]} for row in rows if row["hosts"] == number}
        for number in hosts
    }


def spread(found: Iterable[float | None]) -> str:
    """Geometric mean, least and most, and the median distance from 1, of those that are known."""
    ratios = [ratio for ratio in found if ratio is not None]
    if not ratios:
        return ""
    off = median(abs(ratio - 1) for ratio in ratios)
    return f"{geometric_mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), {off:.0%} off"


def shown(found: list[Row]) -> str:
    """A line for each algorithm, number of ranks of the run, link and number of hosts; the last one is of all."""
    by: dict[tuple, list[Row]] = defaultdict(list)
    for row in sorted(found, key=itemgetter(*KEY)):
        by[itemgetter(*KEY)(row)].append(row)
    lines = [["app", "run on", "link", "hosts", *FIGURES, "with the policy predicted"]]
    for key, rows in (by | {("all", "", "", ""): found}).items():
        figures = [spread(row[name] for row in rows) for name in FIGURES]
        lines.append([*map(str, key), *figures, f"{max(row['with_best'] for row in rows):.2f}"])
    return table(lines)
