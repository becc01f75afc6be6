"""Algorithms on one GPU: device-event times after a warm-up, of searches from 16 sources, of others in 5 runs.

python -m scripts.bench gpu --apps bfs,sssp,cc
python -m scripts.bench gpu --apps bfs --set direction=pull,parents=True
python -m scripts.bench gpu --suite

The graphs are made on the GPU. ``operators`` are searches by edge operators, as users write them. The last answer of a
search is checked; with ``--verify`` those of other algorithms are, too, some of them on the CPU.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scripts.bench.shared.rows import ROWS, gpu_name, keep, settings_of

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
    parser.add_argument("--set", default="", metavar="NAME=VALUE,...", help="options of the algorithms that know them")
    parser.add_argument("--verify", action="store_true", help="check the answers of algorithms without sources too")
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--rows", type=Path, default=ROWS / "gpu.jsonl", help="rows are appended here")


def run(options: argparse.Namespace) -> None:
    """Measure; keep and print each row when it is there."""
    print(LINE.format("app", "graph", "variant", "ms", "best", "rounds", "G edges/s"))
    for graphs, apps, settings in SUITE if options.suite else [(options.graphs, options.apps, options.set)]:
        for name in graphs.split(","):
            for row in measure_graph(name, apps.split(","), settings, options):
                keep([row], options.rows)
                figures = (f"{row['ms']:.3f}", f"{row['best_ms']:.3f}", f"{np.mean(row['rounds']):.1f}")
                speed = f"{row['edges'] / row['ms'] / 1e6:.1f}"
                print(LINE.format(row["app"], name, row["variant"], *figures, speed), flush=True)


def measure_graph(name: str, apps: list[str], settings: str, options: argparse.Namespace) -> Iterator[dict]:
    """Rows of one graph."""
    from cusp.apps.harness import commit
    from cusp.apps.run.sources import draw_sources
    from cusp.runtime.mpi import MPI
    from gluon.plan import make_plan
    from gluon.sync import Sync

    part = make_part(name)
    sync = Sync(make_plan(part, MPI.COMM_SELF), MPI.COMM_SELF)
    sources = draw_sources(part, MPI.COMM_SELF, options.sources, 1)
    base = {"graph": name, "nodes": part.num_nodes, "edges": part.num_edges, "gpu": gpu_name(), "commit": commit()}
    for app in apps:
        rows = operators(part, sync, sources) if app == "operators" else [
            measure_app(app, part, sync, sources, settings, options.verify)]  # fmt: skip
        for row in rows:
            yield base | row


def make_part(name: str) -> Any:
    """The partition of one rank of a graph that is made now."""
    import cupy as cp

    from scripts.bench.shared import gpu_graphs

    part = gpu_graphs.partition_of(*gpu_graphs.keys_of(name))
    cp.get_default_memory_pool().free_all_blocks()
    return part


def measure_app(name: str, part: Any, sync: Any, sources: list[int], settings: str, verify: bool) -> dict[str, Any]:
    """The row of an algorithm; what it prepares is timed once, and the last answer is checked."""
    from cusp.apps.harness import wait
    from cusp.apps.library import app_of
    from cusp.apps.run.keywords import Keywords

    app, wanted = app_of(name), settings_of(name, settings)
    chosen = Keywords(name, app.add_options).read(wanted)
    began = time.perf_counter()
    prepared = app.prepare(part, sync, chosen)
    wait(part)
    seconds = time.perf_counter() - began
    starts: list[Any] = sources if app.needs_source else [None] * RUNS
    measured, answer = time_all(lambda source: app.run(part, sync, source, prepared, chosen), starts)
    checked = verify or app.needs_source
    if checked:
        app.check(part, sync, starts[-1], answer, prepared, chosen)
    variant = ",".join(f"{key}={value}" for key, value in wanted.items()) or "default"
    row = {"app": name, "variant": variant, "prepare_ms": seconds * 1e3, **measured, "verified": checked}
    return row | answer.on_host().figures


def operators(part: Any, sync: Any, sources: list[int]) -> Iterator[dict[str, Any]]:
    """Rows of edge operators until nothing changes: shortest paths, hops and widest paths."""
    from cusp.apps.edge_operator import EdgeOperator
    from cusp.apps.harness import Answer
    from cusp.apps.verify.paths import verify_distances, verify_hops, verify_widths
    from gluon.label import Label
    from gluon.reduction import MAX, MIN

    def search(kind: tuple[Any, ...], source: int) -> Answer:
        operator, dtype, worst, best, reduction = kind
        value = Label(part, dtype, worst, reduction)
        value.write(source, best)
        rounds = operator.until_quiet(part, sync, value=value)
        return Answer({"value": value.masters()}, worst, rounds)

    paths, hop = EdgeOperator("src.value + weight", priority="value"), EdgeOperator("src.value + 1", priority="0")
    widen, limits = EdgeOperator("min(src.value, weight)", priority="-value"), np.iinfo(np.int64)
    kinds: dict[str, tuple[Callable[..., None], tuple[Any, ...]]] = {
        "src.value + weight, int64": (verify_distances, (paths, np.int64, 2**63 - 1, 0, MIN)),
        "src.value + weight, int32": (verify_distances, (paths, np.int32, 2**31 - 1, 0, MIN)),
        "src.value + 1, int32": (verify_hops, (hop, np.int32, 2**31 - 1, 0, MIN)),
        "min(src.value, weight), int64": (verify_widths, (widen, np.int64, limits.min, limits.max, MAX)),
    }
    for variant, (verify, kind) in kinds.items():
        measured, answer = time_all(partial(search, kind), sources)
        values = answer.labels["value"]
        if kind[-1] is MIN:
            values[~answer.reached] = -1
        verify(part, sync, sources[-1], values)
        yield {"app": "operators", "variant": variant, **measured, "verified": True}


def time_all(call: Callable[[Any], Any], sources: list[Any]) -> tuple[dict[str, Any], Any]:
    """Median and best of one run from each source, by device events, and the last answer; the first is run before."""
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
    return {"ms": float(np.median(times)), "best_ms": min(times), "all_ms": times, "rounds": rounds}, answer
