"""Offline partitioners, which hold the whole graph and read it many times: the reference for streaming.

python -m scripts.bench.shared.offline METHOD SYMMETRIC.h5 GRAPH.h5 PARTS MAP.npy

Writes the part of each node as a node map and prints the seconds that the partitioner alone took. The load of a node is
its out-degree in GRAPH.h5, at least 1, so that edges are balanced under the edge rule ``source``.
"""

import argparse
import importlib.util
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from scripts.bench.shared.rows import call

PACKAGES = {"METIS": "pymetis", "KaHIP": "kahip", "Mt-KaHyPar": "mtkahypar"}
IMBALANCE = 0.03  # the default of KaHIP and Mt-KaHyPar; METIS keeps its own
SKEWED = 20  # largest degree / mean, from which on KaHIP's mode for social networks is taken


def installed(method: str) -> bool:
    """Whether the package of an offline partitioner is there: ``pip install -e '.[quality]'``."""
    return importlib.util.find_spec(PACKAGES[method]) is not None


def node_map(method: str, symmetric: Path, graph: Path, parts: int, target: Path, limit: float) -> float | None:
    """Write a node map in a process of its own; its seconds, or None if it took longer than ``limit``."""
    module = "scripts.bench.shared.offline"
    try:
        output = call(1, module, method, symmetric, graph, str(parts), target, limit=limit)
    except subprocess.TimeoutExpired:
        return None
    return float(output.split()[-1])


def metis(offsets: np.ndarray, targets: np.ndarray, loads: np.ndarray, parts: int) -> tuple[float, np.ndarray]:
    """METIS, k-way."""
    import pymetis

    adjacency = pymetis.CSRAdjacency(offsets, targets.astype(np.int64))
    began = time.perf_counter()
    _, assigned = pymetis.part_graph(parts, adjacency, vweights=loads)
    return time.perf_counter() - began, np.asarray(assigned)


def kahip(offsets: np.ndarray, targets: np.ndarray, loads: np.ndarray, parts: int) -> tuple[float, np.ndarray]:
    """KaHIP, fast; the mode for social networks where degrees differ much."""
    import kahip

    degrees = np.diff(offsets)
    mode = kahip.FASTSOCIAL if degrees.max() > SKEWED * degrees.mean() else kahip.FAST
    arrays = [array.astype(np.int32) for array in (loads, offsets, np.ones(targets.size), targets)]
    began = time.perf_counter()
    _, assigned = kahip.kaffpa(*arrays, parts, IMBALANCE, True, 0, mode)
    return time.perf_counter() - began, np.asarray(assigned)


def mt_kahypar(offsets: np.ndarray, targets: np.ndarray, loads: np.ndarray, parts: int) -> tuple[float, np.ndarray]:
    """Mt-KaHyPar, default preset, on all cores."""
    import mtkahypar

    partitioner = mtkahypar.initialize(os.cpu_count() or 1)
    mtkahypar.set_seed(1)
    context = partitioner.context_from_preset(mtkahypar.PresetType.DEFAULT)
    context.set_partitioning_parameters(parts, IMBALANCE, mtkahypar.Objective.CUT)
    context.logging = False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.metis"
        write_metis(path, offsets, targets, loads)
        graph = partitioner.graph_from_file(str(path), context, mtkahypar.FileFormat.METIS)
    began = time.perf_counter()
    assigned = graph.partition(context)
    return time.perf_counter() - began, np.asarray(assigned.get_partition())


def write_metis(path: Path, offsets: np.ndarray, targets: np.ndarray, loads: np.ndarray) -> None:
    """A METIS file with node weights: a line per node, ids from 1."""
    bounds = offsets.tolist()
    with path.open("w") as file:
        file.write(f"{loads.size} {targets.size // 2} 10\n")
        for load, begin, end in zip(loads.tolist(), bounds, bounds[1:]):
            file.write(" ".join(map(str, [load, *(targets[begin:end] + 1).tolist()])) + "\n")


METHODS: dict[str, Callable] = {"METIS": metis, "KaHIP": kahip, "Mt-KaHyPar": mt_kahypar}


def main() -> None:
    """Partition one graph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("symmetric")
    parser.add_argument("graph")
    parser.add_argument("parts", type=int)
    parser.add_argument("target")
    options = parser.parse_args()
    with h5py.File(options.symmetric) as file:
        offsets, targets = file["indptr"][...].astype(np.int64), file["indices"][...]
    with h5py.File(options.graph) as file:
        loads = np.maximum(1, np.diff(file["indptr"][...].astype(np.int64)))
    seconds, assigned = METHODS[options.method](offsets, targets, loads, options.parts)
    np.save(options.target, assigned.astype(np.int32))
    print(seconds)


if __name__ == "__main__":
    main()
