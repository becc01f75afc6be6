"""What soft priorities save and cost: shortest paths as an edge operator that drains by priority, beside other orders.

python -m scripts.bench priority

Four ways, on one rank: the app sssp, which is written by hand (``app``); bags by priority, where no thread waits for
others (``soft``); the same bags, each opened when all threads have finished the one before (``strict``); one bag for
all (``none``). Buckets are as wide as the app's, times --factors; the line without a width is what each way chooses.
Work is relaxed edges / edges of reached nodes, which is the least there can be. The ways take turns; a row is one
trial, of which ``none`` has only one, and that gives up after long. Graphs: a Kronecker graph, the roads of New York
with random weights, since their file has none, and a lattice with gaps.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from scripts.bench.shared.graphs import CLEAN, FILES, folder, kronecker
from scripts.bench.shared.rows import add_file_options, call, keep, kept, table

WAYS = ("app", "soft", "strict", "none")
ALL, FEW = 1 << 62, 1000  # edges
ENOUGH = 25  # times the edges of the graph, after which ``none`` gives up
KEY = ("graph", "threads", "way", "factor", "trial")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Graphs, widths and number of runs."""
    parser.add_argument("--scale", type=int, default=20, help="of the Kronecker graph (default: 20)")
    parser.add_argument("--side", type=int, default=2000, help="of the lattice, in nodes (default: 2000)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default: 1,2)")
    parser.add_argument("--factors", default="0.25,0.5,1,2,4,16", help="widths, in those of the app")
    parser.add_argument("--trials", type=int, default=5, help="of each way (default: 5)")
    add_file_options(parser, "priority", show=True)


def run(options: argparse.Namespace) -> None:
    """Measure and keep, unless --show says that there is enough; print a table per graph and number of threads."""
    if not options.show:
        for graph in graphs(options):
            keep(measure(graph, options), options.rows)
    rows = kept(options.rows, lambda row: tuple(row[name] for name in KEY))
    for graph, threads in dict.fromkeys((row["graph"], row["threads"]) for row in rows):
        here = [row for row in rows if (row["graph"], row["threads"]) == (graph, threads)]
        cells = {key: cell([row for row in here if (row["way"], row["factor"]) == key])
                 for key in dict.fromkeys((row["way"], row["factor"]) for row in here)}  # fmt: skip
        factors = sorted({factor for _, factor in cells if factor is not None})
        lines = [["width", *WAYS]]
        for factor in (*factors, None):
            width = "" if factor is None else f"{factor:g}"
            lines.append([width, *(cells.get((way, factor), "") for way in WAYS)])
        print(f"\n{graph}, threads: {threads}; {here[0]['hardware']}; best milliseconds (work)\n\n{table(lines)}")


def graphs(options: argparse.Namespace) -> list[Path]:
    """The graph files; made once. Without the file of the road network, the others."""
    made, data = [kronecker(options.data, options.scale)], options.data
    file, how = FILES["usa-road-ny"]
    if (folder() / file).exists():
        made.append(data / "usa-road-ny-weighted.h5")
        if not made[-1].exists():
            call(1, "scripts.convert", folder() / file, "-o", made[-1], *how, "--weights", "1:1000")
    side = str(options.side)
    made.append(data / f"lattice{side}.h5")
    if not made[-1].exists():
        call(1, "scripts.generate", "road", "--width", side, "--height", side, "--weights", "1:255", *CLEAN,
             "--output", made[-1])  # fmt: skip
    return made


def measure(graph: Path, options: argparse.Namespace) -> list[dict]:
    """Rows of all ways through one graph, from its node with the most edges."""
    import numpy as np

    from apps.harness import commit
    from apps.library import partition_graph
    from apps.shared.lengths import measure as measure_lengths
    from apps.sssp import sssp
    from cusp.runtime.threads import use_threads
    from gluon.sync import Sync

    given = partition_graph(str(graph))
    part, sync, rows = given.part, Sync(given.plan, given.comm), []
    source, lengths = int(part.gids[np.argmax(part.degrees)]), measure_lengths(part, sync)
    about = {
        "graph": graph.stem,
        "nodes": part.num_nodes,
        "edges": part.num_edges,
        "source": source,
        "commit": commit(),
    }
    factors = [float(text) for text in options.factors.split(",")]
    cases: list[tuple[str, float | None]] = [("app", None), ("soft", None), ("none", None)]
    cases += [(way, factor) for factor in factors for way in ("soft", "strict")]
    for threads in map(int, options.threads.split(",")):
        use_threads(threads)
        for trial in range(-1, options.trials):  # the first one loads code
            for way, factor in cases:
                if way == "none" and trial > 0:
                    continue
                most = ALL if way != "none" else FEW if trial < 0 else ENOUGH * part.num_edges
                began = time.perf_counter()
                if way == "app":
                    distances, work, left = sssp(part, sync, source, lengths).labels["distance"], None, False
                else:
                    distances, work, left = drained(part, source, way, factor and factor * lengths.delta, most)
                seconds = time.perf_counter() - began
                if way == "app":
                    expected, least = distances, int(part.degrees[distances >= 0].sum())
                elif not left and not np.array_equal(expected, distances):
                    raise AssertionError(f"{graph.stem}: {way} at {factor} differs from the app")
                if trial >= 0:
                    rows.append(about | {
                        "threads": threads, "way": way, "factor": factor, "delta": factor and factor * lengths.delta,
                        "trial": trial, "seconds": seconds, "work": work and work / least, "ended": not left,
                    })  # fmt: skip
    return rows


def drained(part: Any, source: int, way: str, delta: float | None, most: int = ALL) -> tuple[Any, int, bool]:
    """Distances, -1 where there is none; edges that were relaxed; whether more are left."""
    import numpy as np

    from apps.edge_operator import EdgeOperator
    from gluon.label import Label
    from gluon.reduction import MIN

    far = 2**31 - 1
    relax = EdgeOperator(
        "distance + weight", "dst.distance", priority="0" if way == "none" else "distance", delta=delta
    )
    label = Label(part, np.int32, far, MIN)
    label.write(source, 0)
    drain = relax.drain(part, distance=label)
    drain.strict = way == "strict"  # type: ignore[attr-defined]
    drain.add(label.swap_updated())
    left = drain.run(most)
    return np.where(label.masters() == far, -1, label.masters()), drain.edges, left


def cell(rows: list[dict]) -> str:
    """Milliseconds of the best trial, and the median of the work."""
    work, more = [row["work"] for row in rows if row["work"]], "" if all(row["ended"] for row in rows) else ">"
    shown = f"{more}{min(row['seconds'] for row in rows) * 1e3:.1f}"
    return shown + (f" ({more}{statistics.median(work):.2f})" if work else "")
