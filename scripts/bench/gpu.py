"""Algorithms on one GPU: device-event times after a warm-up, of BFS and SSSP from 16 sources, of others in 5 runs.

Answers of BFS and SSSP are checked on the device; with ``--verify`` every app's verifier checks the others on the CPU.
"""

import argparse
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from scripts.bench.common import ROWS, keep

GOALS = {  # ms on an H200; the best peers there: GSWITCH 1.58, 0.56, 151; cuGraph SSSP 74, triangles 664; ECL-CC 27.9
    ("bfs", "kron24"): 1.5, ("bfs", "kron22"): 0.5, ("sssp", "kron24"): 15.0, ("bfs", "road4898"): 120.0,
    ("cc", "kron24"): 3.0, ("triangles", "kron22"): 300.0,
}  # fmt: skip
RUNS = 5  # of an algorithm without sources


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m scripts.bench gpu``."""
    parser.add_argument("--graphs", default="kron22,kron24,road4898", help="kronSCALE and roadSIDE, with commas")
    parser.add_argument("--apps", default="bfs,sssp", help="algorithms, with commas (default: bfs,sssp)")
    parser.add_argument("--set", default="", metavar="NAME=VALUE,...", help="options of the other algorithms")
    parser.add_argument("--verify", action="store_true", help="check their answers on the CPU")
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--deltas", default="", help="widths of SSSP's buckets to compare (default: the app's own)")
    parser.add_argument("--directions", default="auto", help="of BFS, with commas")
    parser.add_argument("--rows", type=Path, default=ROWS / "gpu.jsonl", help="rows are appended here")


def run(options: argparse.Namespace) -> None:
    """Measure, keep the rows, print the table."""
    head = f"{'app':<11} {'graph':<10} {'variant':<20} {'ms':>9} {'best':>9} {'rounds':>6}"
    print(f"{head} {'G edges/s':>10} {'goal ms':>8}")
    for name in options.graphs.split(","):
        for row in measure_graph(name, options):
            keep([row], options.rows)
            goal = GOALS.get((row["app"], row["graph"]))
            met = f"{goal:>8} {'met' if row['ms'] <= goal else 'MISSED'}" if goal else ""
            rate = row["edges"] / row["ms"] / 1e6
            print(
                f"{row['app']:<11} {name:<10} {row['variant']:<20} {row['ms']:>9.3f} {row['best_ms']:>9.3f} "
                f"{np.mean(row['rounds']):>6.1f} {rate:>10.1f} {met}", flush=True,
            )  # fmt: skip


def measure_graph(name: str, options: argparse.Namespace) -> Iterator[dict]:
    """Rows of one graph."""
    import cupy as cp
    from mpi4py import MPI

    from apps.bfs import bfs, prepare
    from apps.harness import commit, scramble
    from apps.shared.lengths import measure
    from apps.sssp import sssp
    from cusp.runtime.devices import to_host
    from gluon.plan import make_plan
    from gluon.sync import Sync
    from scripts.bench import gpu_graphs

    size = int(name.lstrip("kronad"))
    is_road = name.startswith("road")
    keys = gpu_graphs.lattice(size) if is_road else gpu_graphs.kronecker(size)
    part = gpu_graphs.partition_of(keys, size * size if is_road else 1 << size)
    del keys
    cp.get_default_memory_pool().free_all_blocks()
    comm = MPI.COMM_SELF
    sync = Sync(make_plan(part, comm), comm)
    candidates = to_host(part.gids[part.degrees > 0])
    sources = candidates[np.argsort(scramble(candidates, 1))[: options.sources]].tolist()
    base = {"graph": name, "nodes": part.num_nodes, "edges": part.num_edges, "gpu": gpu_name(), "commit": commit()}
    apps = options.apps.split(",")
    for app in apps:
        if app not in ("bfs", "sssp"):
            yield base | measure_app(app, part, sync, options)
    prepared = prepare(part, sync) if "bfs" in apps else None
    for direction in options.directions.split(",") if "bfs" in apps else ():

        def search(source: int, direction: str = direction) -> Any:
            return bfs(part, sync, source, direction, prepared=prepared)

        check_hops(part, sources[0], search(sources[0]))
        yield base | {"app": "bfs", "variant": direction} | time_all(search, sources)
    for delta in options.deltas.split(",") if "sssp" in apps else ():
        lengths = measure(part, sync, float(delta) if delta else None)

        def paths(source: int, lengths: Any = lengths) -> Any:
            return sssp(part, sync, source, lengths)

        check_distances(part, sources[0], paths(sources[0]))
        yield base | {"app": "sssp", "variant": f"delta {lengths.delta:g}"} | time_all(paths, sources)


def measure_app(name: str, part: Any, sync: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Row of an algorithm that needs no source: five runs after a warm-up; what it prepares is timed once."""
    from apps.harness import make_verifier, wait
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
        answer = app.run(part, sync, None, prepared, chosen).on_host()
        make_verifier(app, part, sync.plan, prepared, chosen, sync.comm)(None, answer)
    answers: list[Any] = []

    def call(_: int) -> Any:
        answers[:] = [app.run(part, sync, None, prepared, chosen)]
        return answers[0]

    measured = time_all(call, [0] * RUNS)
    variant = ",".join(f"{key}={value}" for key, value in wanted.items()) or "default"
    figures = answers[0].on_host().figures
    return {
        "app": name,
        "variant": variant,
        "prepare_ms": seconds * 1e3,
        **measured,
        "verified": options.verify,
        **figures,
    }


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


def check_hops(part: Any, source: int, answer: Any) -> None:
    """Every edge spans at most one level and every reached node but the source has a neighbour one level closer."""
    _check(part, source, answer.labels["hops"], None)


def check_distances(part: Any, source: int, answer: Any) -> None:
    """No edge is a short cut, and every reached node but the source has a tight one."""
    _check(part, source, answer.labels["distance"], part.weights)


def _check(part: Any, source: int, values: Any, weights: Any) -> None:
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
