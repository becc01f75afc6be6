"""What it costs to write BFS, shortest paths and PageRank as products over semirings (apps/semiring.py).

python -m scripts.bench semiring
python -m scripts.bench semiring --device gpu --scale 24 --ranks 1

Runs each and the app of the same name from the same sources on the same graph, prints a table, and appends a row
each to benchmarks/semiring.jsonl. Seconds are those of the slowest rank: of every source the best of --trials, then the
median of these.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from scripts.bench.common import DATA, ROWS, call, keep, kronecker

ALGORITHMS = ("bfs", "sssp", "pagerank")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Size, device and number of runs."""
    parser.add_argument("--scale", type=int, default=20, help="2**SCALE nodes (default: 20)")
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks (default: 1,2)")
    parser.add_argument("--device", default="cpu", help="cpu or gpu (default: cpu)")
    parser.add_argument("--sources", type=int, default=4, help="of bfs and sssp (default: 4)")
    parser.add_argument("--trials", type=int, default=5, help="of each source, the best of which counts (default: 5)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of generated graphs (default: data/)")
    parser.add_argument(
        "--rows",
        type=Path,
        default=ROWS / "semiring.jsonl",
        help="file to append to (default: benchmarks/semiring.jsonl)",
    )


def run(options: argparse.Namespace) -> None:
    """Measure, keep the rows, print the table."""
    graph = str(kronecker(options.data, options.scale))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for ranks in map(int, options.ranks.split(",")):
            for algorithm in ALGORITHMS:
                rows += [
                    measure(graph, ranks, algorithm, form, options, Path(folder)) for form in ("native", "semiring")
                ]
    keep(rows, options.rows)
    print(table(rows))


def measure(graph: str, ranks: int, algorithm: str, form: str, options: argparse.Namespace, folder: Path) -> dict:
    """The row of one program on some ranks: the median over its sources."""
    path = folder / f"{algorithm}-{form}-{ranks}.jsonl"
    chosen = ["--device", options.device, "--trials", str(options.trials), "--verify", "--rows", str(path)]
    if form == "semiring":
        chosen = ["--algorithm", algorithm, *chosen]
    sources = 1 if algorithm == "pagerank" else options.sources
    if algorithm != "pagerank" or form == "semiring":
        chosen = ["--sources", str(sources), *chosen]
    call(ranks, f"apps.{algorithm if form == 'native' else form}", graph, *chosen)
    trials = [json.loads(line) for line in path.read_text().splitlines()]
    best: dict[int | None, dict] = {}
    for row in sorted(trials, key=lambda row: -row["seconds"]):
        best[row["source"]] = row
    seconds = statistics.median(row["seconds"] for row in best.values())
    kept = ("graph", "nodes", "edges", "policy", "ranks", "device", "transport", "commit")
    return {"algorithm": algorithm, "form": form} | {key: trials[0][key] for key in kept} | {
        "sources": len(best), "trials": options.trials, "seconds": seconds,
        "rounds": statistics.median(row["rounds"] for row in best.values()),
        "mb_sent": statistics.median(row["mb_sent"] for row in best.values()), "verified": True,
    }  # fmt: skip


def table(rows: list[dict]) -> str:
    """A line an algorithm and number of ranks."""
    lines = ["", f"{rows[0]['graph']} on the {rows[0]['device']}; ms (rounds)", ""]
    lines.append(f"{'algorithm':<10}{'ranks':>6}{'native':>18}{'semiring':>18}{'ratio':>8}")
    for native, semiring in zip(rows[::2], rows[1::2]):
        cells = "".join(f"{cell(row):>18}" for row in (native, semiring))
        ratio = semiring["seconds"] / native["seconds"]
        lines.append(f"{native['algorithm']:<10}{native['ranks']:>6}{cells}{ratio:>8.2f}")
    return "\n".join(lines)


def cell(row: dict) -> str:
    """Milliseconds and rounds."""
    return f"{row['seconds'] * 1e3:.1f} ({row['rounds']:.0f})"
