"""Cost and benefit of rounds of state: how often ranks exchange the changes of their rules.

python -m scripts.bench rounds
python -m scripts.bench rounds --show

Seconds are those of assigning masters and edges, the median of up to three runs. More ranks than cores take turns.
"""

import argparse

from scripts.bench.shared.cases import Case, measure
from scripts.bench.shared.graphs import kronecker
from scripts.bench.shared.rows import add_file_options, keep, kept, table

POLICIES = ("fec", "gvc", "svc", "ldg", "hdrf")
ROUNDS = (1, 10, 100, 1000)
RANKS = (2, 4)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The graph."""
    parser.add_argument("--scale", type=int, default=20, help="of the Kronecker graph (default: 20)")
    add_file_options(parser, "rounds", show=True)


def run(options: argparse.Namespace) -> None:
    """Measure and keep, unless --show says that there is enough; print a line per policy and number of ranks."""
    name = f"kron{options.scale}"
    if not options.show:
        path = str(kronecker(options.data, options.scale))
        cases = [Case(name, path, policy, rounds=rounds) for policy in POLICIES for rounds in ROUNDS]
        for ranks in RANKS:
            keep(measure(ranks, cases), options.rows)
    rows = kept(options.rows, lambda row: (row["graph"], row["policy"], row["ranks"], row["rounds"]))
    rows = [row for row in rows if row["graph"] == name]
    cells = {(row["policy"], row["ranks"], row["rounds"]): cell(row) for row in rows}
    lines = [["policy", "ranks", *(f"{rounds} rounds" for rounds in ROUNDS)]]
    for policy, ranks in dict.fromkeys(key[:2] for key in cells):
        lines.append([policy, str(ranks), *(cells.get((policy, ranks, rounds), "") for rounds in ROUNDS)])
    print(f"\n{name}; {rows[0]['hardware']}; replication factor, balance of edges, seconds\n\n{table(lines)}")


def cell(row: dict) -> str:
    """The figures of one number of rounds."""
    return f"{row['replication']:.3f} {row['edge_balance']:.3f} {row['seconds']:.3f}"
