"""The cost of BFS, shortest paths and PageRank as products over semirings (apps/semiring.py), compared with the apps.

python -m scripts.bench semiring
python -m scripts.bench semiring --device gpu --scale 24 --ranks 1

Runs each, and the app of the same name, from the same sources on the same graph, prints a table, and appends a row for
each to benchmarks/semiring.jsonl. Seconds are those of the slowest rank: the best trial of every source, and the median
of these.
"""

import argparse
import statistics
from pathlib import Path

from scripts.bench.shared.graphs import kronecker
from scripts.bench.shared.rows import add_file_options, app_rows, keep, table

ALGORITHMS = ("bfs", "sssp", "pagerank")
SHARED = ("graph", "nodes", "edges", "policy", "ranks", "device", "transport", "commit")  # by all trials of a run


def add_options(parser: argparse.ArgumentParser) -> None:
    """Size, device and number of runs."""
    parser.add_argument("--scale", type=int, default=20, help="2**SCALE nodes (default: 20)")
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks (default: 1,2)")
    parser.add_argument("--device", default="cpu", help="cpu or gpu (default: cpu)")
    parser.add_argument("--sources", type=int, default=4, help="of bfs and sssp (default: 4)")
    parser.add_argument("--trials", type=int, default=5, help="of each source, the best of which counts (default: 5)")
    add_file_options(parser, "semiring")


def run(options: argparse.Namespace) -> None:
    """Measure, keep the rows, print the table."""
    graph = kronecker(options.data, options.scale)
    lines = [["algorithm", "ranks", "native", "semiring", "ratio"]]
    for ranks in map(int, options.ranks.split(",")):
        for algorithm in ALGORITHMS:
            native, semiring = (measure(graph, ranks, algorithm, form, options) for form in ("native", "semiring"))
            keep([native, semiring], options.rows)
            ratio = f"{semiring['seconds'] / native['seconds']:.2f}"
            lines.append([algorithm, str(ranks), cell(native), cell(semiring), ratio])
    print(f"\n{graph.stem} on the {options.device}; milliseconds (rounds)\n\n{table(lines)}")


def measure(graph: Path, ranks: int, algorithm: str, form: str, options: argparse.Namespace) -> dict:
    """The row of one program on some ranks: the median over its sources."""
    chosen = ["--device", options.device, "--trials", str(options.trials), "--verify"]
    if form == "semiring":
        chosen += ["--algorithm", algorithm]
    if algorithm != "pagerank" or form == "semiring":
        chosen += ["--sources", "1" if algorithm == "pagerank" else str(options.sources)]
    trials = app_rows(ranks, algorithm if form == "native" else form, graph, *chosen)
    best: dict[int | None, dict] = {}
    for row in sorted(trials, key=lambda row: -row["seconds"]):
        best[row["source"]] = row
    medians = {key: statistics.median(row[key] for row in best.values()) for key in ("seconds", "rounds", "mb_sent")}
    row = {"algorithm": algorithm, "form": form} | {key: trials[0][key] for key in SHARED}
    return row | {"sources": len(best), "trials": options.trials} | medians | {"verified": True}


def cell(row: dict) -> str:
    """Milliseconds and rounds."""
    return f"{row['seconds'] * 1e3:.1f} ({row['rounds']:.0f})"
