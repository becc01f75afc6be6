"""Every textbook form of breadth-first search on one GPU, each compared with the previous one.

python -m scripts.bench ladder
python -m scripts.bench ladder --graphs kron24 --rungs "gathered,either way,cusp bfs"
python -m scripts.bench ladder --show --markdown --picture docs/pictures/ladder.svg

The graphs are made on the GPU. Every answer is compared with that of the library's own search. The first rung that a
graph shows has no factor; docs/ladder.md says what each of them does.
"""

import argparse
from pathlib import Path

from scripts.bench.ladder.picture import picture, tables
from scripts.bench.shared.rows import ROWS, gpu_name, keep, kept


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
        picture(rows, options.picture)


def climb(options: argparse.Namespace) -> None:
    """Measure every rung on every graph."""
    from cusp.apps.harness import commit
    from scripts.bench.gpu import make_part
    from scripts.bench.ladder.measure import choose_sources, compile_all, graph_of, measure
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
