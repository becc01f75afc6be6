"""This checkout, compared with another one: the same partitionings and searches in both, alternately.

python -m scripts.bench compare-trees ../main
python -m scripts.bench compare-trees ../main --scale 22 --ranks 1 --policies oec --repeat 9

Each program runs once in each checkout to compile, then --repeat times; the checkouts take turns to be first. Medians
in milliseconds, of partitioning without the plan for the sync, and of the mean over the sources of a search.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from collections import defaultdict
from itertools import product
from pathlib import Path

from scripts.bench.shared.graphs import kronecker
from scripts.bench.shared.rows import ROOT, add_file_options, app_rows, call, keep, table


def add_options(parser: argparse.ArgumentParser) -> None:
    """The other checkout, and what to run in both."""
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--scale", type=int, default=20, help="of the Kronecker graph (default: 20)")
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks (default: 1,2)")
    parser.add_argument("--policies", default="oec,cvc,fec", help="to partition by (default: oec,cvc,fec)")
    parser.add_argument("--apps", default="bfs,sssp", help="to search by (default: bfs,sssp)")
    parser.add_argument("--sources", type=int, default=16, help="of each search (default: 16)")
    parser.add_argument("--repeat", type=int, default=5, help="runs in each checkout (default: 5)")
    parser.add_argument("--device", default="cpu", help="cpu or gpu (default: cpu)")
    add_file_options(parser, "compare-trees")


def run(options: argparse.Namespace) -> None:
    """Measure, keep a row per run, print the table."""
    graph, trees = kronecker(options.data, options.scale), (ROOT, options.other.resolve())
    what = [("partition", policy) for policy in options.policies.split(",")]
    what += [(app, "oec") for app in options.apps.split(",")]
    runs = [(name, policy, ranks) for name, policy in what for ranks in map(int, options.ranks.split(","))]
    times: dict[tuple, list[float]] = defaultdict(list)
    for trial, (name, policy, ranks) in product(range(-1, options.repeat), runs):
        for place in (0, 1) if trial % 2 else (1, 0):
            seconds = measure(trees[place], graph, name, policy, ranks, options)
            if trial < 0:
                continue
            times[name, policy, ranks, place].append(seconds)
            row = {"app": name, "graph": graph.stem, "policy": policy, "ranks": ranks, "trial": trial}
            row |= {"seconds": seconds, "tree": trees[place].name, "commit": commit(trees[place])}
            keep([row], options.rows)
    lines = [["", "ranks", "this one", "the other", "ratio"]]
    for key in runs:
        this, other = (statistics.median(times[*key, place]) * 1e3 for place in (0, 1))
        lines.append([f"{key[0]} {key[1]}", str(key[2]), f"{this:.1f}", f"{other:.1f}", f"{this / other:.3f}"])
    print(f"\n{graph.stem} on the {options.device}; {trees[0]} and {trees[1]}\n\n{table(lines)}")


def measure(tree: Path, graph: Path, name: str, policy: str, ranks: int, options: argparse.Namespace) -> float:
    """Seconds of one run in one checkout."""
    chosen = ("--policy", policy, "--device", options.device)
    if name != "partition":
        rows = app_rows(ranks, name, graph, *chosen, "--sources", str(options.sources), tree=tree)
        return statistics.mean(row["seconds"] for row in rows)
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        call(ranks, "cusp", graph, *chosen, "--json", figures, tree=tree)
        return float(json.loads(figures.read_text())["partition_seconds"])


def commit(tree: Path) -> str | None:
    """Short hash of the commit of a checkout."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=tree, capture_output=True, text=True)
    return done.stdout.strip() or None
