"""A policy in a user's file, compared with the built-in one of the same rules: the file should cost nothing.

python -m scripts.bench user-file

Partitions kron20 on 2 ranks by both in turn; the median of five. The files are those in scripts/bench/user_policies/,
copied to a folder of their own, as a user's would be.
"""

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

from scripts.bench.shared.cases import Case, measure
from scripts.bench.shared.graphs import kronecker
from scripts.bench.shared.rows import add_file_options, keep, kept, table

FOLDER = Path(__file__).resolve().parent / "user_policies"
TWINS = {"cvc": "cartesian.py", "hvc": "hybrid.py", "fec": "fennel.py"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Graph, ranks, trials."""
    parser.add_argument("--scale", type=int, default=20, help="of the Kronecker graph (default: 20)")
    parser.add_argument("--ranks", type=int, default=2, help="default: 2")
    parser.add_argument("--trials", type=int, default=5, help="default: 5")
    add_file_options(parser, "user-file", show=True)


def run(options: argparse.Namespace) -> None:
    """Measure and keep, unless --show says that there is enough; print a line per pair."""
    name = f"kron{options.scale}"
    if not options.show:
        path = str(kronecker(options.data, options.scale))
        with tempfile.TemporaryDirectory() as folder:
            pairs = [(policy, shutil.copy(FOLDER / file, folder)) for policy, file in TWINS.items()]
            cases = [Case(name, path, policy) for pair in pairs for policy in pair]
            keep(measure(options.ranks, cases, options.trials), options.rows)
    rows = kept(options.rows, lambda row: (row["graph"], row["ranks"], row["policy"], row["trial"]))
    rows = [row for row in rows if (row["graph"], row["ranks"]) == (name, options.ranks)]
    lines = [["built in", "ms", "file", "ms", "ratio"]]
    for twins in TWINS.items():
        seconds = [[row["seconds"] for row in rows if row["policy"] == policy] for policy in twins]
        built_in, own = (statistics.median(times) if times else float("nan") for times in seconds)
        lines.append([twins[0], f"{built_in * 1e3:.0f}", twins[1], f"{own * 1e3:.0f}", f"{own / built_in:.2f}"])
    print(f"\n{name}, {options.ranks} ranks; {rows[0]['hardware']}; median milliseconds\n\n{table(lines)}")
