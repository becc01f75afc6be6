"""Algorithms on one GPU: device-event times after a warm-up, of searches from 16 sources, of others in 5 runs.

python -m scripts.bench gpu --apps bfs,sssp,cc
python -m scripts.bench gpu --apps bfs --set direction=pull,parents=True
python -m scripts.bench gpu --suite

The graphs are made on the GPU. ``operators`` are searches by edge operators, as users write them. The first answer of a
search is checked; with ``--verify`` those of other algorithms are, too, some of them on the CPU.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cusp import MAX, MIN, Answer, App, EdgeOperator, Label, PartitionedGraph, load_policy
from cusp.apps.harness import commit
from cusp.apps.library import app_of
from cusp.apps.run.sources import draw_sources
from cusp.apps.verify.paths import verify_distances, verify_hops, verify_widths
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import Stopwatch
from scripts.bench.algorithms import run_app
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

    def by_events(app: App, *arguments: Any) -> tuple[Any, float]:
        answer, milliseconds = device_ms(lambda: app.run(*arguments))
        return answer, milliseconds / 1e3

    graph = PartitionedGraph(make_part(name), MPI.COMM_SELF, load_policy("oec"), None, "auto", Stopwatch())
    sources = draw_sources(graph.part, graph.comm, options.sources, 1)
    base = {"graph": name, "nodes": graph.num_nodes, "edges": graph.num_edges, "gpu": gpu_name(), "commit": commit()}
    for each in apps:
        wanted = settings_of(each, settings) if each != "operators" else {}
        variant = ",".join(f"{key}={value}" for key, value in wanted.items()) or "default"
        for what, app in operators().items() if each == "operators" else [(variant, app_of(each))]:
            trials, checked = (1, True) if app.needs_source else (RUNS, options.verify)
            row = run_app(app, graph, sources, wanted, trials, checked, by_events)
            yield base | row | {"app": each, "variant": what}


def make_part(name: str) -> Any:
    """The partition of one rank of a graph that is made now."""
    import cupy as cp

    from scripts.bench.shared import gpu_graphs

    part = gpu_graphs.partition_of(*gpu_graphs.keys_of(name))
    cp.get_default_memory_pool().free_all_blocks()
    return part


def operators() -> dict[str, App]:
    """Edge operators until nothing changes, as apps: shortest paths, hops and widest paths."""

    def search_app(verify: Callable[..., None], operator: EdgeOperator, dtype: Any, worst: int, best: int) -> App:
        reduction = MIN if best == 0 else MAX

        def search(part: Any, sync: Any, source: int, prepared: Any, options: Any) -> Answer:
            value = Label(part, dtype, worst, reduction)
            value.write(source, best)
            rounds = operator.until_quiet(part, sync, value=value)
            return Answer({"value": value.masters()}, worst, rounds)

        def check(part: Any, sync: Any, source: int, answer: Answer, prepared: Any, options: Any) -> None:
            values = answer.labels["value"].copy()
            if reduction is MIN:
                values[~answer.reached] = -1
            verify(part, sync, source, values)

        return App(repr(operator), "a search by an edge operator", run=search, verify=check, weighted=True)

    paths, hop = EdgeOperator("src.value + weight", priority="value"), EdgeOperator("src.value + 1", priority="0")
    widen, limits = EdgeOperator("min(src.value, weight)", priority="-value"), np.iinfo(np.int64)
    return {
        "src.value + weight, int64": search_app(verify_distances, paths, np.int64, 2**63 - 1, 0),
        "src.value + weight, int32": search_app(verify_distances, paths, np.int32, 2**31 - 1, 0),
        "src.value + 1, int32": search_app(verify_hops, hop, np.int32, 2**31 - 1, 0),
        "min(src.value, weight), int64": search_app(verify_widths, widen, np.int64, limits.min, limits.max),
    }


def device_ms(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and its milliseconds, by events of the device."""
    import cupy as cp

    begin, end = cp.cuda.Event(), cp.cuda.Event()
    begin.record()
    found = call()
    end.record()
    end.synchronize()
    return found, cp.cuda.get_elapsed_time(begin, end)
