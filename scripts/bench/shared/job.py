"""Measure many policies in one MPI job: ``mpirun -n 2 python -m scripts.bench.shared.job cases.json rows.jsonl``.

Without ``--trials``, a row has the figures of ``python -m cusp compare`` for a case; its seconds are those of the two
phases that assign masters and edges, from edges in memory: the median of up to three runs. With ``--trials N``, a row
is one partitioning, from the file on; the cases take turns, so that what disturbs the machine disturbs all of them.
Seconds are always those of the slowest rank.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cusp.apps.harness import commit
from cusp.estimates.estimate import Estimate, estimate
from cusp.input.edge_slice import EdgeSlice, read_slice
from cusp.input.graph_file import read_header
from cusp.launch import run_main
from cusp.partition import Partition
from cusp.partitioner import partition_graph
from cusp.policies import Policy, load_policy
from cusp.program.warm_up import tiny_policy, warm_up
from cusp.runtime.mpi import MPI
from cusp.runtime.timeline import Stopwatch
from scripts.bench.shared.cases import Case

RUNS, ENOUGH = 3, 4.0  # at most this many runs of a case, and no further one after this many seconds


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Measure the cases of one file, append their rows to another. Collective."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--trials", type=int, default=0)
    options = parser.parse_args(argv)
    cases = [Case(**case) for case in json.loads(options.cases.read_text())]
    for path in dict.fromkeys(case.path for case in cases):
        here = [case for case in cases if case.path == path]
        for row in partitionings(here, options.trials, comm) if options.trials else estimates(here, comm):
            if comm.rank == 0:
                with options.rows.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    return 0


def policy_of(case: Case) -> Policy:
    """The policy with the parameters of the case."""
    return load_policy(case.policy, passes=case.passes, rounds=case.rounds, node_map=case.node_map)


def rehearse(cases: list[Case], comm: MPI.Intracomm, run: Callable[[str, Policy, MPI.Intracomm], object]) -> None:
    """Compile and load all that the cases of one graph call: ``run`` each policy on a tiny graph. Collective."""
    policies = {case.policy: policy_of(case) for case in cases}.values()

    def once(few: MPI.Intracomm, tiny: str) -> None:
        for policy in policies:
            run(tiny, tiny_policy(policy, tiny), few)

    warm_up(comm, read_header(cases[0].path), once)


def estimates(cases: list[Case], comm: MPI.Intracomm) -> Iterator[dict]:
    """The quality of each case of one graph, whose edges are read once. Collective."""
    rehearse(
        cases, comm,
        lambda path, policy, few: estimate(read_slice(path, few, weights=False), policy, few.size, "edges", few),
    )  # fmt: skip
    edges = read_slice(cases[0].path, comm, weights=False)
    for case in cases:
        row = evaluate(case, edges, comm)
        if comm.rank == 0:
            shown = f"{case.graph} {case.offline or case.policy} in {row['parts']} parts: {row['seconds']:.2f} s"
            print(f"    {shown}", file=sys.stderr, flush=True)
        yield row


def evaluate(case: Case, edges: EdgeSlice, comm: MPI.Intracomm) -> dict:
    """The row of one case. Collective."""
    times: list[float] = []
    result: Estimate | None = None
    while result is None or (len(times) < RUNS and sum(times) < ENOUGH):
        watch = Stopwatch()
        comm.Barrier()
        result = estimate(edges, policy_of(case), case.parts or comm.size, "edges", comm, watch)
        assigned = sum(watch.seconds.get(phase, 0.0) for phase in ("assign_masters", "assign_edges"))
        times.append(comm.allreduce(assigned, MPI.MAX))
    row = {name: value for name, value in asdict(case).items() if name not in ("path", "node_map")}
    row |= {"nodes": edges.num_nodes, "edges": edges.num_edges, "ranks": comm.size}
    row |= {"seconds": statistics.median(times), "runs": len(times), "cut_edges": result.cut_edges}
    return row | result.quality.summary() | {"commit": commit()}


def partitionings(cases: list[Case], trials: int, comm: MPI.Intracomm) -> Iterator[dict]:
    """The seconds of each partitioning of one graph. Collective."""
    rehearse(cases, comm, lambda path, policy, few: partition_graph(path, policy, few, weights=False))
    policies = [(Path(case.policy).name, policy_of(case)) for case in cases]
    for trial in range(-1, trials):  # the first round reads the file into memory and is not kept
        for name, policy in policies:
            part, seconds, phases = timed_partition(cases[0].path, policy, comm, weights=False)
            if trial >= 0:
                yield {
                    "policy": name, "ranks": comm.size, "trial": trial, "seconds": seconds, "phases": phases,
                    "graph": Path(cases[0].path).stem, "nodes": part.num_nodes, "edges": part.num_edges,
                    "commit": commit(),
                }  # fmt: skip
            del part  # before the next one is built


def timed_partition(
    path: str, policy: Policy, comm: MPI.Intracomm, device: str = "cpu", **options: Any
) -> tuple[Partition, float, dict[str, float]]:
    """Partition a graph; also the seconds of the slowest rank, of the whole and of each phase. Collective."""
    watch = Stopwatch()
    seconds, part = timed(
        comm, lambda: partition_graph(path, policy, comm, watch=watch, device=device, **options), device
    )
    return part, seconds, {phase: comm.allreduce(value, MPI.MAX) for phase, value in watch.seconds.items()}


def timed(comm: MPI.Intracomm, call: Callable[[], Any], device: str = "cpu") -> tuple[float, Any]:
    """Seconds of the slowest rank until its device has finished, and what the call returned. Collective."""
    wait(device)
    comm.Barrier()
    began = time.perf_counter()
    result = call()
    wait(device)
    return comm.allreduce(time.perf_counter() - began, MPI.MAX), result


def wait(device: str) -> None:
    """Return when the whole GPU, not just the current stream, is idle; at once on the CPU."""
    if device == "gpu":
        import cupy as cp

        cp.cuda.Device().synchronize()


if __name__ == "__main__":
    run_main(main)
