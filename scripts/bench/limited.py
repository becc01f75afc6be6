"""Algorithms on graphs that are larger than a limit on the card's memory: ``python -m scripts.bench.limited``.

Each one runs with all edges in the memory of the card, then with shares of them, the rest of which comes over the link.
Answers are compared. For a graph that does not fit at all, ``--limit`` says how much of the card is used; where a card
is large enough, ``--unlimited`` shows the same without: each line ends with a fingerprint of the answers.
"""

import argparse
import statistics
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cusp.apps import library
from cusp.apps.harness import choose_sources, commit
from cusp.apps.run.partitioned_graph import PartitionedGraph
from cusp.launch import num_bytes, parse_together, run_main
from cusp.partition import Partition
from cusp.runtime.mpi import MPI
from cusp.runtime.storage import Usage, peak_mb
from scripts.bench.gpus import make_graph
from scripts.bench.shared.rows import ROWS, keep

SETTINGS: dict[str, dict[str, Any]] = {"pagerank": {"iterations": 5, "tolerance": 0.0, "unweighted": True}}
WITH_SOURCE = ("bfs", "sssp")
WEIGHTED = ("sssp",)


def main(comm: MPI.Intracomm, argv: list[str]) -> int:
    """Measure every graph and app; rank 0 prints and keeps rows. Collective."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default="kron26", help="kronSCALE, roadSIDE and ringNODES, with commas")
    parser.add_argument("--apps", default="bfs,sssp,cc,pagerank")
    parser.add_argument("--shares", default="1,0.25,0", help="of the edges that are on the card (default: %(default)s)")
    parser.add_argument("--limit", type=num_bytes, help="of the card, for the whole graph; instead of shares")
    parser.add_argument("--unlimited", action="store_true", help="all in the memory of the card; instead of shares")
    parser.add_argument("--sources", type=int, default=4)
    parser.add_argument("--trials", type=int, default=3, help="of apps without sources")
    parser.add_argument("--precision", default="float64", help="of pagerank (default: %(default)s)")
    parser.add_argument("--verify", action="store_true", help="check an answer of each app")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="for the graphs, which may be large")
    parser.add_argument("--rows", type=Path, default=ROWS / "limited.jsonl", help="rows are appended here")
    options = parse_together(comm, parser, argv)
    for name in options.graphs.split(","):
        path = make_graph(name, options.folder, comm)
        apps = options.apps.split(",")
        for weighted in sorted({app in WEIGHTED for app in apps}):
            for row in measure(name, path, [app for app in apps if (app in WEIGHTED) == weighted], options, comm):
                if comm.rank == 0:
                    keep([row], options.rows)
                    print(line_of(row), flush=True)
    return 0


def measure(name: str, path: str, apps: list[str], options: argparse.Namespace, comm: MPI.Intracomm) -> Iterator[dict]:
    """A row for each app and share, or for each app under the limit. Collective."""
    shares = [None] if options.limit or options.unlimited else [float(share) for share in options.shares.split(",")]
    limit = None if options.unlimited else options.limit or int(0.9 * card_memory()[0])
    weights = any(app in WEIGHTED for app in apps)
    graph = library.partition_graph(path, comm=comm, weights=weights, device="gpu", memory_limit=limit)
    seconds = sum(graph.seconds.values())
    chosen = argparse.Namespace(source=None, sources=options.sources, seed=1)
    sources = choose_sources(graph.part, comm, chosen)
    for app in apps:
        expected = None
        for share in shares:
            run_all(app, graph, sources[:1], 1, options.precision, options.verify)  # prepares
            if share is not None:
                graph.part.storage.settle(share)
            times, sums = run_all(app, graph, sources, options.trials, options.precision)
            usage = graph.part.storage.usage() or Usage(0, edge_bytes(graph.part), 0, 0)
            expected = expected or sums
            yield {
                "graph": name, "app": app, "ranks": comm.size, "nodes": graph.part.num_nodes,
                "edges": graph.part.num_edges, "share": share, "ms": statistics.median(times) * 1e3,
                "verified": sums == expected, "answers": fingerprint(sums), "partition_seconds": seconds,
                "peak_mb": peak_mb(), "card_used": card_memory()[1], "source": sources[0], "commit": commit(),
                **usage._asdict(),
            }  # fmt: skip


def run_all(
    app: str, graph: PartitionedGraph, sources: list[int], trials: int, precision: str, verify: bool = False
) -> tuple[list[float], list[Any]]:
    """Seconds and checksums of an app from each source, or of so many trials. Collective."""
    function, settings = getattr(library, app), SETTINGS.get(app, {}) | {"verify": verify}
    settings |= {"precision": precision} if app == "pagerank" else {}
    calls = [{"source": source} for source in sources] if app in WITH_SOURCE else [{}] * trials
    times, sums = [], []
    for call in calls:
        result = function(graph, gather=False, **call, **settings)
        times.append(result.seconds)
        labels = [label for name, label in result.local.items() if name != "node"]
        sums.append(
            [label.astype(np.int64 if label.dtype.kind == "i" else np.float64).sum().item() for label in labels]
        )
    return times, sums


def edge_bytes(part: Partition) -> int:
    """Of the local CSR."""
    return int(part.targets.nbytes + (0 if part.weights is None else part.weights.nbytes))


def fingerprint(sums: list[Any]) -> str:
    """The same for the same checksums."""
    return f"{zlib.crc32(repr(sums).encode()):08x}"


def card_memory() -> tuple[int, int]:
    """Bytes that are free, and that all programs use."""
    import cupy as cp

    free, whole = cp.cuda.runtime.memGetInfo()
    return int(free), int(whole - free)


def line_of(row: dict[str, Any]) -> str:
    """One row as a line of the table."""
    share = "limit" if row["share"] is None else f"{row['share']:.0%}"
    return (
        f"{row['graph']} {row['app']:<9} {share:>5} on the card: {row['ms']:9.3f} ms, {row['resident'] / 1e9:6.2f} GB "
        f"there, {row['hosted'] / 1e9:6.2f} GB hosted, link {row['rate'] / 1e9:.1f} GB/s, "
        f"partition {row['partition_seconds']:.1f} s, host {row['peak_mb'] / 1e3:.1f} GB, card "
        f"{row['card_used'] / 1e9:.1f} GB, answers {row['answers']}"
        f"{'' if row['verified'] else ' WRONG ANSWER'}"
    )


if __name__ == "__main__":
    run_main(main)
