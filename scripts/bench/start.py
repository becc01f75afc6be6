"""From a command to its answer: the whole process, the first time on a machine and again, beside other programs.

python -m scripts.bench start --graphs kron20,road4 --gapbs ~/gapbs
python -m scripts.bench start --graphs kron24 --device gpu

The first command has empty folders for compiled code; then the median of --repeat commands counts. With --warm-up, the
first command after ``cusp warm-up`` is measured, too, and what that takes. Files are in the page cache. Seconds;
start-up, partition, preparation and run are what the program itself says of the second command. Other programs read the
same graph from files of their own (the GAP benchmark suite), or from ours (SciPy, NetworKit).
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cusp.apps.run.output import commit
from scripts.bench.compare_trees import APPS, SEARCHES, SUITE, built, serialized, sources_of
from scripts.bench.shared.graphs import graph_named
from scripts.bench.shared.rows import absolute, add_file_options, keep, kept, read_rows, seconds_of, table

ALL = "bfs,sssp,cc,pagerank32,kcore,triangles,betweenness"
PARTS = ("startup", "partition", "prepare", "run")
CACHES = ("CUSP_CACHE", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")
READ = "import h5py, numpy as np; f = h5py.File({path!r}); p, t = f['indptr'][:], f['indices'][:]; "
SPARSE = "import scipy.sparse as s; g = s.csr_array(({values}, t, p), shape=(p.size - 1, p.size - 1)); "
KIT = (
    "import networkit as nk; s = np.repeat(np.arange(p.size - 1), np.diff(p)); k = s < t; "
    "g = nk.GraphFromCoo((s[k], t[k].astype(s.dtype)), n=p.size - 1); "
)
LIBRARIES = {  # program, app -> the words of a user
    ("scipy", "bfs"): READ + SPARSE.replace("{values}", "np.ones(t.size, np.int8)")
    + "from scipy.sparse.csgraph import breadth_first_order; breadth_first_order(g, {source})",
    ("scipy", "sssp"): READ + SPARSE.replace("{values}", "f['data'][:].astype(float)")
    + "from scipy.sparse.csgraph import dijkstra; dijkstra(g, indices={source})",
    ("networkit", "bfs"): READ + KIT + "nk.distance.BFS(g, {source}, storePaths=False).run()",
    ("networkit", "cc"): READ + KIT + "nk.components.ConnectedComponents(g).run()",
}  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Graphs, algorithms, and what else to run."""
    parser.add_argument("--graphs", default="kron20", help="kronSCALE and roadN, with commas (default: %(default)s)")
    parser.add_argument("--apps", default=ALL, help="with commas (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="cpu or gpu (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="commands after the first (default: 3)")
    parser.add_argument(
        "--warm-up", metavar="APPS", help="also the first command after cusp warm-up of all, or of some"
    )
    parser.add_argument("--libraries", default="", help="scipy,networkit: those of them that are installed")
    parser.add_argument("--gapbs", type=absolute, help="a checkout of the GAP benchmark suite")
    add_file_options(parser, "start", show=True)


def run(options: argparse.Namespace) -> None:
    """Measure, keep the rows, print the table; or show what is kept."""
    if not options.show:
        measure(options)
    rows = kept(options.rows, lambda row: tuple(row[key] for key in ("program", "graph", "app", "device")))
    figures = ("first", "warmed", "again", *PARTS)
    lines = [["", "device", "program", *figures]]
    for row in rows:
        shown = [f"{row[key]:.3g}" if key in row else "" for key in figures]
        lines.append([f"{row['graph']} {row['app']}", row["device"], row["program"], *shown])
    print(table(lines))


def measure(options: argparse.Namespace) -> None:
    """Keep a row for each program that runs an app on a graph, and of the warm-up."""
    with tempfile.TemporaryDirectory() as folder:
        warm = caches_in(folder) if options.warm_up else None
        if warm:
            chosen = [] if options.warm_up == "all" else ["--apps", options.warm_up]
            command = [sys.executable, "-m", "apps.warm_up", "--device", options.device, *chosen]
            row = {"program": "ours", "graph": "", "app": "warm-up", "device": options.device, "commit": commit()}
            keep([row | {"first": seconds_of(command, warm), "again": seconds_of(command, warm)}], options.rows)
        for name in options.graphs.split(","):
            graph = graph_named(options.data, name)
            source = sources_of(graph, 1)[0]
            for app in options.apps.split(","):
                keep([ours(graph, app, source, options, warm)], options.rows)
                keep(others(graph, app, source, options), options.rows)


def caches_in(folder: str) -> dict[str, str]:
    """Variables that keep compiled code in this folder."""
    return {cache: str(Path(folder) / cache) for cache in CACHES}


def ours(
    graph: Path, app: str, source: int, options: argparse.Namespace, warm: dict[str, str] | None = None
) -> dict[str, Any]:
    """The row of one of our apps; with ``warm`` caches, the first command with those, too."""
    name, *words = APPS.get(app, (app,))
    words += ["--source", str(source)] if app in SEARCHES else []
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        command = [sys.executable, "-m", f"apps.{name}", graph, "--device", options.device, *words, "--rows", rows]
        times = [seconds_of(command, caches_in(folder)) for _ in range(options.repeat + 1)]
        warmed = {"warmed": seconds_of(command, warm)} if warm else {}
        second = read_rows(rows)[1]
    again = {"startup": second["startup_seconds"], "partition": second["partition_seconds"]}
    again |= {"prepare": second["phases"]["prepare"], "run": second["seconds"]}
    row = {"program": "ours", "graph": graph.stem, "app": app, "device": options.device, "commit": second["commit"]}
    return row | {"first": times[0], "again": statistics.median(times[1:])} | warmed | again


def others(graph: Path, app: str, source: int, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rows of other programs that know the algorithm."""
    commands: dict[str, list[Any]] = {}
    if options.gapbs and app in SUITE:
        program, *words = SUITE[app]
        words += ["-r", str(source)] if app in SEARCHES else []
        file = serialized(graph, app == "sssp")
        commands["gapbs"] = [built(options.gapbs, program), "-f", file, "-n", "1", *words]
    for library in options.libraries.split(","):
        if (library, app) in LIBRARIES:
            commands[library] = [sys.executable, "-c", LIBRARIES[library, app].format(path=str(graph), source=source)]
    for name, command in commands.items():
        times = [seconds_of(command, {}) for _ in range(options.repeat + 1)]
        row = {"program": name, "graph": graph.stem, "app": app, "device": "cpu"}
        yield row | {"first": times[0], "again": statistics.median(times[1:])}
