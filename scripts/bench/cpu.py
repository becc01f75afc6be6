"""Partitioning, BFS and SSSP of a Kronecker graph, and its conversion from an edge list.

python -m scripts.bench cpu

Makes its graphs in ``--data`` (kept for the next time), runs the apps as a user would, prints a table and
appends every trial to benchmarks/cpu.jsonl. Seconds are those of the slowest rank.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from scripts.bench.common import DATA, ROWS, call, keep, kronecker

GOALS = {  # what the table compares with, in seconds
    ("partition", "oec", 2): 0.30, ("partition", "cvc", 2): 0.45, ("partition", "hvc", 2): 0.45,
    ("bfs", "oec", 1): 0.040, ("bfs", "oec", 2): 0.035, ("sssp", "oec", 1): 0.40, ("sssp", "oec", 2): 0.25,
    ("convert", "", 1): 3.0,
}  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Size and number of runs."""
    parser.add_argument("--scale", type=int, default=20, help="2**SCALE nodes (default: 20)")
    parser.add_argument("--sources", type=int, default=16, help="sources for each algorithm (default: 16)")
    parser.add_argument("--repeat", type=int, default=3, help="partitionings for each policy (default: 3)")
    parser.add_argument("--data", default=str(DATA), help="folder of the graphs (default: data/)")


def run(options: argparse.Namespace) -> None:
    """Measure, keep the rows, print the table."""
    folder = Path(options.data)
    rows = traversals(kronecker(folder, options.scale), options)
    seconds = {
        **{key: statistics.median(values) for key, values in partitions(rows).items()},
        **{key: statistics.mean(values) for key, values in answers(rows).items()},
        ("convert", "", 1): conversion(folder, options.scale),
    }
    keep(rows, ROWS / "cpu.jsonl")
    print_table(seconds, options)


def traversals(graph: Path, options: argparse.Namespace) -> list[dict]:
    """Rows of every app, policy and number of ranks that the table shows."""
    sources = ["--sources", str(options.sources)]
    runs = [(app, "oec", ranks) for app in ("bfs", "sssp") for ranks in (1, 2)]
    runs += [("bfs", policy, 2) for policy in ("cvc", "hvc", "iec")]
    runs += [("bfs", policy, 2) for policy in ("oec", "cvc", "hvc", "iec") for _ in range(options.repeat - 1)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (app, policy, ranks) in enumerate(runs):
            path = Path(folder) / f"{number}.jsonl"
            call(ranks, f"apps.{app}", str(graph), "--policy", policy, *sources, "--rows", str(path))
            rows += [json.loads(line) for line in path.read_text().splitlines()]
    return rows


def partitions(rows: list[dict]) -> dict[tuple[str, str, int], list[float]]:
    """Seconds of each partitioning without weights, by policy and ranks: one a run, not one a trial."""
    found: dict[tuple[str, str, int], dict[float, None]] = {}
    for row in rows:
        if row["app"] == "bfs":
            found.setdefault(("partition", row["policy"], row["ranks"]), {})[row["partition_seconds"]] = None
    return {key: list(values) for key, values in found.items()}


def answers(rows: list[dict]) -> dict[tuple[str, str, int], list[float]]:
    """Seconds of each trial by app, policy and ranks."""
    found: dict[tuple[str, str, int], list[float]] = {}
    for row in rows:
        found.setdefault((row["app"], row["policy"], row["ranks"]), []).append(row["seconds"])
    return found


def conversion(folder: Path, scale: int) -> float:
    """Seconds from a raw list of int32 pairs to a symmetric graph file, starting the program included."""
    pairs = folder / f"kron{scale}.pairs"
    if not pairs.exists():
        write_pairs(pairs, scale)
    target = folder / "converted.h5"
    times = []
    for _ in range(2):  # the first one may compile
        began = time.perf_counter()
        call(1, "scripts.convert", str(pairs), "--format", "pairs32", "--symmetrize", "--drop-loops", "--dedup",
             "-o", str(target))  # fmt: skip
        times.append(time.perf_counter() - began)
    target.unlink()
    return min(times)


def write_pairs(path: Path, scale: int) -> None:
    """The edges of the Kronecker graph before they are symmetrised, as pairs of int32."""
    from cusp.edge_lists.generators import rmat

    stream = rmat(1, scale)
    with path.open("wb") as file:
        for first in range(0, stream.size, 1 << 20):
            sources, targets = stream.edges(first, min(first + (1 << 20), stream.size))
            np.stack([sources, targets], axis=1).astype(np.int32).tofile(file)


def print_table(seconds: dict[tuple[str, str, int], float], options: argparse.Namespace) -> None:
    """One line a figure, beside the goal where there is one for this scale."""
    print(f"\nkron{options.scale}, {options.sources} sources a run (mean); partitioning: median of {options.repeat}")
    print(f"{'what':<10} {'policy':<7} {'ranks':>5} {'ms':>10} {'goal ms':>9}")
    for (what, policy, ranks), value in seconds.items():
        goal = GOALS.get((what, policy, ranks)) if options.scale == 20 else None
        shown = f"{goal * 1e3:>9.0f} {'met' if value <= goal else 'MISSED'}" if goal else ""
        print(f"{what:<10} {policy:<7} {ranks:>5} {value * 1e3:>10.1f} {shown}")
