"""The numbers on the page: of a partition, and of runs on it."""

import os
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from cusp import ADD, Label, PartitionedGraph, Result, Sync
from cusp.apps import library
from cusp.apps.run.cli import gid_of
from cusp.commands.draw_trace import US_PER_MS, Band, band, ranks_of, read_events, stretch
from cusp.errors import together
from cusp.program import report
from cusp.runtime.devices import to_host
from cusp.runtime.leftovers import scratch_folder
from cusp.runtime.timeline import PHASE, ROUND

LABEL_BYTES = 4
MOST_COLUMNS, MOST_CELLS = 160, 6000  # of the timelines: of one, of all ranks


class Degrees(NamedTuple):
    """Nodes with ``lowest`` to ``highest`` out-edges: how many, and how many ranks each is on in the mean."""

    lowest: int
    highest: int
    nodes: int
    replication: float


class Run(NamedTuple):
    """One run of an algorithm, from ``source`` if it needs one.

    Attributes
    ----------
    sent : float
        Bytes, of all ranks; 0 where they share memory.
    round_ms : list of float
        Of the slowest rank; empty if the run had no rounds that all ranks ended together.
    bands : list of Band
        Timeline of each rank.
    """

    app: str
    source: str | None
    result: Result
    sent: float
    round_ms: list[float]
    round_bytes: list[float]
    bands: list[Band]


class Figures(NamedTuple):
    """A graph with its name, and all that is known of it.

    Attributes
    ----------
    phases : list of dict of float
        Seconds by phase, of each rank.
    traffic : (ranks, ranks) int64
        Bytes from rank to rank when every mirror that plays a role is synced once, with a label of 4 bytes.
    """

    graph: PartitionedGraph
    name: str
    phases: list[dict[str, float]]
    traffic: np.ndarray
    degrees: list[Degrees]
    runs: list[Run]


def collect(graph: PartitionedGraph, name: str, apps: Iterable[str], source: str | None) -> Figures:
    """Measure a partition, and run algorithms on it. Collective; the runs are whole on rank 0."""
    comm, name = graph.comm, os.path.basename(os.path.normpath(name))
    found = Figures(graph, name, comm.allgather(graph.seconds), traffic_of(graph), degrees_of(graph), [])
    with together(comm):
        start = None if source is None else gid_of(source, graph.names, graph.num_nodes, "--source")
    start = most_out_edges(graph) if start is None else start
    with scratch_folder() as folder:
        for app in apps:
            report.progress(comm.rank, app)
            found.runs.append(run_of(graph, app, start, os.path.join(folder, f"{app}.json")))
    return found


def traffic_of(graph: PartitionedGraph) -> np.ndarray:
    """See :class:`Figures`. Collective."""
    mirrors, masters = graph.plan.dst.mirrors, graph.plan.src.masters  # reduced, broadcast
    sent = [LABEL_BYTES * (own.size + kept.size) for own, kept in zip(mirrors, masters, strict=True)]
    return np.array(graph.comm.allgather(sent), np.int64)


def degrees_of(graph: PartitionedGraph) -> list[Degrees]:
    """Replication of nodes with 0, 1, 2 to 3, 4 to 7 ... out-edges. Collective."""
    part = graph.part
    copies = Label(part, np.int32, 0, ADD)
    copies.values[part.num_masters :] = 1
    copies.mark_all()
    Sync(graph.plan, graph.comm).reduce(copies, write="any")
    proxies = 1 + to_host(copies.values[: part.num_masters])
    group = np.frexp(to_host(part.degrees[: part.num_masters]).astype(np.float64))[1]  # 0 for 0, 1 for 1, 2 for 2, 3
    nodes = graph.comm.allreduce(np.bincount(group, minlength=64))
    ranks = graph.comm.allreduce(np.bincount(group, proxies, minlength=64))
    return [
        Degrees(1 << place >> 1, (1 << place) - 1, int(nodes[place]), ranks[place] / nodes[place])
        for place in map(int, nodes.nonzero()[0])
    ]


def most_out_edges(graph: PartitionedGraph) -> int:
    """The node with most out-edges; of several, the first. Collective."""
    part = graph.part
    degrees, gids = to_host(part.degrees[: part.num_masters]), to_host(part.gids[: part.num_masters])
    best = max(zip(degrees.tolist(), (-gids).tolist()), default=(-1, 0))
    return -max(graph.comm.allgather(best))[1]


def run_of(graph: PartitionedGraph, app: str, start: int, trace: str) -> Run:
    """Run an algorithm and read its timeline, which rank 0 writes. Collective."""
    source = [start if graph.names is None else graph.names[start]] if library.app_of(app).needs_source else []
    result = getattr(library, app)(graph, *source, gather=False, trace=trace)
    timeline = timeline_of(trace, graph.comm.size) if graph.comm.rank == 0 else (0.0, [], [], [])
    return Run(app, str(source[0]) if source else None, result, *timeline)


def timeline_of(trace: str, ranks: int) -> tuple[float, list[float], list[float], list[Band]]:
    """Bytes sent, milliseconds and bytes of each round, and the band of each rank, from a trace of one run."""
    events = read_events(trace)
    begin, end = stretch(events, trace, "run")
    inside = [event for event in events if event["ph"] == "X" and begin <= event["ts"] <= end]
    sent = sum(event.get("args", {}).get("bytes", 0) for event in inside if event["cat"] not in (ROUND, PHASE))
    ms: dict[str, float] = {}
    sizes: dict[str, float] = {}
    for event in inside:
        if event["cat"] == ROUND:
            name = event["name"]
            ms[name] = max(ms.get(name, 0.0), event["dur"] / US_PER_MS)
            sizes[name] = sizes.get(name, 0.0) + event.get("args", {}).get("bytes", 0)
    columns = max(min(MOST_COLUMNS, MOST_CELLS // ranks), 30)
    edges = np.linspace(begin, end, columns + 1)
    bands = [band(events, rank, name, edges) for rank, name in ranks_of(events)]
    return float(sent), [*ms.values()], [*sizes.values()], bands
