"""Partitioning, the apps in docs/performance.md, and the conversion of an edge list, on a Kronecker graph.

python -m scripts.bench cpu

What compare-trees measures, of this checkout alone; every run is a row of benchmarks/cpu.jsonl. The conversion counts
the start of the program; of two, the faster one.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from scripts.bench import compare_trees
from scripts.bench.shared.graphs import CLEAN, kronecker_pairs
from scripts.bench.shared.rows import add_file_options, call

WHAT = {"policies": "oec,cvc,hvc,iec", "apps": ",".join(compare_trees.APPS), "ranks": "1,2", "threads": "1,2"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Size and number of runs."""
    parser.add_argument("--scale", type=int, default=20, help="2**SCALE nodes (default: 20)")
    parser.add_argument("--sources", type=int, default=16, help="of BFS and SSSP (default: 16)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each program (default: 3)")
    add_file_options(parser, "cpu")


def run(options: argparse.Namespace) -> None:
    """Measure, keep the rows, print the table."""
    alone: dict[str, Any] = {"graphs": f"kron{options.scale}", "others": [], "gapbs": None, "device": "cpu"}
    compare_trees.run(argparse.Namespace(**vars(options) | WHAT | alone))
    print(f"convert: {conversion(options.data, options.scale) * 1e3:.1f} ms")


def conversion(data: Path, scale: int) -> float:
    """Seconds from a raw list of int32 pairs to a symmetric graph file, including the start of the program."""
    pairs, target = kronecker_pairs(data, scale), data / "converted.h5"
    times = []
    for _ in range(2):  # the first one may compile
        began = time.perf_counter()
        call(1, "cusp.commands.convert", pairs, "--format", "pairs32", "--symmetrize", *CLEAN, "-o", target)
        times.append(time.perf_counter() - began)
    target.unlink()
    return min(times)
