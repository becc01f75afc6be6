"""Replication, balance and seconds of every policy at several numbers of parts, beside offline partitioners.

python -m scripts.bench quality                                # all: real graphs and kron20
python -m scripts.bench quality --graphs kron20 --offline metis
python -m scripts.bench quality --show                         # the tables of the rows that are kept, nothing is run
python -m scripts.bench quality --show --markdown --graphs kron20

Rules are asked by --ranks ranks for any number of parts. One without state decides as it would on as many ranks as
parts; those with state (Fennel, ldg, hdrf) hear of the choices of fewer others late, so on more ranks they do a little
worse. Offline partitioners hold the symmetric graph in memory and balance out-degrees; what they found is measured as a
node map, with the edge rule source.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from scripts.bench import offline, real_graphs
from scripts.bench.cases import Case, evaluate_on
from scripts.bench.common import DATA, ROWS, call, keep, kept, kronecker

FILE = ROWS / "quality.jsonl"
AGAIN = 5  # passes of the re-streaming mode
METRICS: dict[str, Callable[[dict], str]] = {
    "repl.": lambda row: f"{row['replication']:.2f}",
    "edges": lambda row: f"{row['edge_balance']:.2f}",
    "masters": lambda row: f"{row['master_balance']:.2f}",
    "s": lambda row: f"{row['seconds']:.2f}",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """What to measure, and for how long."""
    known = [*real_graphs.FILES, "kron20"]
    parser.add_argument("--graphs", type=names, default=known, help=f"default: {','.join(known)}")
    parser.add_argument("--parts", type=numbers, default=[4, 16, 64], help="default: 4,16,64")
    parser.add_argument("--ranks", type=int, default=2, help="MPI ranks that evaluate the rules (default: 2)")
    every = "comma list of METIS, KaHIP, Mt-KaHyPar, or none (default: those that are installed)"
    parser.add_argument("--offline", type=names, default=list(offline.METHODS), help=every)
    parser.add_argument("--limit", type=float, default=180, help="seconds for one offline partition (default: 180)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of generated graphs (default: data/)")
    parser.add_argument("--rows", type=Path, default=FILE, help="file to append to (default: benchmarks/quality.jsonl)")
    parser.add_argument("--show", action="store_true", help="print the rows that are kept, measure nothing")
    parser.add_argument("--markdown", action="store_true", help="print the tables as the README has them")


def names(text: str) -> list[str]:
    """Names with commas in between."""
    return text.split(",")


def numbers(text: str) -> list[int]:
    """Whole numbers with commas in between."""
    return [int(number) for number in text.split(",")]


def run(options: argparse.Namespace) -> None:
    """Measure and keep, unless --show says that there is enough; print a table a graph."""
    for name in [] if options.show else options.graphs:
        with tempfile.TemporaryDirectory() as folder:
            keep(measure(name, Path(folder), options), options.rows)
    rows = kept(options.rows, lambda row: (row["graph"], *column(row)))
    rows = [row for row in rows if row["graph"] in options.graphs and row["parts"] in options.parts]
    graphs = [name for name in options.graphs if any(row["graph"] == name for row in rows)]
    if options.markdown:
        print(markdown(rows, graphs, options.parts))
        return
    for name in graphs:
        print(table([row for row in rows if row["graph"] == name], options.parts))


def column(row: dict) -> tuple:
    """What a row is about, besides its graph."""
    return row["offline"], row["policy"], row["passes"], row["parts"]


def measure(name: str, folder: Path, options: argparse.Namespace) -> list[dict]:
    """Rows of one graph."""
    if name not in real_graphs.FILES:
        graph = symmetric = kronecker(options.data, int(name.removeprefix("kron")))
    else:
        source, flags = real_graphs.FILES[name]
        graph = symmetric = folder / f"{name}.h5"
        if not (real_graphs.folder() / source).exists():
            print(f"  {name} is left out: {real_graphs.folder() / source} is not there", file=sys.stderr)
            return []
        call(1, "scripts.convert", str(real_graphs.folder() / source), "-o", str(graph), *flags)
        if "--symmetrize" not in flags:
            symmetric = folder / f"{name}-symmetric.h5"
            call(1, "scripts.convert", str(graph), "-o", str(symmetric), "--symmetrize", *real_graphs.CLEAN)
    cases = [Case(name, str(graph), *policy) for parts in options.parts for policy in policies(parts)]
    maps, seconds, over = offline_maps(name, graph, symmetric, folder, options)
    rows = evaluate_on(options.ranks, cases + maps, folder)
    for row in rows:
        row["seconds"] = seconds.get((row["offline"], row["parts"]), row["seconds"])
    return rows + [blank | {"commit": rows[0]["commit"]} for blank in over]


def policies(parts: int) -> list[tuple[str, int, int]]:
    """Name, parts and passes of all built-in policies, and of those that gain by a second look."""
    from cusp.policies import POLICIES

    once = [(name, parts, 1) for name in POLICIES if name != "map"]
    return once + [(name, parts, AGAIN) for name in ("fec", "ldg")]


def offline_maps(
    name: str, graph: Path, symmetric: Path, folder: Path, options: argparse.Namespace
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
            target = folder / f"{method}-{parts}.npy"
            print(f"  {method} on {name} in {parts} parts", file=sys.stderr)
            took = None if late else offline.node_map(method, symmetric, graph, parts, target, options.limit)
            late = took is None
            if took is None:
                row = {"graph": name, "policy": "map", "parts": parts, "passes": 1, "offline": method}
                over.append(row | {"over_limit": options.limit})
            else:
                maps.append(Case(name, str(graph), "map", parts, node_map=str(target), offline=method))
                seconds[method, parts] = took
    return maps, seconds, over


def table(rows: list[dict], parts: list[int]) -> str:
    """A line a policy; for each number of parts its replication factor, balance of edges and masters, and seconds."""
    first = next(row for row in rows if "nodes" in row)
    lines = ["", f"{first['graph']}: {first['nodes']:,} nodes, {first['edges']:,} edges; {first['hardware']}", ""]
    width = 9 * len(METRICS)
    lines.append(f"{'':<16}" + "".join(f"{f'{number} parts':>{width}}" for number in parts))
    lines.append(f"{'policy':<16}" + "".join(f"{metric:>9}" for metric in METRICS) * len(parts))
    found = {column(row): row for row in rows}
    for what in dict.fromkeys(key[:-1] for key in found):
        cells = [found.get((*what, number)) for number in parts]
        lines.append(f"{label(*what):<16}" + "".join(f"{cell(row, METRICS, 9):>{width}}" for row in cells))
    return "\n".join(lines)


def markdown(rows: list[dict], graphs: list[str], parts: list[int]) -> str:
    """The README's table: a line a policy; replication factor and balance of edges, seconds for the most parts."""
    found = {(row["graph"], *column(row)): row for row in rows}
    shown = {name: METRICS[name] for name in ("repl.", "edges")}
    heads = [f"{name}, {parts[0]} parts" if number == parts[0] else str(number) for name in graphs for number in parts]
    seconds = [f"s, {name}" for name in graphs]
    lines = [f"| {' | '.join(['policy', *heads, *seconds])} |", "|---" * (1 + len(heads) + len(seconds)) + "|"]
    for what in dict.fromkeys(column(row)[:-1] for row in rows):
        cells = [cell(found.get((name, *what, number)), shown, 0) for name in graphs for number in parts]
        last = [found.get((name, *what, parts[-1])) for name in graphs]
        cells += [cell(row, {"s": METRICS["s"]}, 0) for row in last]
        lines.append(f"| {' | '.join([label(*what), *cells])} |")
    return "\n".join(lines)


def label(maker: str | None, policy: str, passes: int) -> str:
    """What stands at the left of a line."""
    return maker or policy + (f", {passes} passes" if passes > 1 else "")


def cell(row: dict | None, shown: dict[str, Callable[[dict], str]], width: int) -> str:
    """Some figures of a row; or why there are none."""
    if row is None:
        return ""
    if "over_limit" in row:
        return f"over {row['over_limit']:g} s"
    return " ".join(f"{show(row):>{max(0, width - 1)}}" for show in shown.values())
