"""Partitioning, BFS and SSSP on every GPU of this machine, by policy: ``mpirun -n 4 python -m scripts.bench.gpus``.

Where the time goes is measured in separate runs, which wait for the device between the steps. What a round costs beyond
its work shows on a ring, where a frontier has two nodes: ``--graphs ring2000``. Every answer is compared, by checksums,
with that of one rank.
"""

import argparse
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cusp.apps.bfs import bfs, prepare
from cusp.apps.harness import choose_sources, commit
from cusp.apps.shared.lengths import measure
from cusp.apps.sssp import sssp
from cusp.estimates.quality import measure_quality
from cusp.launch import parse_together, run_main
from cusp.partitioner import partition_graph
from cusp.policies import load_policy
from cusp.runtime.devices import choose_device
from cusp.runtime.mpi import MPI
from gluon.plan import make_plan
from gluon.sync import Sync
from gluon.transports import open_transport
from scripts.bench.shared.job import timed, timed_partition
from scripts.bench.shared.rows import ROWS, keep

STEPS = ("extract", "exchange", "combine")


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Measure every requested graph and policy; rank 0 prints and keeps rows. Collective."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", default="kron24", help="kronSCALE, roadSIDE and ringNODES, with commas")
    parser.add_argument("--policies", default="oec,iec,cvc,hvc")
    parser.add_argument("--apps", default="bfs,sssp")
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--delta", type=float, help="width of the buckets of sssp")
    parser.add_argument("--transport", default="auto")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="for the graphs, which may be large")
    parser.add_argument("--rows", type=Path, default=ROWS / "gpu.jsonl", help="rows are appended here")
    options = parse_together(comm, parser, argv)
    placement = choose_device("gpu", comm)
    transport = open_transport(options.transport, comm, "gpu")
    say(comm, f"{comm.size} ranks, transport {transport.name}, {placement.places[0]}")
    for name in options.graphs.split(","):
        path = make_graph(name, options.folder, comm)
        expected = comm.bcast(answers_of_one(path, options) if comm.rank == 0 else None)
        for policy in options.policies.split(","):
            for row in measure_policy(name, path, policy, expected, options, comm):
                row |= {"gpu": placement.places[0], "commit": commit(), "transport": transport.name}
                if comm.rank == 0:
                    keep([row], options.rows)
                say(comm, line_of(row))
    return 0


def make_graph(name: str, folder: str, comm: MPI.Intracomm) -> str:
    """A graph file, made by rank 0 if it is not there."""
    import cupy as cp

    from scripts.bench.shared import gpu_graphs

    path = os.path.join(folder, f"{name}.h5")
    if comm.rank == 0 and not os.path.exists(path):
        gpu_graphs.write_graph(path + ".new", name)
        os.replace(path + ".new", path)
        cp.get_default_memory_pool().free_all_blocks()
    comm.Barrier()
    return path


def measure_policy(
    name: str, path: str, policy: str, expected: dict[str, list], options: argparse.Namespace, comm: MPI.Intracomm
) -> Iterator[dict[str, Any]]:
    """Rows of partitioning and of each app."""
    weighted = "sssp" in options.apps.split(",")
    timed_partition(path, load_policy(policy), comm, "gpu", weights=weighted)  # compiles, takes memory from the driver
    part, seconds, phases = timed_partition(path, load_policy(policy), comm, "gpu", weights=weighted)
    began = time.perf_counter()
    plan = make_plan(part, comm, options.transport)
    plan_seconds = comm.allreduce(time.perf_counter() - began, MPI.MAX)
    quality = measure_quality(part, comm)
    base = {
        "graph": name, "policy": policy, "ranks": comm.size, "nodes": part.num_nodes, "edges": part.num_edges,
        "replication": quality.replication, "edge_balance": quality.edge_balance,
    }  # fmt: skip
    yield base | {"app": "partition", "ms": seconds * 1e3, "phases": phases, "plan_seconds": plan_seconds}
    sources, runs = prepare_apps(part, plan, options, comm)
    for app, call in runs.items():
        row = base | {"app": app} | time_app(call, plan, sources, comm)
        sums = [checksum(part, call(Sync(plan, comm), source), comm) for source in sources]
        yield row | {"verified": sums == expected[app]}


def prepare_apps(
    part: Any, plan: Any, options: argparse.Namespace, comm: MPI.Intracomm
) -> tuple[list[int], dict[str, Callable[[Sync, int], Any]]]:
    """Sources, the same for any number of ranks, and a function (sync, source) -> answer for each app."""
    sources = choose_sources(part, comm, argparse.Namespace(source=None, sources=options.sources, seed=1))
    runs: dict[str, Callable[[Sync, int], Any]] = {}
    for app in options.apps.split(","):
        if app == "bfs":
            runs[app] = partial(bfs, part, prepared=prepare(part, Sync(plan, comm)))
        else:
            runs[app] = partial(sssp, part, lengths=measure(part, Sync(plan, comm), options.delta))
    return sources, runs


def answers_of_one(path: str, options: argparse.Namespace) -> dict[str, list]:
    """Checksums of all answers, from a rank that works alone."""
    import cupy as cp

    alone, weighted = MPI.COMM_SELF, "sssp" in options.apps
    part = partition_graph(path, load_policy("oec"), alone, weights=weighted, device="gpu")
    plan = make_plan(part, alone)
    sources, runs = prepare_apps(part, plan, options, alone)
    sums = {
        app: [checksum(part, call(Sync(plan, alone), source), alone) for source in sources]
        for app, call in runs.items()
    }
    del part, plan, runs
    cp.get_default_memory_pool().free_all_blocks()
    return sums


def checksum(part: Any, answer: Any, comm: MPI.Intracomm) -> tuple[int, int, int]:
    """How many nodes were reached, the sum of their values, and that of values times global ids."""
    own = answer.reached[: part.num_masters]
    (values,) = answer.labels.values()
    values, gids = values[own].astype(np.int64), part.gids[: part.num_masters][own]
    sums = (int(own.sum()), int(values.sum()), int((values * gids).sum()))  # modulo 2^64
    return tuple(comm.allreduce(np.array(sums, np.int64)).tolist())


def time_app(call: Callable[[Sync, int], Any], plan: Any, sources: list[int], comm: MPI.Intracomm) -> dict[str, Any]:
    """Median over the sources of the slowest rank, what was sent, and where the time was spent."""
    call(Sync(plan, comm), sources[0])
    times, sent, rounds = [], 0, 0
    for source in sources:
        sync = Sync(plan, comm)
        times.append(timed(comm, partial(call, sync, source), "gpu")[0])
        sent += comm.allreduce(sum(exchange.bytes for exchange in sync.traffic))
    spent: dict[str, float] = defaultdict(float)
    whole = 0.0
    with timed_steps(Sync(plan, comm).exchange, spent):
        for source in sources:
            seconds, answer = timed(comm, lambda source=source: call(Sync(plan, comm), source), "gpu")  # type: ignore[misc]
            whole += seconds
            rounds += int(answer.rounds)
    split = {step: spent[step] * 1e3 / len(sources) for step in STEPS}
    split["operator and host"] = whole * 1e3 / len(sources) - sum(split.values())
    return {
        "ms": float(np.median(times)) * 1e3, "best_ms": min(times) * 1e3, "rounds": rounds / len(sources),
        "mb_sent": sent / len(sources) / 1e6, "split_ms": split,
    }  # fmt: skip


@contextmanager
def timed_steps(exchange: Any, spent: dict[str, float]) -> Iterator[None]:
    """While this is open, add up the seconds of the steps of every exchange."""
    import cupy as cp

    kind, transport = type(exchange), exchange.transport
    whole, carry = kind.__call__, type(transport).exchange

    def now() -> float:
        cp.cuda.get_current_stream().synchronize()
        return time.perf_counter()

    marks: list[float] = []

    def timed_exchange(self: Any, *arguments: Any) -> Any:
        marks[:] = [now()]
        sent = whole(self, *arguments)
        ends = [*marks, now()]
        for step, begin, end in zip(STEPS, ends, ends[1:]):
            spent[step] += end - begin
        return sent

    def timed_transport(self: Any, *arguments: Any) -> Any:
        marks.append(now())
        arrived = carry(self, *arguments)
        marks.append(now())
        return arrived

    kind.__call__, type(transport).exchange = timed_exchange, timed_transport
    try:
        yield
    finally:
        kind.__call__, type(transport).exchange = whole, carry


def line_of(row: dict[str, Any]) -> str:
    """One row as a line of the table."""
    split = row.get("phases") or row.get("split_ms") or {}
    factor = 1e3 if "phases" in row else 1
    parts = ", ".join(f"{name} {value * factor:.3g}" for name, value in split.items())
    sent = ""
    if "mb_sent" in row:
        sent = f" {row['mb_sent']:8.2f} MB {row['rounds']:6.1f} rounds of {row['ms'] * 1e3 / row['rounds']:6.1f} us"
        sent += "" if row["verified"] else " WRONG ANSWER"
    return (
        f"{row['graph']} {row['policy']:<4} {row['ranks']} {row['app']:<9} {row['ms']:9.3f} ms "
        f"{row['edges'] / row['ms'] / 1e6:8.1f} G edges/s{sent} ({parts})"
    )


def say(comm: MPI.Intracomm, text: str) -> None:
    """Print on rank 0."""
    if comm.rank == 0:
        print(text, flush=True)


if __name__ == "__main__":
    run_main(main)
