"""Algorithms by number of threads, of this checkout and of others, beside the GAP benchmark suite on the same graphs.

python -m scripts.bench threads --graphs kron22,road4 --gapbs ~/gapbs --others ../before --threads 1,4,16

kronSCALE is as in the other benchmarks; roadN is a lattice with gaps of N million nodes. Times are medians of trials,
and of these over the sources. The suite (github.com/sbeamer/gapbs) is compiled here; it has no k-core.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from scripts.bench.shared.graphs import kronecker
from scripts.bench.shared.rows import ROOT, absolute, add_file_options, call, keep, table

SOURCES, TRIALS = 4, 2
DELTAS = {"kron": "2", "road": "128"}  # of the suite, whose own default is 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """Graphs, checkouts, numbers of threads."""
    parser.add_argument("--graphs", default="kron20,road2", help="with commas (default: %(default)s)")
    parser.add_argument("--apps", default="bfs,sssp,cc,kcore", help="with commas (default: %(default)s)")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--threads", default=f"1,{cores}", help="with commas (default: %(default)s)")
    parser.add_argument("--gapbs", type=absolute, help="a checkout of the GAP benchmark suite")
    parser.add_argument("--others", default="", help="other checkouts of this repository, with commas")
    add_file_options(parser, "threads")


def run(options: argparse.Namespace) -> None:
    """Measure, keep the rows, print the table."""
    trees = [absolute(name) for name in options.others.split(",") if name] + [ROOT]
    apps, numbers = options.apps.split(","), [int(number) for number in options.threads.split(",")]
    found: dict[tuple[str, str, str, int], float] = {}
    for name in options.graphs.split(","):
        path = lattice(options.data, name) if name.startswith("road") else kronecker(options.data, int(name[4:]))
        for number in reversed(numbers):  # so that code is compiled by all cores
            rows = [(tree.name, row) for tree in trees for row in rows_of(tree, path, options.apps, number)]
            if options.gapbs:
                rows += [("gapbs", row) for row in gapbs_rows(options.gapbs, path, apps, number)]
            keep(
                [row | {"benchmark": "threads", "system": tree, "threads": number} for tree, row in rows], options.rows
            )
            for tree, row in rows:
                found[name, row["app"], tree, number] = row["ms"]
                print(f"{name} {row['app']} {tree} {number} threads: {row['ms']:.1f} ms", flush=True)
    lines = [["ms", *map(str, numbers)]]
    for key in dict.fromkeys(key[:3] for key in found):
        lines.append([" ".join(key), *(f"{found[*key, number]:.1f}" for number in numbers)])
    print(table(lines))


def lattice(data: Path, name: str) -> Path:
    """A lattice with gaps; made once."""
    data.mkdir(parents=True, exist_ok=True)
    path, side = data / f"{name}.h5", round(float(name[4:]) ** 0.5 * 1000)
    if not path.exists():
        call(1, "cusp.commands.generate", "road", "--width", str(side), "--height", str(side), "--weights", "1:255",
             "--output", path)  # fmt: skip
    return path


def rows_of(tree: Path, path: Path, apps: str, threads: int) -> list[dict[str, Any]]:
    """What scripts/bench/algorithms.py of a checkout measures."""
    rows = path.parent / "algorithms.jsonl"
    rows.unlink(missing_ok=True)
    environment = {**os.environ, "CUSP_THREADS": str(threads)}
    command = (sys.executable, "-m", "scripts.bench.algorithms", path, "--device", "cpu", "--apps", apps,
               "--rows", rows, "--sources", str(SOURCES), "--trials", str(TRIALS))  # fmt: skip
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{tree.name} failed: {done.stderr[-2000:]}")
    return [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []


def gapbs_rows(gapbs: Path, path: Path, apps: list[str], threads: int) -> list[dict[str, Any]]:
    """The same from the suite, from the same sources."""
    rows = []
    for app in apps:
        if not (gapbs / "src" / f"{app}.cc").exists():
            continue
        program, graph = gapbs / app, serialized(path, app == "sssp")
        if not program.exists():
            flags = ("-std=c++11", "-O3", "-march=native", "-fopenmp", "-w")
            subprocess.run(("g++", *flags, f"src/{app}.cc", "-o", app), cwd=gapbs, check=True)
        starts = [("-r", str(source)) for source in sources_of(path)] if app in ("bfs", "sssp") else [()]
        delta = ("-d", DELTAS[path.stem[:4]]) if app == "sssp" else ()
        times = []
        for start in starts:
            command = (program, "-f", graph, "-n", str(TRIALS + 1), *start, *delta)
            output = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": str(threads)}, capture_output=True,
                                    text=True, check=True).stdout  # fmt: skip
            trials = [float(text) * 1e3 for text in re.findall(r"Trial Time: +([0-9.]+)", output)]
            times.append(statistics.median(trials[1:]))
        rows.append({"app": app, "graph": path.stem, "ms": statistics.median(times), "all_ms": times})
    return rows


def sources_of(path: Path) -> list[int]:
    """The nodes from which scripts/bench/algorithms.py starts."""
    import h5py

    from cusp.apps.shared.splitmix64 import splitmix64

    with h5py.File(path) as file:
        candidates = np.flatnonzero(np.diff(file["indptr"][:]))
    found: list[int] = candidates[np.argsort(splitmix64(candidates, 1), kind="stable")[:SOURCES]].tolist()
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
