"""Partitioning on one GPU or several, compared with only reading the file into page-locked memory.

    mpirun -n 1 python -m scripts.bench.gpu_partition kron26.h5 --policies oec,cvc,my_policy.py

Seconds are those of the slowest rank. ``rules`` is the edge rule alone, over all edges of the slice, on the device.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from cusp.apps.harness import commit
from cusp.input.edge_slice import read_slice
from cusp.input.graph_file import fetching
from cusp.input.hdf5 import open_hdf5
from cusp.launch import parse_together, run_main
from cusp.policies import load_policy
from cusp.policies.compile_rules import compile_policy
from cusp.prepare_rules import prepare_rules
from cusp.runtime.devices import choose_device
from cusp.runtime.mpi import MPI
from gluon.transports import open_transport
from scripts.bench.shared.job import timed, timed_partition
from scripts.bench.shared.rows import ROWS, keep


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Measure every policy; rank 0 prints and keeps rows. Collective."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", help="graph file")
    parser.add_argument("--policies", default="oec,iec,cvc,hvc", help="with commas; files too")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--csc", action="store_true", help="build the CSC too")
    parser.add_argument("--no-weights", action="store_true")
    parser.add_argument("--transport", default="auto")
    parser.add_argument("--rows", type=Path, default=ROWS / "gpu.jsonl", help="rows are appended here")
    options = parse_together(comm, parser, argv)
    place = choose_device("gpu", comm).places[0]
    transport = open_transport(options.transport, comm, "gpu").name
    weights = not options.no_weights
    read = min(timed(comm, lambda: read_only(options.graph, comm, weights), "gpu")[0] for _ in range(options.repeats))
    if comm.rank == 0:
        print(f"{comm.size} ranks, {transport}, {place}; the file into page-locked memory: {read:.3f} s")
    for name in options.policies.split(","):
        row = measure(options.graph, name, weights, options.csc, options.repeats, comm)
        row |= {"app": "partition", "read_only_s": read, "gpu": place, "transport": transport, "commit": commit()}
        if comm.rank == 0:
            keep([row], options.rows)
            phases = ", ".join(f"{phase} {seconds:.3f}" for phase, seconds in row["phases"].items())
            print(
                f"{name:<12} {row['seconds']:7.3f} s = {row['seconds'] / read:4.1f} x reading ({phases}); peak "
                f"{row['peak_bytes'] / 1e9:.2f} GB = {row['peak_to_csr']:.1f} x the local CSR; rules {row['where']}, "
                f"{row['rule_rate'] / 1e9:.1f} G edges/s",
                flush=True,
            )
    return 0


def measure(path: str, name: str, weights: bool, csc: bool, repeats: int, comm: MPI.Intracomm) -> dict[str, Any]:
    """The row of one policy; the first run compiles and is not counted."""
    import cupy as cp

    policy, pool = load_policy(name), cp.get_default_memory_pool()
    best, phases, peak, size = np.inf, {}, 0, 1
    for repeat in range(repeats + 1):
        pool.free_all_blocks()
        part, seconds, spent = timed_partition(path, policy, comm, "gpu", weights=weights, csc=csc)
        if repeat and seconds < best:
            best, phases = seconds, spent
        peak = pool.total_bytes()  # what the pool has taken from the driver since it was emptied
        arrays = [part.offsets, part.targets, part.weights]
        size = max(sum(array.nbytes for array in arrays if array is not None), 1)
        del part, arrays
    where, rate = rule_rate(path, policy, comm)
    return {
        "graph": Path(path).stem, "policy": name, "ranks": comm.size, "seconds": best, "phases": phases,
        "peak_bytes": comm.allreduce(peak, MPI.MAX), "peak_to_csr": comm.allreduce(peak / size, MPI.MAX),
        "where": where, "rule_rate": comm.allreduce(rate),
    }  # fmt: skip


def rule_rate(path: str, policy: Any, comm: MPI.Intracomm) -> tuple[str, float]:
    """Where the rules run, and for how many edges per second this rank finds owners; 0 if that needs other ranks."""
    import cupy as cp

    compiled = compile_policy(policy, "gpu")
    if compiled.device == "cpu" or compiled.uses.neighbors or policy.node_map:
        return compiled.where, 0.0
    edges = read_slice(path, comm, weights=False, device="gpu")
    rules = prepare_rules(edges, compiled, comm)
    rows = edges.indptr.size - 1
    own, owners = cp.zeros(rows, cp.int8), cp.empty(edges.targets.size, cp.uint8)
    seconds = np.inf
    for _ in range(4):
        took, _ = timed(comm, lambda: rules.run("assign_edges", 0, rows, comm.size, None, own, None, owners), "gpu")
        seconds = min(seconds, took)
    return compiled.where, edges.targets.size / seconds


def read_only(path: str, comm: MPI.Intracomm, weights: bool) -> None:
    """Read this rank's share of the bytes into page-locked memory, with as many threads as the partitioner has."""
    from cusp.input import read_gpu
    from cusp.kernels import cuda

    with open_hdf5(path) as file:
        for name in ("indptr", "indices", "data"):
            if name not in file or (name == "data" and not weights):
                continue
            dataset = file[name]
            begin, end = (dataset.size * rank // comm.size for rank in (comm.rank, comm.rank + 1))
            dtype = dataset.dtype.newbyteorder("=")
            with fetching(dataset, dtype) as (fetch, past_hdf5):
                threads, step = read_gpu.most_threads(past_hdf5), read_gpu.PIECE // dtype.itemsize
                buffers = [cuda.pinned(step, dtype) for _ in range(threads)]

                def lane(
                    number: int, buffers: Any = buffers, fetch: Any = fetch, span: Any = (begin, end, step, threads)
                ) -> None:
                    first, last, step, threads = span
                    for at in range(first + number * step, last, threads * step):
                        fetch(buffers[number][: min(step, last - at)], at)

                with ThreadPoolExecutor(threads) as pool:
                    list(pool.map(lane, range(threads)))


if __name__ == "__main__":
    run_main(main)
