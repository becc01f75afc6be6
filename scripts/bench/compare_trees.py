"""This checkout, compared with others and with the GAP benchmark suite: the same partitionings and algorithms, in turn.

python -m scripts.bench compare-trees ../main
python -m scripts.bench compare-trees ../main --graphs kron22,road4 --ranks 1 --threads 1,16 --apps bfs,cc --repeat 9
python -m scripts.bench compare-trees --graphs kron22,road4 --ranks 1 --threads 4,16 --gapbs ~/gapbs

Each program runs once in each checkout to compile, then --repeat times; the checkouts take turns to be first. Medians
in milliseconds, of partitioning without the plan for the sync, and of the mean over the sources of a search. kronSCALE
is as in the other benchmarks; roadN is a lattice with gaps of N million nodes. The suite (github.com/sbeamer/gapbs) is
compiled here, and starts from the same sources; it has no k-core.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cusp.apps.run.output import commit
from scripts.bench.shared.graphs import graph_named
from scripts.bench.shared.rows import ROOT, absolute, add_file_options, call, keep, rows_in, table, written

PAGERANK = ("--unweighted", "--iterations", "8", "--tolerance", "0", "--precision")
APPS: dict[str, tuple[str, ...]] = {  # what the table calls an app -> its words
    "bfs": ("bfs",), "sssp": ("sssp",), "cc": ("cc",), "kcore": ("kcore",), "triangles": ("triangles",),
    "pagerank32": ("pagerank", *PAGERANK, "float32"), "pagerank64": ("pagerank", *PAGERANK, "float64"),
    "betweenness": ("betweenness", "--sources", "4"),
}  # fmt: skip
SEARCHES = ("bfs", "sssp")
SUITE: dict[str, tuple[str, ...]] = {  # what the table calls an app -> the program of the suite, and its words
    "bfs": ("bfs",), "sssp": ("sssp",), "cc": ("cc",), "triangles": ("tc",),
    "pagerank": ("pr", "-i", "8", "-t", "0"), "pagerank32": ("pr", "-i", "8", "-t", "0"),
}  # fmt: skip
DELTAS = {"kron": "2", "road": "128"}  # of the suite, whose own default is 1


class Run(NamedTuple):
    """One of ``APPS``, another app, or ``partition``; and how it runs. ``threads`` are those of all ranks together."""

    graph: str
    name: str
    policy: str
    ranks: int
    threads: int


def add_options(parser: argparse.ArgumentParser) -> None:
    """The other checkouts, and what to run in all."""
    parser.add_argument("others", nargs="*", type=absolute, help="folders of other checkouts")
    parser.add_argument("--graphs", default="kron20", help="kronSCALE and roadN, with commas (default: %(default)s)")
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks (default: %(default)s)")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument(
        "--threads", default=f"{max(cores, 2)}", help="of all ranks together, with commas (default: cores)"
    )
    parser.add_argument("--policies", default="oec,cvc,fec", help="to partition by (default: %(default)s)")
    parser.add_argument("--apps", default="bfs,sssp", help=f"such as {','.join(APPS)} (default: %(default)s)")
    parser.add_argument("--sources", type=int, default=16, help="of each search (default: 16)")
    parser.add_argument("--repeat", type=int, default=5, help="runs in each checkout (default: 5)")
    parser.add_argument("--device", default="cpu", help="cpu or gpu (default: cpu)")
    parser.add_argument("--gapbs", type=absolute, help="a checkout of the GAP benchmark suite")
    add_file_options(parser, "compare-trees")


def run(options: argparse.Namespace) -> None:
    """Measure, keep a row per run, print the table."""
    trees = [ROOT, *options.others]
    runs = runs_of(options)
    times: dict[tuple[Run, str], list[float]] = defaultdict(list)
    for trial, one in product(range(-1, options.repeat), runs):
        graph = graph_named(options.data, one.graph)
        found = {tree: measure(tree, graph, one, options) for tree in (trees if trial % 2 else trees[::-1])}
        if options.gapbs and one.ranks == 1 and one.name in SUITE:
            found[options.gapbs] = gapbs_seconds(options.gapbs, graph, one, options.sources)
        for tree, seconds in found.items() if trial >= 0 else ():
            times[one, str(tree)].append(seconds)
            row = {"app": one.name, "trial": trial, "seconds": seconds, "tree": tree.name, "commit": commit(str(tree))}
            keep([one._asdict() | row], options.rows)
    heads = [*map(str, trees), *([str(options.gapbs)] if options.gapbs else [])]
    lines = [["", "ranks", "threads", *(Path(head).name for head in heads), "ratio"]]
    for one in runs:
        cells = [statistics.median(times[one, head]) * 1e3 if (one, head) in times else None for head in heads]
        ratio = f"{cells[0] / cells[1]:.3f}" if len(cells) > 1 and cells[0] and cells[1] else ""
        shown = ["" if cell is None else f"{cell:.1f}" for cell in cells]
        lines.append([f"{one.graph} {one.name} {one.policy}", str(one.ranks), str(one.threads), *shown, ratio])
    print(f"\non the {options.device}\n\n{table(lines)}")


def runs_of(options: argparse.Namespace) -> list[Run]:
    """What is measured, in the order of the table."""
    what = [("partition", policy) for policy in options.policies.split(",") if policy]
    what += [(app, "oec") for app in options.apps.split(",") if app]
    graphs, ranks, threads = options.graphs.split(","), options.ranks.split(","), options.threads.split(",")
    return [
        Run(graph, *which, int(number), int(cores))
        for graph in graphs for which in what for number in ranks for cores in threads if int(number) <= int(cores)
    ]  # fmt: skip


def measure(tree: Path, graph: Path, one: Run, options: argparse.Namespace) -> float:
    """Seconds of one run in one checkout."""
    chosen = ["--policy", one.policy, "--device", options.device, "--threads", str(max(one.threads // one.ranks, 1))]
    if one.name != "partition":
        chosen += ["--sources", str(options.sources)] if one.name in SEARCHES else []
        app, *more = APPS.get(one.name, (one.name,))
        rows = rows_in(written("--rows", call, one.ranks, f"apps.{app}", graph, *more, *chosen, tree=tree))
        return statistics.mean(row["seconds"] for row in rows)
    return float(json.loads(written("--json", call, one.ranks, "cusp", graph, *chosen, tree=tree))["partition_seconds"])


def gapbs_seconds(gapbs: Path, path: Path, one: Run, sources: int) -> float:
    """The same of the suite, from the same sources."""
    name, *words = SUITE[one.name]
    program, graph = built(gapbs, name), serialized(path, name == "sssp")
    starts = [("-r", str(source)) for source in sources_of(path, sources)] if one.name in SEARCHES else [()]
    words += ["-d", DELTAS[path.stem[:4]]] if name == "sssp" else []
    variables, times = {**os.environ, "OMP_NUM_THREADS": str(one.threads)}, []
    for start in starts:
        command = (program, "-f", graph, "-n", "2", *start, *words)
        output = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
        times.append(float(re.findall(r"Trial Time: +([0-9.]+)", output)[-1]))
    return statistics.mean(times)


def built(gapbs: Path, name: str) -> Path:
    """A program of the suite, compiled once."""
    if not (gapbs / name).exists():
        flags = ("-std=c++11", "-O3", "-march=native", "-fopenmp", "-w")
        subprocess.run(("g++", *flags, f"src/{name}.cc", "-o", name), cwd=gapbs, check=True)
    return gapbs / name


def sources_of(path: Path, number: int) -> list[int]:
    """The nodes from which the apps start."""
    import h5py

    from cusp.apps.shared.splitmix64 import splitmix64

    with h5py.File(path) as file:
        candidates = np.flatnonzero(np.diff(file["indptr"][:]))
    found: list[int] = candidates[np.argsort(splitmix64(candidates, 1), kind="stable")[:number]].tolist()
    return found


def serialized(path: Path, weighted: bool) -> Path:
    """The graph, in both directions, in a file of the suite; made once."""
    import h5py

    target = path.with_suffix(".wsg" if weighted else ".sg")
    if not target.exists():
        with h5py.File(path) as file, target.open("wb") as out:
            offsets, targets = file["indptr"][:].astype(np.int64), file["indices"][:].astype(np.int32)
            out.write(b"\0" + np.array([targets.size, offsets.size - 1], np.int64).tobytes())
            offsets.tofile(out)
            (np.stack([targets, file["data"][:].astype(np.int32)], axis=1) if weighted else targets).tofile(out)
    return target
