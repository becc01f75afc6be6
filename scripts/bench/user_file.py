"""A policy in a user's file beside the built-in one of the same rules: the file should cost nothing.

python -m scripts.bench user-file

Partitions kron20 on 2 ranks by both in turn; the median of five. The files are those in scripts/bench/user_policies/,
copied to a folder of their own, as a user's would be.
"""

import argparse
import json
import shutil
import statistics
import tempfile
from pathlib import Path

from scripts.bench.common import DATA, ROWS, call, keep, kept, kronecker

FILE = ROWS / "user-file.jsonl"
FOLDER = Path(__file__).resolve().parent / "user_policies"
TWINS = {"cvc": "cartesian.py", "hvc": "hybrid.py", "fec": "fennel.py"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Graph, ranks, trials."""
    parser.add_argument("--scale", type=int, default=20, help="of the Kronecker graph (default: 20)")
    parser.add_argument("--ranks", type=int, default=2, help="default: 2")
    parser.add_argument("--trials", type=int, default=5, help="default: 5")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of generated graphs (default: data/)")
    parser.add_argument("--rows", type=Path, default=FILE, help="file to append to (default: in benchmarks/)")
    parser.add_argument("--show", action="store_true", help="print the rows that are kept, measure nothing")


def run(options: argparse.Namespace) -> None:
    """Measure and keep, unless --show says that there is enough; print the table."""
    if not options.show:
        graph = kronecker(options.data, options.scale)
        with tempfile.TemporaryDirectory() as folder:
            found = Path(folder) / "rows.jsonl"
            pairs = [(name, shutil.copy(FOLDER / file, folder)) for name, file in TWINS.items()]
            policies = [policy for pair in pairs for policy in pair]
            trials = ["--trials", str(options.trials)]
            call(options.ranks, "scripts.bench.side_by_side", str(graph), str(found), *policies, *trials)
            keep([json.loads(line) for line in found.read_text().splitlines()], options.rows)
    rows = kept(options.rows, lambda row: (row["graph"], row["ranks"], row["policy"], row["trial"]))
    print(table([row for row in rows if (row["graph"], row["ranks"]) == (f"kron{options.scale}", options.ranks)]))


def table(rows: list[dict]) -> str:
    """A line a pair."""
    lines = ["", f"{rows[0]['graph']}, {rows[0]['ranks']} ranks; {rows[0]['hardware']}; median milliseconds", ""]
    lines.append(f"{'built in':<10}{'ms':>8}   {'file':<14}{'ms':>8}{'ratio':>8}")
    for name, file in TWINS.items():
        built_in, own = (median([row["seconds"] for row in rows if row["policy"] == policy]) for policy in (name, file))
        lines.append(f"{name:<10}{built_in * 1e3:>8.0f}   {file:<14}{own * 1e3:>8.0f}{own / built_in:>8.2f}")
    return "\n".join(lines)


def median(values: list[float]) -> float:
    """The middle one; NaN of none."""
    return statistics.median(values) if values else float("nan")
