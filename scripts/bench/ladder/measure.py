"""Run a rung of the ladder: how long it takes, how many levels, edges and bytes, and whether its answer is right."""

from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import cupy as cp
import numpy as np

from cusp.apps.shared.splitmix64 import splitmix64
from cusp.apps.verify.paths import verify_hops
from cusp.runtime.devices import to_host
from scripts.bench.gpu import device_ms, make_part
from scripts.bench.ladder.graph import PLACES, Found, Graph, Source, graph_of
from scripts.bench.ladder.rungs import RUNGS, Rung, library

MOST_TRIED = 64  # nodes that may become sources


def choose_sources(graph: Graph, number: int) -> dict[Source, Any]:
    """Sources from which most nodes are reached that have edges, and the library's hops from each.

    Those of the first are checked, edge by edge.
    """
    part = graph.part
    lids = to_host(cp.flatnonzero(part.degrees > 0))
    gids = to_host(part.gids)[lids]
    chosen: dict[Source, Any] = {}
    for place in islice(np.argsort(splitmix64(gids, 1)), MOST_TRIED):
        source = Source(int(gids[place]), int(lids[place]))
        hops = library(graph, source).hops
        if 2 * int((hops >= 0).sum()) > lids.size:
            chosen[source] = hops
        if len(chosen) == number:
            break
    if not chosen:
        raise SystemExit(f"no component has most of the nodes: of {MOST_TRIED} none is a source worth a search")
    first = next(iter(chosen))
    verify_hops(part, graph.sync, first.gid, chosen[first])
    return chosen


def compile_all() -> None:
    """Search a small graph by every rung, with and without counts: later ones find all kernels compiled."""
    graph = graph_of(make_part("ring64"))
    for name, rung in RUNGS.items():
        for source, hops in choose_sources(graph, 1).items():
            require_same(name, source, rung.run(graph, source), hops)
            if rung.counts:
                count(rung, graph, source)


def measure(name: str, graph: Graph, expected: dict[Source, Any]) -> dict[str, Any]:
    """The row of a rung: milliseconds of a search from each source, after a warm-up from the first.

    Parameters
    ----------
    expected : dict
        The sources, and the hops from each.

    Returns
    -------
    dict
        ``ms``, ``best_ms`` and ``all_ms`` by events of the device, ``levels`` of each search, and of the first of
        them ``inspected`` edges, ``moved`` bytes and ``gb_s``, their number over its time; None if it cannot count.
    """
    rung, times, levels = RUNGS[name], [], []
    first = next(iter(expected))
    rung.run(graph, first)
    for source, hops in expected.items():
        found, spent = device_ms(partial(rung.run, graph, source))
        require_same(name, source, found, hops)
        times.append(spent)
        levels.append(found.levels)
    inspected, moved = count(rung, graph, first) if rung.counts else (None, None)
    rate = None if moved is None else moved / times[0] / 1e6
    row = {"rung": name, "place": [*RUNGS].index(name), "inspected": inspected, "moved": moved, "gb_s": rate}
    return row | {"ms": float(np.median(times)), "best_ms": min(times), "all_ms": times, "levels": levels}


def count(rung: Rung, graph: Graph, source: Source) -> tuple[int, int]:
    """Edges that a search inspects, and bytes that it reads or writes, by kernels that are compiled to count.

    An entry of an array counts at its own width each time that a thread asks for it: the targets of edges, hops,
    flags, rows' offsets, entries of queues. What is not counted: the reset of the hops, the host's look at counters,
    and the scan of ``flatnonzero``. So the rate is that of the useful traffic; caches may serve it faster than memory
    could, and sectors of 32 bytes that are read for 4 make it lower.
    """
    tally = cp.zeros(2 * PLACES, np.uint64)
    rung.run(replace(graph, tally=tally), source)
    edges, moved = to_host(tally).reshape(-1, 2).sum(axis=0).tolist()
    return edges, moved


def require_same(name: str, source: Source, found: Found, hops: Any) -> None:
    """Exit unless a search has found these hops."""
    wrong = int((found.hops != hops).sum())
    if wrong:
        raise SystemExit(f"{name}: {wrong} wrong hops from node {source.gid}")
