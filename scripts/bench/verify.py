"""Seconds of ``--verify`` beside those of the run and of a pass over the edges, for every app that has it.

mpirun -n 4 python -m scripts.bench.verify path=paths.h5 social=enron.h5 --apps bfs,cc

A pass compares a number at both ends of each edge, and adds up for each node how many are equal. Runs and passes are
the fastest of three, on the clock of the slowest rank. Verification may take three runs, or a pass, whichever is more.
"""

import argparse
import contextlib
import importlib
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.harness import Job, parser_of, prepare_job, run_trial, verify
from cusp.apps.run.sources import draw_sources
from cusp.apps.verify import everywhere
from cusp.launch import parse_together, run_main
from cusp.program import report
from cusp.runtime.mpi import MPI
from gluon.label import Label
from gluon.reduction import ADD
from gluon.sync import Sync
from scripts.bench.shared.rows import ROWS, keep

APPS = {
    "bfs": ["--parents"], "sssp": [], "path": [], "forest": ["--roots", "0,5"], "widest": [],
    "cc": [], "scc": [], "pagerank": [], "kcore": [], "triangles": ["--per-node"], "betweenness": ["--sources", "4"],
    "communities": [], "semiring": [],
}  # fmt: skip
COUNT = EdgeOperator("1", into="dst.sum", where="src.given == dst.given")
LINE = "{:<12} {:<12} {:>5} {:>10} {:>10} {:>10} {:>7}"
TIMES, FLOOR = 3, 5e-3  # runs; and seconds that nobody waits for


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Measure each app on each graph; rank 0 prints and keeps rows. Collective."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--apps", default=",".join(APPS), help="with commas (default: %(default)s)")
    parser.add_argument("--policy", default="cvc", help="default: %(default)s")
    parser.add_argument("--rows", type=Path, default=ROWS / "verify.jsonl", help="rows are appended here")
    options = parse_together(comm, parser, argv)
    head = LINE.format("graph", "app", "ranks", "run ms", "verify ms", "pass ms", "share")
    report.say(comm.rank, f"{head} of what it may take")
    for name, path in (graph.split("=", 1) for graph in options.graphs):
        for app in options.apps.split(","):
            row = {"benchmark": "verify", "graph": name} | measure(app, path, options.policy, comm)
            if comm.rank == 0:
                keep([row], options.rows)
            report.say(comm.rank, line_of(row))
    return 0


def measure(name: str, path: str, policy: str, comm: MPI.Intracomm) -> dict[str, Any]:
    """The row of an app. Collective."""
    app = importlib.import_module(f"cusp.apps.{name}").APP
    parser = parser_of(app)
    found = ["--source", "0"] if app.needs_source else []
    options = parser.parse_args([path, "--policy", policy, "--verify", "--device", "cpu", *found, *APPS[name]])
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        job, options = prepare_job(app, comm, options, parser)
    source = draw_sources(job.part, comm, 1, 1)[0] if app.needs_source else None
    trials = [run_trial(app, comm, job, options, source, trial) for trial in range(3)]
    answer, row = trials[-1]
    return {
        "app": name, "policy": policy, "ranks": comm.size, "nodes": row["nodes"], "edges": row["edges"],
        "run_ms": min(each["seconds"] for _, each in trials) * 1e3,
        "verify_ms": fastest(comm, lambda: verify(app, comm, job, source, answer, options), 2),
        "pass_ms": fastest(comm, one_pass(job, comm), 3), "commit": row["commit"],
    }  # fmt: skip


def one_pass(job: Job, comm: MPI.Intracomm) -> Callable[[], None]:
    """A function that goes over all edges once. Collective."""
    given = everywhere(job.part, Sync(job.plan, comm), job.part.gids[: job.part.num_masters] % 2, 0)

    def add() -> None:
        sync, label = Sync(job.plan, comm), Label(job.part, np.int64, 0, ADD)
        COUNT(job.part, sum=label, given=given)
        sync.reduce(label, write="dst")

    return add


def fastest(comm: MPI.Intracomm, call: Callable[[], None], times: int) -> float:
    """Milliseconds of the fastest of some calls, on the slowest rank. Collective."""

    def seconds() -> Iterator[float]:
        for _ in range(times):
            comm.Barrier()
            began = time.perf_counter()
            call()
            yield comm.allreduce(time.perf_counter() - began, MPI.MAX)

    return min(seconds()) * 1e3


def line_of(row: dict[str, Any]) -> str:
    """A row as a line of the table."""
    share = row["verify_ms"] / max(TIMES * row["run_ms"], row["pass_ms"], FLOOR * 1e3)
    cells = (f"{row[name]:,.2f}" for name in ("run_ms", "verify_ms", "pass_ms"))
    return LINE.format(row["graph"], row["app"], row["ranks"], *cells, f"{share:.2f}")


if __name__ == "__main__":
    run_main(main)
