"""Replication, balance and seconds of every policy at several numbers of parts, and of offline partitioners.

python -m scripts.bench quality                                # all: real graphs and kron20
python -m scripts.bench quality --graphs kron20 --offline metis
python -m scripts.bench quality --show                         # the tables of the rows that are kept, nothing is run
python -m scripts.bench quality --show --markdown --graphs kron20

The rules run on --ranks ranks, for any number of parts. The result of a rule without state does not depend on the
number of ranks. A rule with state (Fennel, ldg, hdrf) sees the choices of other ranks late, so it is a little worse on
more ranks. Offline partitioners hold the symmetric graph in memory and balance out-degrees; their result is measured
as a node map, with the edge rule source.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from scripts.bench.shared import offline
from scripts.bench.shared.cases import Case
from scripts.bench.shared.cases import measure as measure_cases
from scripts.bench.shared.graphs import FILES, folder, kronecker, published
from scripts.bench.shared.rows import add_file_options, keep, kept, table

AGAIN = 5  # passes of the re-streaming mode
METRICS: dict[str, Callable[[dict], str]] = {
    "replication factor": lambda row: f"{row['replication']:.2f}",
    "balance of edges": lambda row: f"{row['edge_balance']:.2f}",
    "of masters": lambda row: f"{row['master_balance']:.2f}",
    "seconds": lambda row: f"{row['seconds']:.2f}",
}


class Column(NamedTuple):
    """A column of a table: some figures of the rows of a graph in that many parts."""

    head: str
    graph: str
    parts: int
    metrics: tuple[str, ...]


def add_options(parser: argparse.ArgumentParser) -> None:
    """What to measure, and for how long."""
    known = [*FILES, "kron20"]
    parser.add_argument("--graphs", type=names, default=known, help=f"default: {','.join(known)}")
    parser.add_argument("--parts", type=numbers, default=[4, 16, 64], help="default: 4,16,64")
    parser.add_argument("--ranks", type=int, default=2, help="MPI ranks that evaluate the rules (default: 2)")
    every = "comma list of METIS, KaHIP, Mt-KaHyPar, or none (default: those that are installed)"
    parser.add_argument("--offline", type=names, default=list(offline.METHODS), help=every)
    parser.add_argument("--limit", type=float, default=180, help="seconds for one offline partition (default: 180)")
    parser.add_argument("--markdown", action="store_true", help="print the tables as docs/policies.md has them")
    add_file_options(parser, "quality", show=True)


def names(text: str) -> list[str]:
    """Names with commas in between."""
    return text.split(",")


def numbers(text: str) -> list[int]:
    """Whole numbers with commas in between."""
    return [int(number) for number in text.split(",")]


def run(options: argparse.Namespace) -> None:
    """Measure and keep, unless --show says that there is enough; print a table per graph, or one for docs."""
    for name in [] if options.show else options.graphs:
        with tempfile.TemporaryDirectory() as target:
            keep(measure(name, Path(target), options), options.rows)
    rows = kept(options.rows, lambda row: (row["graph"], *line_of(row), row["parts"]))
    rows = [row for row in rows if row["graph"] in options.graphs and row["parts"] in options.parts]
    graphs = [name for name in options.graphs if any(row["graph"] == name for row in rows)]
    if options.markdown:
        print(table(markdown(rows, graphs, options.parts), markdown=True))
        return
    for name in graphs:
        here = [row for row in rows if row["graph"] == name]
        first = next(row for row in here if "nodes" in row)
        print(f"\n{name}: {first['nodes']:,} nodes, {first['edges']:,} edges; {first['hardware']}")
        print(f"{', '.join(METRICS)}\n")
        columns = [Column(f"{parts} parts", name, parts, tuple(METRICS)) for parts in options.parts]
        print(table(lines(here, columns)))


def measure(name: str, target: Path, options: argparse.Namespace) -> list[dict]:
    """Rows of one graph; ``target`` is a folder for graph files and node maps."""
    if name in FILES:
        made = published(name, target)
        if made is None:
            print(f"  {name} is left out: {folder() / FILES[name][0]} is not there", file=sys.stderr)
            return []
        graph, symmetric = made
    else:
        graph = symmetric = kronecker(options.data, int(name.removeprefix("kron")))
    cases = [Case(name, str(graph), *policy) for parts in options.parts for policy in policies(parts)]
    maps, seconds, over = offline_maps(name, graph, symmetric, target, options)
    rows = measure_cases(options.ranks, cases + maps)
    for row in rows:
        row["seconds"] = seconds.get((row["offline"], row["parts"]), row["seconds"])
    return rows + [blank | {"commit": rows[0]["commit"]} for blank in over]


def policies(parts: int) -> list[tuple[str, int, int]]:
    """Name, parts and passes of all built-in policies, and of those that gain by a second look."""
    from cusp.policies import POLICIES

    once = [(name, parts, 1) for name in POLICIES if name != "map"]
    return once + [(name, parts, AGAIN) for name in ("fec", "ldg")]


def offline_maps(
    name: str, graph: Path, symmetric: Path, target: Path, options: argparse.Namespace
) -> tuple[list[Case], dict[tuple[str, int], float], list[dict]]:
    """Node maps of the offline partitioners, the seconds they took, and rows of those over the limit.

    After one number of parts was over the limit, larger ones are not tried.
    """
    maps, seconds, over = [], {}, []
    for method in offline.METHODS:
        if method.lower() not in map(str.lower, options.offline):
            continue
        if not offline.installed(method):
            print(f"  {method} is left out: pip install {offline.PACKAGES[method]}", file=sys.stderr)
            continue
        late = False
        for parts in sorted(options.parts):
            path = target / f"{method}-{parts}.npy"
            took = None if late else offline.node_map(method, symmetric, graph, parts, path, options.limit)
            late = took is None
            if took is None:
                row = {"graph": name, "policy": "map", "parts": parts, "passes": 1, "offline": method}
                over.append(row | {"over_limit": options.limit})
            else:
                maps.append(Case(name, str(graph), "map", parts, node_map=str(path), offline=method))
                seconds[method, parts] = took
    return maps, seconds, over


def markdown(rows: list[dict], graphs: list[str], parts: list[int]) -> list[list[str]]:
    """As in docs/policies.md: replication factor and balance of edges, then seconds for the last number of parts."""
    shown = tuple(METRICS)[:2]
    columns = [
        Column(f"{name}, {number} parts" if number == parts[0] else str(number), name, number, shown)
        for name in graphs
        for number in parts
    ]
    columns += [Column(f"s, {name}", name, parts[-1], ("seconds",)) for name in graphs]
    return lines(rows, columns)


def lines(rows: Iterable[dict], columns: list[Column]) -> list[list[str]]:
    """The head, and a line per policy."""
    cells = {(row["graph"], *line_of(row), row["parts"]): row for row in rows}
    policies = dict.fromkeys(key[1:-1] for key in cells)
    body = [[label(*key), *(cell(cells.get((c.graph, *key, c.parts)), c.metrics) for c in columns)] for key in policies]
    return [["policy", *(column.head for column in columns)], *body]


def line_of(row: dict) -> tuple[str | None, str, int]:
    """Which line of a table a row belongs to."""
    return row["offline"], row["policy"], row["passes"]


def label(maker: str | None, policy: str, passes: int) -> str:
    """The name of a line."""
    return maker or policy + (f", {passes} passes" if passes > 1 else "")


def cell(row: dict | None, metrics: tuple[str, ...]) -> str:
    """Some figures of a row; or why there are none."""
    if row is None:
        return ""
    if "over_limit" in row:
        return f"over {row['over_limit']:g} s"
    return " ".join(METRICS[name](row) for name in metrics)
