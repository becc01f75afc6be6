"""Quality of many policies in one job of MPI: ``mpirun -n 2 python -m scripts.bench.evaluate cases.json rows.jsonl``.

Each graph is read once. A row has the figures of ``python -m cusp compare``; its seconds are those of the two phases
that assign masters and edges, on the slowest rank, from edges in memory: the median of up to three runs.
"""

import argparse
import json
import statistics
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mpi4py import MPI

from apps.harness import commit
from cusp.estimates.estimate import Estimate, estimate
from cusp.input.edge_slice import EdgeSlice, read_slice
from cusp.input.graph_file import read_header
from cusp.launch import run_main
from cusp.policies import Policy, load_policy
from cusp.program.warm_up import tiny_policy, warm_up
from cusp.runtime.stopwatch import Stopwatch
from scripts.bench.cases import Case

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

RUNS, ENOUGH = 3, 4.0  # at most so many runs of a case, and no further one after so many seconds


def main(comm: "Intracomm", argv: list[str]) -> int:
    """Evaluate the cases of a file, append a row for each to another. Collective."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("rows", type=Path)
    options = parser.parse_args(argv)
    cases = [Case(**case) for case in json.loads(options.cases.read_text())]
    for path in dict.fromkeys(case.path for case in cases):
        here = [case for case in cases if case.path == path]
        rehearse({case.policy: policy_of(case) for case in here}, path, comm)
        edges = read_slice(path, comm, weights=False)
        for case in here:
            row = evaluate(case, edges, comm)
            if comm.rank == 0:
                with options.rows.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                shown = f"{case.graph} {case.offline or case.policy} in {row['parts']} parts: {row['seconds']:.2f} s"
                print(f"    {shown}", file=sys.stderr, flush=True)
    return 0


def rehearse(policies: dict[str, Policy], path: str, comm: "Intracomm") -> None:
    """Compile and load all that the cases call. Collective."""

    def once(few: MPI.Intracomm, tiny: str) -> None:
        for policy in policies.values():
            estimate(read_slice(tiny, few, weights=False), tiny_policy(policy, tiny), few.size, "edges", few)

    warm_up(comm, read_header(path), once)


def policy_of(case: Case) -> Policy:
    """The policy with the parameters of the case."""
    return load_policy(case.policy, passes=case.passes, rounds=case.rounds, node_map=case.node_map)


def evaluate(case: Case, edges: EdgeSlice, comm: "Intracomm") -> dict:
    """The row of one case. Collective."""
    times: list[float] = []
    found: Estimate | None = None
    while found is None or (len(times) < RUNS and sum(times) < ENOUGH):
        watch = Stopwatch()
        comm.Barrier()
        found = estimate(edges, policy_of(case), case.parts or comm.size, "edges", comm, watch)
        assigned = sum(watch.seconds.get(phase, 0.0) for phase in ("assign_masters", "assign_edges"))
        times.append(comm.allreduce(assigned, MPI.MAX))
    row = {name: value for name, value in asdict(case).items() if name not in ("path", "node_map")}
    row |= {"nodes": edges.num_nodes, "edges": edges.num_edges, "ranks": comm.size}
    row |= {"seconds": statistics.median(times), "runs": len(times), "cut_edges": found.cut_edges}
    return row | found.quality.summary() | {"commit": commit()}


if __name__ == "__main__":
    run_main(main)
