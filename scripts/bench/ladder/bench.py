"""Every textbook form of breadth-first search on one GPU, each compared with the previous one.

python -m scripts.bench ladder
python -m scripts.bench ladder --graphs kron24 --rungs "gathered,either way,cusp bfs"
python -m scripts.bench ladder --show --markdown --picture docs/pictures/ladder.svg

The graphs are made on the GPU. Every answer is compared with that of the library's own search. The first rung that a
graph shows has no factor; docs/ladder.md says what each of them does.
"""

import argparse
import math
from itertools import groupby
from pathlib import Path
from typing import Any

from cusp.estimates.plot import digits
from scripts.bench.shared.pictures import Bar, draw_bars
from scripts.bench.shared.rows import ROWS, gpu_name, keep, kept, table

HEAD = ["", "ms", "levels", "edges inspected", "GB/s", "factor"]
COLOR, OURS = "#8fb3d1", "#1f5f99"
LIBRARY = "cusp bfs"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m scripts.bench ladder``."""
    kinds = "roadSIDE, kronSCALE, randSCALE and ringNODES, with commas"
    parser.add_argument("--graphs", default="road4898,kron22,rand22", help=f"{kinds} (default: %(default)s)")
    parser.add_argument("--rungs", default="", help="some of them, with commas (default: all)")
    parser.add_argument("--sources", type=int, default=3, help="searches of each (default: 3)")
    parser.add_argument("--rows", type=Path, default=ROWS / "ladder.jsonl", help="rows are appended here")
    parser.add_argument("--show", action="store_true", help="print the rows that are kept, measure nothing")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="draw the rows that are kept")


def run(options: argparse.Namespace) -> None:
    """Measure, if asked to, keep each row when it is there, and show all."""
    if not options.show:
        climb(options)
    rows = kept(options.rows, lambda row: (row["graph"], row["rung"]))
    print(tables(rows, options.markdown))
    if options.picture:
        draw(rows, options.picture)


def climb(options: argparse.Namespace) -> None:
    """Measure every rung on every graph."""
    from cusp.apps.harness import commit
    from scripts.bench.gpu import make_part
    from scripts.bench.ladder.graph import graph_of
    from scripts.bench.ladder.measure import choose_sources, compile_all, measure
    from scripts.bench.ladder.rungs import RUNGS

    compile_all()
    about = {"gpu": gpu_name(), "commit": commit()}
    names = options.rungs.split(",") if options.rungs else [*RUNGS]
    for graph_name in options.graphs.split(","):
        graph = graph_of(make_part(graph_name))
        expected = choose_sources(graph, options.sources)
        base = {"graph": graph_name, "nodes": graph.nodes, "edges": graph.part.num_edges} | about
        for name in names:
            row = base | measure(name, graph, expected)
            keep([row], options.rows)
            print(f"  {graph_name} {name}: {row['ms']:.3f} ms", flush=True)


def tables(rows: list[dict[str, Any]], markdown: bool = False) -> str:
    """A table for each graph, from the lowest rung up."""
    parts = []
    for name, some in _by_graph(rows):
        title = f"{name}: {some[0]['nodes']:,} nodes, {some[0]['edges']:,} edges, {some[0]['gpu']}"
        lines = [HEAD, *(cells(row, before) for row, before in zip(some, [None, *some]))]
        parts.append(f"{title}\n\n{table(lines, markdown)}\n")
    return "\n".join(parts)


def cells(row: dict[str, Any], before: dict[str, Any] | None) -> list[str]:
    """A line of a table; the factor says how many times as fast it is as the rung below, ``before``."""
    levels = sorted(row["levels"])[len(row["levels"]) // 2]
    rate = "" if row["gb_s"] is None else f"{row['gb_s']:,.0f}"
    inspected = "" if row["inspected"] is None else f"{row['inspected']:,}"
    factor = "" if before is None else digits(before["ms"] / row["ms"])
    return [row["rung"], digits(row["ms"]), f"{levels:,}", inspected, rate, factor]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw a panel for each graph; lengths are logarithms: the same distance is the same factor everywhere."""
    panels = {}
    for name, some in _by_graph(rows):
        least, most = (pick(row["ms"] for row in some) for pick in (min, max))
        panels[name] = [
            Bar(
                row["rung"], math.log(row["ms"] / least * 2) / math.log(most / least * 2), digits(row["ms"]),
                OURS if row["rung"] == LIBRARY else COLOR,
            )
            for row in some
        ]  # fmt: skip
    draw_bars(path, "milliseconds, on a scale of factors: shorter is better", panels)


def _by_graph(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    ordered = sorted(rows, key=lambda row: (row["graph"], row["place"]))
    return [(name, [*some]) for name, some in groupby(ordered, key=lambda row: row["graph"])]
