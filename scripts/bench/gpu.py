"""Algorithms on one GPU: device-event times after a warm-up, of BFS and SSSP from 16 sources, of others in 5 runs.

python -m scripts.bench gpu --apps bfs,sssp,cc
python -m scripts.bench gpu --suite

The graphs are made on the GPU. Answers of BFS and SSSP are checked there; with ``--verify`` every app's verifier checks
the others on the CPU.
"""

import argparse
import subprocess
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scripts.bench.shared.rows import ROWS, keep

RUNS = 5  # of an algorithm without sources
RANKS = "iterations=18,tolerance=0,precision=float"
SUITE = [  # graphs, apps, options
    ("kron24", "cc,kcore,triangles,bfs,sssp", ""), ("kron24", "pagerank", RANKS + "32"),
    ("kron24", "pagerank", RANKS + "64"), ("road4898", "cc,bfs,sssp", ""), ("kron26", "bfs,sssp", ""),
    ("kron22", "communities", ""),
]  # fmt: skip
LINE = "{:<11} {:<10} {:<49} {:>9} {:>9} {:>6} {:>10}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m scripts.bench gpu``."""
    parser.add_argument(
        "--graphs", default="kron22,kron24,road4898", help="kronSCALE, roadSIDE and ringNODES, with commas"
    )
    parser.add_argument("--apps", default="bfs,sssp", help="algorithms, with commas (default: bfs,sssp)")
    parser.add_argument("--suite", action="store_true", help="instead: every algorithm on the graphs that suit it")
    parser.add_argument("--set", default="", metavar="NAME=VALUE,...", help="options of the other algorithms")
    parser.add_argument("--verify", action="store_true", help="check their answers on the CPU")
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--deltas", default="", help="widths of SSSP's buckets to compare (default: the app's own)")
    parser.add_argument("--directions", default="auto", help="of BFS, with commas")
    parser.add_argument("--parents", action="store_true", help="BFS finds parents, too")
    parser.add_argument("--rows", type=Path, default=ROWS / "gpu.jsonl", help="rows are appended here")


def run(options: argparse.Namespace) -> None:
    """Measure; keep and print each row when it is there."""
    print(LINE.format("app", "graph", "variant", "ms", "best", "rounds", "G edges/s"))
    chosen = SUITE if options.suite else [(options.graphs, options.apps, options.set)]
    for graphs, apps, settings in chosen:
        for name in graphs.split(","):
            for row in measure_graph(name, Namespace(**vars(options) | {"apps": apps, "set": settings})):
                keep([row], options.rows)
                print(line_of(name, row), flush=True)


def line_of(name: str, row: dict[str, Any]) -> str:
    """One row as a line of the table."""
    figures = (f"{row['ms']:.3f}", f"{row['best_ms']:.3f}", f"{np.mean(row['rounds']):.1f}")
    return LINE.format(row["app"], name, row["variant"], *figures, f"{row['edges'] / row['ms'] / 1e6:.1f}")


def measure_graph(name: str, options: argparse.Namespace) -> Iterator[dict]:
    """Rows of one graph."""
    from mpi4py import MPI

    from apps.harness import commit
    from apps.shared.splitmix64 import splitmix64
    from cusp.runtime.devices import to_host
    from gluon.plan import make_plan
    from gluon.sync import Sync

    part = make_part(name)
    sync = Sync(make_plan(part, MPI.COMM_SELF), MPI.COMM_SELF)
    candidates = to_host(part.gids[part.degrees > 0])
    sources = candidates[np.argsort(splitmix64(candidates, 1))[: options.sources]].tolist()
    base = {"graph": name, "nodes": part.num_nodes, "edges": part.num_edges, "gpu": gpu_name(), "commit": commit()}
    apps = options.apps.split(",")
    for app in apps:
        if app not in ("bfs", "sssp"):
            yield base | measure_app(app, part, sync, options)
    for app, variants in (("bfs", searches), ("sssp", paths)):
        for variant, label, weights, call in variants(part, sync, options) if app in apps else ():
            check(part, sources[0], call(sources[0]).labels[label], weights)
            yield base | {"app": app, "variant": variant} | time_all(call, sources)


def make_part(name: str) -> Any:
    """The partition of one rank of a graph that is made now."""
    import cupy as cp

    from scripts.bench.shared import gpu_graphs

    part = gpu_graphs.partition_of(*gpu_graphs.keys_of(name))
    cp.get_default_memory_pool().free_all_blocks()
    return part


def searches(part: Any, sync: Any, options: argparse.Namespace) -> Iterator[tuple[str, str, Any, Callable]]:
    """BFS in each direction: its name, label, weights of the edges, and a function (source) -> answer."""
    from apps.bfs import bfs, prepare

    prepared = prepare(part, sync)
    for direction in options.directions.split(","):
        search = partial(bfs, part, sync, direction=direction, prepared=prepared)
        yield direction, "hops", None, search
        if options.parents:
            yield f"{direction}, parents", "hops", None, partial(search, parents=True)


def paths(part: Any, sync: Any, options: argparse.Namespace) -> Iterator[tuple[str, str, Any, Callable]]:
    """SSSP with each width of its buckets, as :func:`searches`."""
    from apps.shared.lengths import measure
    from apps.sssp import sssp

    for delta in options.deltas.split(","):
        lengths = measure(part, sync, float(delta) if delta else None)
        yield f"delta {lengths.delta:g}", "distance", part.weights, partial(sssp, part, sync, lengths=lengths)


def measure_app(name: str, part: Any, sync: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Row of an algorithm that needs no source: five runs after a warm-up; what it prepares is timed once."""
    from apps.harness import wait
    from apps.library import app_of
    from apps.run.keywords import Keywords

    app = app_of(name)
    parser = Keywords(name, app.add_options)
    known = {action.dest for action in parser.actions}
    pairs = (pair.partition("=") for pair in options.set.split(",") if pair)
    wanted = {key: value for key, _, value in pairs if key in known}
    chosen = parser.read(wanted)
    began = time.perf_counter()
    prepared = app.prepare(part, sync, chosen)
    wait(part)
    seconds = time.perf_counter() - began
    if options.verify:
        answer = app.run(part, sync, None, prepared, chosen)
        app.check(part, sync, None, answer, prepared, chosen)
    answers: list[Any] = []

    def call(_: int) -> Any:
        answers[:] = [app.run(part, sync, None, prepared, chosen)]
        return answers[0]

    measured = time_all(call, [0] * RUNS)
    variant = ",".join(f"{key}={value}" for key, value in wanted.items()) or "default"
    row = {"app": name, "variant": variant, "prepare_ms": seconds * 1e3, **measured, "verified": options.verify}
    return row | answers[0].on_host().figures


def time_all(call: Callable[[int], Any], sources: list[int]) -> dict[str, Any]:
    """Median and best of one run from each source, by device events; the first source is the warm-up too."""
    import cupy as cp

    times, rounds = [], []
    call(sources[0])
    for source in sources:
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        answer = call(source)
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(begin, end))
        rounds.append(int(answer.rounds))
    return {"ms": float(np.median(times)), "best_ms": min(times), "all_ms": times, "rounds": rounds}


def check(part: Any, source: int, values: Any, weights: Any) -> None:
    """Exit unless no edge is a short cut, and every reached node but the source has a tight one.

    ``weights`` None stands for edges of length 1.
    """
    import cupy as cp

    values = values.astype(cp.int64)
    tight = cp.zeros(part.num_proxies, cp.bool_)
    step = 1 << 27
    for first in range(0, part.num_edges, step):
        edges = slice(first, min(first + step, part.num_edges))
        rows = cp.searchsorted(part.offsets, cp.arange(edges.start, edges.stop), side="right") - 1
        near, far = values[rows], values[part.targets[edges]]
        length = 1 if weights is None else weights[edges].astype(cp.int64)
        if bool(((near >= 0) & ((far < 0) | (far > near + length))).any()):
            raise SystemExit(f"wrong answer from node {source}: an edge is a short cut")
        tight[part.targets[edges][(near >= 0) & (far == near + length)]] = True
    wrong = (values > 0) & ~tight
    if bool(wrong.any()) or int((values == 0).sum()) != 1:
        raise SystemExit(f"wrong answer from node {source}: {int(wrong.sum())} nodes without a tight edge")


def gpu_name() -> str:
    """What the driver calls the GPU."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"
