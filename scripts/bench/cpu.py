"""Partitioning, the apps in docs/performance.md, and the conversion of an edge list, on a Kronecker graph.

python -m scripts.bench cpu

Runs the programs as a user would, prints a table and appends every trial to benchmarks/cpu.jsonl. Seconds are those of
the slowest rank: the mean over all sources of BFS and SSSP, else the median; of the two conversions, the faster one.
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scripts.bench.shared.graphs import CLEAN, kronecker, kronecker_pairs
from scripts.bench.shared.rows import add_file_options, app_rows, call, keep, table

POLICIES = ("oec", "cvc", "hvc", "iec")
COLUMNS = {(1, 1): "1 rank", (1, 2): "1 rank, 2 threads", (2, 1): "2 ranks"}  # (ranks, threads of each) -> title
PAGERANK = ("--unweighted", "--iterations", "8", "--tolerance", "0", "--precision")
WHOLE = {  # what the table calls it -> an app that needs no source, and its options
    "cc": ("cc", ()),
    "pagerank float32": ("pagerank", (*PAGERANK, "float32")),
    "pagerank float64": ("pagerank", (*PAGERANK, "float64")),
    "triangles": ("triangles", ()),
    "kcore": ("kcore", ()),
    "betweenness": ("betweenness", ("--sources", "4")),
}


class Run(NamedTuple):
    """A run of an app, and what the table calls it."""

    name: str
    app: str
    policy: str
    ranks: int
    options: tuple[str, ...]
    threads: int = 1  # of each rank


def add_options(parser: argparse.ArgumentParser) -> None:
    """Size and number of runs."""
    parser.add_argument("--scale", type=int, default=20, help="2**SCALE nodes (default: 20)")
    parser.add_argument("--sources", type=int, default=16, help="of BFS and SSSP (default: 16)")
    parser.add_argument("--repeat", type=int, default=3, help="partitionings, and trials of the others (default: 3)")
    add_file_options(parser, "cpu")


def run(options: argparse.Namespace) -> None:
    """Measure, keep the rows, print the table."""
    graph = kronecker(options.data, options.scale)
    times: dict[tuple[str, str], list[float]] = defaultdict(list)  # (name, column) -> seconds
    for name, app, policy, ranks, chosen, threads in runs(options):
        how = ("--device", "cpu", "--threads", str(threads), "--policy", policy)
        rows = app_rows(ranks, app, graph, *how, *chosen)
        keep(rows, options.rows)
        column = COLUMNS[ranks, threads]
        times[f"{name} {policy}", column] += [row["seconds"] for row in rows]
        if app == "bfs":
            times[f"partition {policy}", column].append(rows[0]["partition_seconds"])
    seconds = {key: average_of(key[0])(values) for key, values in times.items()}
    seconds["convert", COLUMNS[1, 1]] = conversion(options.data, options.scale)
    print(f"\nkron{options.scale}; milliseconds\n")
    lines = [["", *COLUMNS.values()]]
    for name in dict.fromkeys(name for name, _ in seconds):
        cells = [seconds.get((name, column)) for column in COLUMNS.values()]
        lines.append([name, *("" if cell is None else f"{cell * 1e3:.1f}" for cell in cells)])
    print(table(lines))


def average_of(name: str) -> Callable[[list[float]], float]:
    """The function that makes one figure of all trials."""
    return statistics.mean if name.split()[0] in ("bfs", "sssp") else statistics.median


def runs(options: argparse.Namespace) -> list[Run]:
    """All runs of apps, in their order; those of BFS under a policy also time its partitionings."""
    sources, trials = ("--sources", str(options.sources)), ("--trials", str(options.repeat))
    traversals = [
        Run(app, app, "oec", ranks, sources, threads) for app in ("bfs", "sssp") for ranks, threads in COLUMNS
    ]
    traversals += [Run("bfs", "bfs", policy, 2, sources) for policy in POLICIES[1:]]
    traversals += [Run("bfs", "bfs", policy, 2, sources) for policy in POLICIES for _ in range(options.repeat - 1)]
    whole = WHOLE.items()
    return traversals + [
        Run(name, app, "oec", ranks, (*chosen, *trials), threads)
        for name, (app, chosen) in whole
        for ranks, threads in COLUMNS
    ]


def conversion(data: Path, scale: int) -> float:
    """Seconds from a raw list of int32 pairs to a symmetric graph file, including the start of the program."""
    pairs, target = kronecker_pairs(data, scale), data / "converted.h5"
    times = []
    for _ in range(2):  # the first one may compile
        began = time.perf_counter()
        call(1, "cusp.commands.convert", pairs, "--format", "pairs32", "--symmetrize", *CLEAN, "-o", target)
        times.append(time.perf_counter() - began)
    target.unlink()
    return min(times)
