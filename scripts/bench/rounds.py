"""What rounds of state cost and gain: how often ranks tell each other what their rules did.

python -m scripts.bench rounds
python -m scripts.bench rounds --show

Seconds are those of assigning masters and edges, the median of up to three runs. More ranks than cores take turns.
"""

import argparse
import tempfile
from pathlib import Path

from scripts.bench.cases import Case, evaluate_on
from scripts.bench.common import DATA, ROWS, keep, kept, kronecker

FILE = ROWS / "rounds.jsonl"
POLICIES = ("fec", "gvc", "svc", "ldg", "hdrf")
ROUNDS = (1, 10, 100, 1000)
RANKS = (2, 4)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The graph."""
    parser.add_argument("--scale", type=int, default=20, help="of the Kronecker graph (default: 20)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of generated graphs (default: data/)")
    parser.add_argument("--rows", type=Path, default=FILE, help="file to append to (default: benchmarks/rounds.jsonl)")
    parser.add_argument("--show", action="store_true", help="print the rows that are kept, measure nothing")


def run(options: argparse.Namespace) -> None:
    """Measure and keep, unless --show says that there is enough; print the table."""
    name = f"kron{options.scale}"
    if not options.show:
        path = str(kronecker(options.data, options.scale))
        cases = [Case(name, path, policy, rounds=rounds) for policy in POLICIES for rounds in ROUNDS]
        with tempfile.TemporaryDirectory() as folder:
            for ranks in RANKS:
                keep(evaluate_on(ranks, cases, Path(folder)), options.rows)
    rows = kept(options.rows, lambda row: (row["graph"], row["ranks"], row["policy"], row["rounds"]))
    print(table([row for row in rows if row["graph"] == name]))


def table(rows: list[dict]) -> str:
    """A line a policy and number of ranks; for each number of rounds replication, balance of edges, seconds."""
    lines = ["", f"{rows[0]['graph']}; {rows[0]['hardware']}; replication, edge balance, seconds", ""]
    lines.append(f"{'policy':<8}{'ranks':>6}" + "".join(f"{f'{rounds} rounds':>24}" for rounds in ROUNDS))
    found = {(row["policy"], row["ranks"], row["rounds"]): row for row in rows}
    for policy, ranks in dict.fromkeys(key[:2] for key in found):
        here = [found.get((policy, ranks, rounds)) for rounds in ROUNDS]
        cells = [cell(row) if row else "" for row in here]
        lines.append(f"{policy:<8}{ranks:>6}" + "".join(f"{text:>24}" for text in cells))
    return "\n".join(lines)


def cell(row: dict) -> str:
    """The figures of one number of rounds."""
    return f"{row['replication']:.3f} {row['edge_balance']:.3f} {row['seconds']:.3f}"
