"""Samples of neighbours and random walks beside pyg-lib, PyG's own, on one rank; an environment needs torch and both.

python -m scripts.bench samples kron20.h5 --threads 1

CPU time counts, the least of some trials in turns, since other programs may share the machine. pyg-lib samples one
batch with one thread, so several batches are given to as many threads; a part of a loader does this in PyG.
"""

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from cusp import Sampler, Sync, partition_graph
from cusp.apps.harness import commit
from cusp.apps.shared.graphs.whole_rows import whole_rows
from cusp.apps.walks import walks
from scripts.bench.shared.rows import ROWS, keep

BATCHES, SEEDS, FAN_OUT, AT_ONCE = 64, 1024, [15, 10], 16
WALKS, LENGTH = 100_000, 40


def add_options(parser: argparse.ArgumentParser) -> None:
    """The graph, and how often."""
    parser.add_argument("graph", help="a graph file")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--rows", type=Path, default=ROWS / "samples.jsonl", help="rows are appended here")


def run(options: argparse.Namespace) -> None:
    """Measure all pairs, print and keep rows."""
    os.environ["CUSP_THREADS"] = str(options.threads)
    runs = {"cusp": ours(options.graph), "pyg-lib": theirs(options.graph, options.threads)}
    for what in "edges", "steps":
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
        counts = {name: functions[what]() for name, functions in runs.items()}  # loads what is missing
        for _ in range(options.trials):
            for name, functions in runs.items():
                began = time.perf_counter(), time.process_time()
                functions[what]()
                seconds[name].append((time.perf_counter() - began[0], time.process_time() - began[1]))
        for name, taken in seconds.items():
            wall, cpu = (min(column) for column in zip(*taken))
            row = {"library": name, "graph": Path(options.graph).stem, "threads": options.threads, "what": what}
            row |= {"count": counts[name], "cpu_s": cpu, "wall_s": wall, "commit": commit()}
            print(f"{name:<8} {counts[name] / cpu / 1e6:6.1f} M {what} per second of CPU, {wall:.3f} s")
            keep([row], options.rows)


def batches_of(nodes: np.ndarray) -> list[np.ndarray]:
    """The seeds of each batch."""
    random = np.random.default_rng(1)
    return [random.choice(nodes, SEEDS, replace=False) for _ in range(BATCHES)]


def ours(path: str) -> dict[str, Callable[[], int]]:
    """Functions that return how many edges, or steps, they have drawn."""
    graph = partition_graph(path, weights=False, device="cpu")
    sampler = Sampler(graph.part, graph.comm, FAN_OUT)
    seeds = batches_of(np.flatnonzero(graph.degrees))

    def sample() -> int:
        turns = [range(first, first + AT_ONCE) for first in range(0, BATCHES, AT_ONCE)]
        return sum(one.row.size for turn in turns for one in sampler.sample({number: seeds[number] for number in turn}))

    starts = np.random.default_rng(1).choice(np.flatnonzero(graph.degrees), WALKS)
    prepared = whole_rows(graph.part, graph.comm), starts

    def walk() -> int:
        return int(walks(Sync(graph.plan, graph.comm), prepared, LENGTH).figures["traversed_edges"])

    return {"edges": sample, "steps": walk}


def theirs(path: str, threads: int) -> dict[str, Callable[[], int]]:
    """The same of pyg-lib."""
    import torch
    from pyg_lib.sampler import neighbor_sample, random_walk

    torch.set_num_threads(threads)
    with h5py.File(path) as file:
        offsets, targets = (torch.from_numpy(file[name][:].astype(np.int64)) for name in ("indptr", "indices"))
    nodes = np.flatnonzero(np.diff(offsets.numpy()))
    seeds = [torch.from_numpy(some) for some in batches_of(nodes)]
    starts = torch.from_numpy(np.random.default_rng(1).choice(nodes, WALKS))
    draw: Callable[..., Any] = partial(neighbor_sample, offsets, targets, num_neighbors=FAN_OUT, csc=True)

    def sample() -> int:
        with ThreadPoolExecutor(threads) as pool:
            return sum(found[0].numel() for found in pool.map(lambda some: draw(seed=some), seeds))

    return {"edges": sample, "steps": lambda: int((random_walk(offsets, targets, starts, LENGTH)[:, 1:] >= 0).sum())}
