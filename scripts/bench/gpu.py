"""Algorithms on one GPU: device-event times after a warm-up, of searches from 16 sources, of others in 5 runs.

python -m scripts.bench gpu --apps bfs,sssp,cc
python -m scripts.bench gpu --suite

The graphs are made on the GPU. ``operators`` are searches by edge operators, as users write them. Answers of searches
are checked there; with ``--verify`` every app's verifier checks
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
    from cusp.apps.harness import commit
    from cusp.apps.shared.splitmix64 import splitmix64
    from cusp.runtime.devices import to_host
    from cusp.runtime.mpi import MPI
    from gluon.plan import make_plan
    from gluon.sync import Sync

    part = make_part(name)
    sync = Sync(make_plan(part, MPI.COMM_SELF), MPI.COMM_SELF)
    candidates = to_host(part.gids[part.degrees > 0])
    sources = candidates[np.argsort(splitmix64(candidates, 1))[: options.sources]].tolist()
    base = {"graph": name, "nodes": part.num_nodes, "edges": part.num_edges, "gpu": gpu_name(), "commit": commit()}
    apps = options.apps.split(",")
    for app in apps:
        if app not in SEARCHES:
            yield base | measure_app(app, part, sync, options)
    for app in filter(apps.__contains__, SEARCHES):
        for variant, checked, call in SEARCHES[app](part, sync, options):
            checked(call(sources[0]), part, sources[0])
            yield base | {"app": app, "variant": variant} | time_all(call, sources)


def make_part(name: str) -> Any:
    """The partition of one rank of a graph that is made now."""
    import cupy as cp

    from scripts.bench.shared import gpu_graphs

    part = gpu_graphs.partition_of(*gpu_graphs.keys_of(name))
    cp.get_default_memory_pool().free_all_blocks()
    return part


Search = tuple[str, Callable[[Any, Any, int], None], Callable[[int], Any]]


def searches(part: Any, sync: Any, options: argparse.Namespace) -> Iterator[Search]:
    """BFS in each direction: its name, what checks an answer of a partition and a source, and (source) -> answer."""
    from cusp.apps.bfs import bfs, prepare

    prepared = prepare(part, sync)
    for direction in options.directions.split(","):
        search = partial(bfs, part, sync, direction=direction, prepared=prepared)
        yield direction, check_hops, search
        if options.parents:
            yield f"{direction}, parents", check_hops, partial(search, parents=True)


def paths(part: Any, sync: Any, options: argparse.Namespace) -> Iterator[Search]:
    """SSSP with each width of its buckets, as :func:`searches`."""
    from cusp.apps.shared.lengths import measure
    from cusp.apps.sssp import sssp

    for delta in options.deltas.split(","):
        lengths = measure(part, sync, float(delta) if delta else None)
        yield f"delta {lengths.delta:g}", check_distances, partial(sssp, part, sync, lengths=lengths)


def operators(part: Any, sync: Any, options: argparse.Namespace) -> Iterator[Search]:
    """Edge operators until nothing changes, as :func:`searches`: shortest paths, hops and widest paths."""
    from cusp.apps.edge_operator import EdgeOperator
    from cusp.apps.harness import Answer
    from gluon.label import Label
    from gluon.reduction import MAX, MIN

    def search(operator: Any, dtype: Any, worst: Any, best: Any, reduction: Any, name: str, source: int) -> Any:
        value = Label(part, dtype, worst, reduction)
        value.write(source, best)
        rounds = operator.until_quiet(part, sync, value=value)
        return Answer({name: value.masters()}, worst, rounds)

    for dtype in (np.int64, np.int32):
        far, kind = np.iinfo(dtype).max, np.dtype(dtype).name
        relax = EdgeOperator("src.value + weight", priority="value")
        yield f"src.value + weight, {kind}", check_distances, partial(search, relax, dtype, far, 0, MIN, "distance")
    hop = EdgeOperator("src.value + 1", priority="0")
    yield "src.value + 1, int32", check_hops, partial(search, hop, np.int32, 2**31 - 1, 0, MIN, "hops")
    widen, limits = EdgeOperator("min(src.value, weight)", priority="-value"), np.iinfo(np.int64)
    yield (
        "min(src.value, weight), int64",
        check_widths,
        partial(search, widen, np.int64, limits.min, limits.max, MAX, "width"),
    )


def measure_app(name: str, part: Any, sync: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Row of an algorithm that needs no source: five runs after a warm-up; what it prepares is timed once."""
    from cusp.apps.harness import wait
    from cusp.apps.library import app_of
    from cusp.apps.run.keywords import Keywords

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


def check_hops(answer: Any, part: Any, source: int) -> None:
    """Exit unless these are lengths of shortest paths along edges of length 1."""
    check(part, source, reached_or_not(answer, "hops"), None)


def check_distances(answer: Any, part: Any, source: int) -> None:
    """Exit unless these are lengths of shortest paths."""
    check(part, source, reached_or_not(answer, "distance"), part.weights)


def check_widths(answer: Any, part: Any, source: int) -> None:
    """Exit unless every width is that of an edge from a node that is as wide or wider, and none could be wider."""
    from cusp.apps.verify.paths import verify_widths
    from cusp.runtime.mpi import MPI
    from gluon.plan import make_plan
    from gluon.sync import Sync

    sync = Sync(make_plan(part, MPI.COMM_SELF), MPI.COMM_SELF)
    verify_widths(part, sync, source, answer.labels["width"])


def reached_or_not(answer: Any, label: str) -> Any:
    """Values of a label as int64, -1 where there is no path."""
    import cupy as cp

    values = answer.labels[label].astype(cp.int64)
    return cp.where(values == answer.unreached, -1, values)


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


SEARCHES = {"bfs": searches, "sssp": paths, "operators": operators}


def gpu_name() -> str:
    """What the driver calls the GPU."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"
