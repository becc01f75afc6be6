"""Partition a graph by several policies in turn: ``mpirun -n 2 python -m scripts.bench.side_by_side ...``."""

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mpi4py import MPI

from apps.harness import commit
from cusp.input.graph_file import read_header
from cusp.launch import run_main
from cusp.partition import Partition
from cusp.partitioner import partition_graph
from cusp.policies import load_policy
from cusp.program.warm_up import tiny_policy, warm_up
from cusp.runtime.stopwatch import Stopwatch

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


def main(comm: "Intracomm", argv: list[str]) -> int:
    """Interleave the policies, so that what disturbs the machine disturbs all of them. Collective."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph")
    parser.add_argument("rows", type=Path)
    parser.add_argument("policies", nargs="+")
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args(argv)
    policies = {name: load_policy(name) for name in options.policies}

    def rehearse(few: MPI.Intracomm, path: str) -> None:
        for policy in policies.values():
            partition_graph(path, tiny_policy(policy, path), few, weights=False)

    warm_up(comm, read_header(options.graph), rehearse)
    rows = []
    for trial in range(-1, options.trials):  # the first round reads the file into memory and is not kept
        for name, policy in policies.items():
            watch = Stopwatch()
            comm.Barrier()
            began = time.perf_counter()
            part = partition_graph(options.graph, policy, comm, weights=False, watch=watch)
            seconds = comm.allreduce(time.perf_counter() - began, MPI.MAX)
            phases = {phase: comm.allreduce(value, MPI.MAX) for phase, value in watch.seconds.items()}
            row = {"policy": Path(name).name, "ranks": comm.size, "trial": trial, "seconds": seconds, "phases": phases}
            rows.append(row | facts(options.graph, part))
    if comm.rank == 0:
        options.rows.write_text("".join(json.dumps(row) + "\n" for row in rows if row["trial"] >= 0))
    return 0


def facts(graph: str, part: Partition) -> dict:
    """What a row says of the graph and the code."""
    return {"graph": Path(graph).stem, "nodes": part.num_nodes, "edges": part.num_edges, "commit": commit()}


if __name__ == "__main__":
    run_main(main)
