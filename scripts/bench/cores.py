"""How the algorithms of one rank scale with its threads, beside the GAP benchmark suite and what the memory gives.

python -m scripts.bench cores --graphs kron22,road24 --threads 1,2,4,8,16 --gapbs ~/gapbs
python -m scripts.bench cores --graphs kron20,kron21,kron22,kron23 --threads 16 --apps bfs,cc,pagerank
python -m scripts.bench cores --ranks 4,16 --other 'wasp:sssp=~/wasp/build/src/sssp-int32 -f {stem}.wsg -r {source}'

One program for each graph and number of threads partitions the graph and runs all algorithms, see algorithms; graphs
and the suite are as in compare-trees. Milliseconds; the efficiency is the time on one thread / (threads x time). A
second table has nanoseconds per edge, and the most memory that the process had taken until then. Of the memory: GB/s of
a triad a = b + s c of arrays that no cache holds (STREAM, McCalpin 1995), and millions of reads of random entries of
8 bytes. --show draws docs/pictures/cores.svg, too.
"""

import argparse
import os
import re
import statistics
import subprocess
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba as nb
import numpy as np

from scripts.bench.compare_trees import SUITE, Run, gapbs_seconds, serialized, sources_of
from scripts.bench.shared.graphs import graph_named
from scripts.bench.shared.pictures import picture
from scripts.bench.shared.rows import ROOT, absolute, add_file_options, call, keep, kept, table

PICTURE = ROOT / "docs" / "pictures" / "cores.svg"
APPS = "bfs,sssp,cc,pagerank,kcore,triangles,betweenness,scc,communities,widest"
EIGHT = "iterations=8,tolerance=0,precision=float32"  # of PageRank, as the suite is asked
ENTRIES = 1 << 27  # of 8 bytes in each array: 1 GB


def add_options(parser: argparse.ArgumentParser) -> None:
    """Graphs, threads, algorithms."""
    parser.add_argument("--graphs", default="kron20", help="kronSCALE and roadN, with commas (default: %(default)s)")
    cores = len(os.sched_getaffinity(0))
    doubled = [1 << power for power in range(cores.bit_length())]
    parser.add_argument("--threads", default=",".join(map(str, doubled)), help="with commas (default: %(default)s)")
    parser.add_argument("--ranks", default="", help="of one thread, to be measured, too; with commas")
    parser.add_argument("--apps", default=APPS, help="with commas (default: %(default)s)")
    parser.add_argument("--sources", type=int, default=3, help="of each search (default: 3)")
    parser.add_argument("--trials", type=int, default=3, help="of each run (default: 3)")
    parser.add_argument("--gapbs", type=absolute, help="a checkout of the GAP benchmark suite")
    parser.add_argument("--suite", default="bfs,sssp,cc,pagerank", help="algorithms of it (default: %(default)s)")
    other = "another program, whose last number is its seconds; a shell runs it, for each source if it names {source}. "
    other += "{graph} is our file, {stem}.sg and {stem}.wsg are those of the suite, with weights. May be repeated"
    parser.add_argument("--other", action="append", default=[], metavar="NAME:APP=COMMAND", help=other)
    add_file_options(parser, "cores", show=True)


def run(options: argparse.Namespace) -> None:
    """Measure, keep the rows, print the table; or show what is kept."""
    if not options.show:
        for threads in map(int, options.threads.split(",")):
            keep(memory_rows(threads), options.rows)
            for name in options.graphs.split(","):
                measure(name, threads, options)
        for ranks in filter(None, options.ranks.split(",")):
            for name in options.graphs.split(","):
                measure_ours(graph_named(options.data, name), int(ranks), 1, options)
    rows = kept(options.rows, key)
    print(f"{shown(rows)}\n\n{grown(rows)}")
    if options.show:
        draw(PICTURE, rows)


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row is about: the graph, the algorithm, whose it is (None: ours), ranks, and threads of each."""
    return row["graph"], row["app"], row.get("tree"), row.get("ranks", 1), row["threads"]


def measure(name: str, threads: int, options: argparse.Namespace) -> None:
    """Keep rows of all algorithms on a graph, of the suite, and of other programs."""
    graph = graph_named(options.data, name)
    measure_ours(graph, 1, threads, options)
    for app in options.suite.split(",") if options.gapbs else ():
        one = Run(graph.stem, app, "oec", 1, threads)
        row = {"tree": "gapbs", "graph": name, "app": app, "threads": threads}
        keep([row | {"ms": gapbs_seconds(options.gapbs, graph, one, options.sources) * 1e3}], options.rows)
    for text in options.other:
        tree, app, command = re.fullmatch(r"(.*?):(.*?)=(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        times = other_times(command, graph, threads, options.sources)
        row = {"tree": tree, "graph": name, "app": app, "threads": threads}
        keep([row | {"ms": statistics.median(times), "all_ms": times}], options.rows)


def measure_ours(graph: Path, ranks: int, threads: int, options: argparse.Namespace) -> None:
    """Keep rows of all algorithms on so many ranks."""
    chosen = ["--apps", options.apps, "--set", EIGHT, "--device", "cpu", "--trials", str(options.trials)]
    chosen += ["--sources", str(options.sources), "--threads", str(threads), "--rows", str(options.rows)]
    call(ranks, "scripts.bench.algorithms", graph, *chosen)


def other_times(command: str, graph: Path, threads: int, sources: int) -> list[float]:
    """Milliseconds of a program of ``--other``; of each source, if it has one."""
    for suffix in ("sg", "wsg"):
        if f"{{stem}}.{suffix}" in command:
            serialized(graph, suffix == "wsg")
    variables = os.environ | {"OMP_NUM_THREADS": str(threads), "PARLAY_NUM_THREADS": str(threads)}
    times = []
    for source in sources_of(graph, sources) if "{source}" in command else [None]:
        line = command
        for name, value in {"graph": graph, "stem": graph.with_suffix(""), "source": source}.items():
            line = line.replace(f"{{{name}}}", str(value))
        output = subprocess.run(line, shell=True, env=variables, capture_output=True, text=True, check=True).stdout
        times.append(float(re.findall(r"[0-9]+\.?[0-9]*(?:e[-+]?[0-9]+)?", output)[-1]) * 1e3)
    return times


def memory_rows(threads: int) -> list[dict[str, Any]]:
    """What so many threads get out of memory: GB/s of a triad, millions of random reads a second."""
    a, b, c = np.ones((3, ENTRIES))
    where = np.random.default_rng(1).integers(0, ENTRIES, ENTRIES // 4, np.uint32)
    triad_seconds = fastest(lambda begin, end: triad(a[begin:end], b[begin:end], c[begin:end]), a.size, threads)
    read_seconds = fastest(lambda begin, end: add_random(b, where[begin:end]), where.size, threads)
    figures = {"triad GB/s": 3 * a.nbytes / triad_seconds / 1e9, "random reads M/s": where.size / read_seconds / 1e6}
    return [{"graph": "memory", "app": what, "threads": threads, "figure": value} for what, value in figures.items()]


def fastest(work: Any, size: int, threads: int) -> float:
    """Seconds of the fastest of five runs over ``size`` entries, cut among threads, after one that is not counted."""
    bounds = [size * piece // threads for piece in range(threads + 1)]
    times = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(6):
            began = time.perf_counter()
            list(pool.map(work, bounds[:-1], bounds[1:]))
            times.append(time.perf_counter() - began)
    return min(times[1:])


@nb.njit(nogil=True)
def triad(a, b, c):  # type: ignore[no-untyped-def]
    """The loop of STREAM that reads two arrays and writes one."""
    for i in range(a.size):
        a[i] = b[i] + 3.0 * c[i]


@nb.njit(nogil=True)
def add_random(values, where):  # type: ignore[no-untyped-def]
    """The sum of entries anywhere."""
    total = 0.0
    for i in range(where.size):
        total += values[where[i]]
    return total


def shown(rows: list[dict[str, Any]]) -> str:
    """A line for each graph and algorithm: its milliseconds by threads, the efficiency, those of ranks and others."""
    found = {key(row): row.get("ms", row.get("figure")) for row in rows}
    threads = sorted({row["threads"] for row in rows})
    columns = [(None, 1, number) for number in threads]
    columns += [(None, ranks, 1) for ranks in sorted({row.get("ranks", 1) for row in rows} - {1})]
    columns += dict.fromkeys((row["tree"], 1, row["threads"]) for row in rows if row.get("tree"))
    heads = [f"{tree} {number}" if tree else f"{ranks} ranks" for tree, ranks, number in columns[len(threads) :]]
    lines = [["", *map(str, threads), "efficiency", *heads]]
    for graph, app in dict.fromkeys((row["graph"], row["app"]) for row in rows):
        times = [found.get((graph, app, *column)) for column in columns]
        first, last = times[0], times[len(threads) - 1]
        gained = 0 if not (first and last) else last / first if graph == "memory" else first / last
        efficiency = f"{gained / threads[-1] * threads[0]:.0%}" if gained and len(threads) > 1 else ""
        cells = ["" if value is None else f"{value:,.4g}" for value in times]
        lines.append([f"{graph} {app}", *cells[: len(threads)], efficiency, *cells[len(threads) :]])
    return table(lines)


def grown(rows: list[dict[str, Any]]) -> str:
    """Nanoseconds per edge of one rank with most threads, as graphs grow; and megabytes of the process until then."""
    most = max(row["threads"] for row in rows)
    ours = {key(row)[:2]: row for row in rows if row.get("edges") and key(row)[2:] == (None, 1, most)}
    graphs = sorted({graph for graph, _ in ours}, key=lambda name: (name[:4], float(name[4:])))
    lines = [[f"{most} threads: ns per edge; MB", *graphs]]
    for app in dict.fromkeys(app for _, app in ours):
        found = [ours.get((graph, app)) for graph in graphs]
        lines.append([app, *(per_edge(row) if row else "" for row in found)])
    return table(lines)


def per_edge(row: dict[str, Any]) -> str:
    """A cell of the second table."""
    memory = f"; {row['peak_mb']:,.0f}" if "peak_mb" in row else ""
    return f"{row['ms'] * 1e6 / row['edges']:.3g}{memory}"


def draw(path: Path, rows: list[dict[str, Any]]) -> None:
    """Milliseconds by threads, of graphs that ran with several numbers of them; what the suite takes is dashed."""
    threads: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        threads[row["graph"]].add(row["threads"])
    graphs = [graph for graph, found in threads.items() if graph != "memory" and len(found) > 1]
    with picture(path, "cores", 1, len(graphs), figsize=(3.8 * len(graphs), 4.2), sharey=True) as (_, axes):
        for axis, graph in zip(axes.flat, graphs):
            for place, app in enumerate(SUITE):
                for tree, style in ((None, "o-"), ("gapbs", "o--")):
                    some = sorted((r["threads"], r["ms"]) for r in rows if key(r)[:4] == (graph, app, tree, 1))
                    label = app if tree is None else None
                    axis.plot(*zip(*some, strict=True), style, color=f"C{place}", ms=3, label=label) if some else None
            axis.set(title=graph, xlabel="threads", xscale="log", yscale="log")
            ticks = sorted(threads[graph])
            axis.set_xticks(ticks, list(map(str, ticks)))
            axis.minorticks_off()
            axis.grid(alpha=0.3)
        axes[0, 0].set_ylabel("milliseconds; dashed: GAP benchmark suite")
        axes[0, -1].legend(fontsize=8)
