"""Partitioning and algorithms on some graphs, by policy, in one MPI job, on CPUs or GPUs.

    mpirun -n 4 python -m scripts.bench.algorithms kron24 --device gpu --policies oec,cvc --apps bfs,sssp
    mpirun -n 2 python -m scripts.bench.algorithms graphs/*.h5
    mpirun -n 1 python -m scripts.bench.algorithms kron26 --device gpu --memory-limit 6G
    python -m scripts.hosts 4 --rate 1gbit -- -m scripts.bench.algorithms kron20.h5
    mpirun -n 4 python -m scripts.bench.algorithms graphs/*.h5 --verify --apps all --set parents=True,per_node=True

A graph is a graph file, or the name of one that a GPU makes: kronSCALE, randSCALE, roadSIDE or ringNODES. Times are
those of the slowest rank, after a first run that is not counted. Equal answers have equal fingerprints, whatever the
ranks, the policy and the limit. ``network_mb`` and ``packets`` are what all hosts have sent in a run, as the system
counts it, ``cpu_ms`` is the time of all ranks on their cores, and ``peak_mb`` the most memory that a rank has taken
until then.

With ``--verify``, ``verify_ms`` is the time that a check takes, the fastest of two, and ``pass_ms`` that of a pass over
all edges, which compares a number at both ends of each edge, and adds up for each node how many are equal. A check may
take three runs, or a pass, whichever is more: the table has its share of that. benchmarks/verify.jsonl has such rows.
"""

import argparse
import os
import statistics
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cusp import ADD, Answer, App, EdgeOperator, Label, PartitionedGraph, Sync, everywhere, run_main
from cusp.apps import library
from cusp.apps.harness import commit, timed_run, wait
from cusp.apps.run.cli import with_gids
from cusp.apps.run.keywords import Keywords
from cusp.apps.run.sources import draw_sources
from cusp.launch import parse_together
from cusp.program import report
from cusp.runtime.devices import name_of, to_host
from cusp.runtime.mpi import MPI
from cusp.runtime.storage import peak_mb
from cusp.runtime.threads import num_threads
from scripts.bench.shared.rows import ROWS, gpu_name, keep, settings_of

APPS, ALL = "bfs,sssp,cc,pagerank,kcore,triangles,betweenness", ",".join((*library.APPS, "semiring"))
SETTINGS: dict[str, dict[str, Any]] = {
    "pagerank": {"unweighted": True}, "betweenness": {"sources": 4},
    "closeness": {"sources": 64}, "forest": {"roots": [0, 5]}, "sample": {"sources": 65_536},
    "walks": {"sources": 65_536}, "paths": {"source": 5, "target": 77},
    "table": {"origins": [*range(64)], "destinations": [*range(1000)]},
}  # fmt: skip
EQUAL = EdgeOperator("1", into="dst.sum", where="src.given == dst.given")
FLOOR = 5.0  # milliseconds of a check that nobody waits for
LINE = "{:<12} {:<4} {:>2} {:<11} {:>10} ms {:>8} rounds  {}"


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Measure every graph under every policy; rank 0 prints and keeps rows. Collective."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", help="graph files, or names of graphs that a GPU makes")
    parser.add_argument("--policies", default="oec", help="with commas; files too (default: %(default)s)")
    parser.add_argument("--apps", default=APPS, help="with commas, or all (default: %(default)s)")
    parser.add_argument("--set", default="", metavar="NAME=VALUE,...", help="options of the algorithms that know them")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, help="of a rank on CPUs")
    parser.add_argument("--transport", default="auto")
    parser.add_argument("--memory-limit", help="as of the apps, such as 6G")
    parser.add_argument("--sources", type=int, default=4, help="of each search (default: %(default)s)")
    parser.add_argument("--trials", type=int, default=3, help="of each run, whose median counts (default: %(default)s)")
    parser.add_argument("--partitions", type=int, help="timed, after a first one (default: as many as trials)")
    parser.add_argument("--verify", action="store_true", help="check the first answer of each algorithm")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="for graphs that are made, which may be large")
    parser.add_argument("--rows", type=Path, default=ROWS / "algorithms.jsonl", help="rows are appended here")
    options = parse_together(comm, parser, argv)
    if options.threads:
        os.environ["CUSP_THREADS"] = str(options.threads)
    totals: dict[tuple[str, str], float] = defaultdict(float)
    for name in options.graphs:
        path = graph_file(name, options.folder, comm)
        for policy in options.policies.split(","):
            for row in measure(path, policy, options, comm):
                totals[policy, row["app"]] += sum(row["all_ms"])
                report.say(comm.rank, line_of(row))
                if comm.rank == 0:
                    keep([row], options.rows)
    for (policy, app), milliseconds in totals.items() if len(options.graphs) > 1 else ():
        report.say(comm.rank, f"all {len(options.graphs)} graphs, {policy}: {app} {milliseconds:,.2f} ms")
    return 0


def graph_file(name: str, folder: str, comm: MPI.Intracomm) -> str:
    """A graph file; rank 0 makes it on its GPU if it is not there."""
    if os.path.exists(name):
        return name
    path = os.path.join(folder, f"{name}.h5")
    if comm.rank == 0 and not os.path.exists(path):
        import cupy as cp

        from scripts.bench.shared import gpu_graphs

        gpu_graphs.write_graph(path + ".new", name)
        os.replace(path + ".new", path)
        cp.get_default_memory_pool().free_all_blocks()
    comm.Barrier()
    return path


def measure(path: str, policy: str, options: argparse.Namespace, comm: MPI.Intracomm) -> Iterator[dict[str, Any]]:
    """Rows of partitioning and of each app."""
    apps = [library.app_of(name) for name in (ALL if options.apps == "all" else options.apps).split(",")]
    how: dict[str, Any] = {"device": options.device, "transport": options.transport}
    how |= {"memory_limit": options.memory_limit, "weights": any(app.weighted for app in apps)}
    graph: Any = None
    times, phases = [], {}
    timed = options.trials if options.partitions is None else options.partitions
    for trial in range(timed + 1):
        del graph  # before the next one is built
        graph = library.partition_graph(path, policy, comm=comm, **how)
        phases = {phase: comm.allreduce(seconds, MPI.MAX) for phase, seconds in graph.seconds.items()}
        times += [sum(phases.values()) * 1e3] if trial or not timed else []  # the first compiles
    base = {
        "graph": Path(path).stem, "policy": Path(policy).name, "ranks": comm.size,
        "threads": num_threads(), "hosts": len({*comm.allgather(os.uname().nodename)}),
        "nodes": graph.num_nodes, "edges": graph.num_edges,
        "device": name_of(graph.plan.devices), "transport": graph.plan.transport,
        "memory_limit": options.memory_limit, "replication": graph.quality.replication,
        "edge_balance": graph.quality.edge_balance, "commit": commit(),
    }  # fmt: skip
    if "gpu" in base["device"]:
        base["gpu"] = gpu_name()
    yield base | {"app": "partition", "ms": statistics.median(times), "all_ms": [statistics.median(times)],
                  "phases": phases, "peak_mb": comm.allreduce(peak_mb(), MPI.MAX)}  # fmt: skip
    if options.verify:
        base["pass_ms"] = fastest(graph, one_pass(graph), 3)
    sources = draw_sources(graph.part, comm, options.sources, 1)
    for app in apps:
        settings = SETTINGS.get(app.name, {}) | settings_of(app.name, options.set)
        row = run_app(app, graph, sources, settings, options.trials, options.verify)
        yield base | row | {"peak_mb": comm.allreduce(peak_mb(), MPI.MAX)}
    report.say(comm.rank, *report.describe_card(graph.part.device, comm))


def run_app(
    app: App, graph: PartitionedGraph, sources: list[int], settings: dict[str, Any], trials: int, verify: bool,
    timed: Callable[..., tuple[Answer, float]] = timed_run,
) -> dict[str, Any]:  # fmt: skip
    """A row: the median of the trials of each source, or of all, and the median of these. Collective.

    Parameters
    ----------
    settings : dict
        Options of the app, as keywords of its function.
    verify : bool
        Check the first answer.
    timed : function
        As :func:`cusp.apps.harness.timed_run`.
    """
    parser = Keywords(app.name, app.add_options, app.seeded)
    chosen = with_gids(parser, parser.read(settings), None, graph.num_nodes)
    chosen.execution, chosen.verify, chosen.checkpoint = "auto", verify, None
    state = graph.prepared(app, chosen)

    def run(source: int | None) -> tuple[Answer, float]:
        return timed(app, graph.part, Sync(graph.plan, graph.comm), source, state, chosen)

    def check(source: int | None, answer: Answer) -> None:
        app.check(graph.part, Sync(graph.plan, graph.comm), source, answer, state, chosen)

    best, times, rounds, sums, taken = float("inf"), list[float](), [], [], np.zeros(3)
    found: dict[str, Any] = {"app": app.name, "settings": settings, "verified": verify or None}
    for source in sources if app.needs_source else [None]:
        answer, _ = run(source)  # loads what is missing
        if verify and not times:
            found["verify_ms"] = fastest(graph, lambda: check(source, answer), 2)  # noqa: B023 - called at once
        rounds.append(int(answer.rounds))
        sums.append(sums_of(answer.on_host(), graph))
        taken -= taken_by_hosts(graph.comm)
        milliseconds = [run(source)[1] * 1e3 for _ in range(trials)]
        taken += taken_by_hosts(graph.comm)
        times.append(statistics.median(milliseconds))
        best = min(best, *milliseconds)
    found |= {"ms": statistics.median(times), "best_ms": best, "all_ms": times, "rounds": rounds}
    found |= {
        "prepare_ms": graph.preparation_seconds[app.name] * 1e3,
        "answers": f"{zlib.crc32(repr(sums).encode()):08x}",
    }
    sent, packets, seconds = (taken / (len(times) * trials)).tolist()
    found |= {"network_mb": sent / 1e6, "packets": packets, "cpu_ms": seconds * 1e3}
    return found | answer.in_numbers().figures


def one_pass(graph: PartitionedGraph) -> Callable[[], None]:
    """A function that goes over all edges once. Collective."""
    part, plan, comm = graph.part, graph.plan, graph.comm
    given = everywhere(part, Sync(plan, comm), part.gids[: part.num_masters] % 2, 0)

    def add() -> None:
        label = Label(part, np.int64, 0, ADD)
        EQUAL(part, sum=label, given=given)
        Sync(plan, comm).reduce(label, write="dst")

    return add


def fastest(graph: PartitionedGraph, call: Callable[[], None], times: int) -> float:
    """Milliseconds of the fastest of some calls, on the slowest rank. Collective."""
    found = []
    for _ in range(times):
        graph.comm.Barrier()
        began = time.perf_counter()
        call()
        wait(graph.part)
        found.append(graph.comm.allreduce(time.perf_counter() - began, MPI.MAX))
    return min(found) * 1e3


def taken_by_hosts(comm: MPI.Intracomm) -> np.ndarray:
    """Bytes with headers and packets that all hosts have sent until now, seconds of all ranks on cores. Collective."""
    host = comm.Split_type(MPI.COMM_TYPE_SHARED)
    devices = [line.replace(":", " ").split() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    sent = [sum(int(device[field]) for device in devices if device[0] != "lo") for field in (9, 10)]
    total = comm.allreduce(np.array([*(sent if host.rank == 0 else (0, 0)), time.process_time()]))
    host.Free()
    return total


def sums_of(answer: Answer, graph: PartitionedGraph) -> list[str]:
    """The sum of each label times the node, to as many digits as do not depend on the order of adding."""
    sums, nodes = [], to_host(graph.part.gids[: graph.part.num_masters])
    for name, label in answer.labels.items():
        whole = label.dtype.kind in "iu"
        terms = label.astype(np.int64) if whole else np.where(np.isfinite(label), label, -1)
        total = graph.comm.allreduce((terms * nodes).sum().item())
        sums.append(f"{name} {total % 2**64}" if whole else f"{name} {total:.6g}")
    return sorted(sums)


def line_of(row: dict[str, Any]) -> str:
    """One row as a line of the table."""
    if row["app"] == "partition":
        rounds, more = "-", ", ".join(f"{phase} {seconds:.3f} s" for phase, seconds in row["phases"].items())
    else:
        rounds = f"{statistics.mean(row['rounds']):.1f}"
        more = f"{row['network_mb']:.3f} MB over networks, answers {row['answers']}"
        if row["verified"]:
            share = row["verify_ms"] / max(3 * row["best_ms"], row["pass_ms"], FLOOR)
            more += f", check {row['verify_ms']:,.2f} ms, {share:.2f} of what it may take"
    return LINE.format(row["graph"], row["policy"], row["ranks"], row["app"], f"{row['ms']:,.3f}", rounds, more)


if __name__ == "__main__":
    run_main(main)
