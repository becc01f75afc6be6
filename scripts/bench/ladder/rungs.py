"""The rungs of the ladder: docs/ladder.md says of each what it is for, and what it costs."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import cupy as cp
import numpy as np

from cusp.apps import bfs, semiring
from cusp.apps.operators.traversal.interfaces import ALPHA, BETA
from cusp.kernels.cuda import BLOCK, many_threads
from scripts.bench.ladder.graph import Found, Graph, Source

TOGETHER = (1, 32, BLOCK)  # threads that have a row of each bucket
MOST = 4096  # nodes of a frontier that one block is enough for
ONE_BLOCK = 1024  # its threads


class Rung(NamedTuple):
    """A way to search; ``counts`` says that its kernels can count what they look at."""

    run: Callable[[Graph, Source], Found]
    counts: bool = True


def edge_centric(graph: Graph, source: Source) -> Found:
    """A thread for each edge of a list of pairs, in every level."""
    kernels, hops, counters = graph.kernels("every_node"), graph.hops, graph.counters
    graph.begin(source)

    def advance(level: int) -> int:
        kernels.look_at_edges(many_threads(), graph.struct, hops, level, counters)
        return graph.found(level)[0]

    return graph.search(advance)


def by_flags(kernel: str, graph: Graph, source: Source) -> Found:
    """A thread for each node; flags say who is in the frontier."""
    run, hops, counters = getattr(graph.kernels("every_node"), kernel), graph.hops, graph.counters
    flags = graph.pair("flags", graph.nodes, bool)
    graph.begin(source)
    for each in flags:
        each.fill(False)
    flags[0][source.lid] = True

    def advance(level: int) -> int:
        run(many_threads(), graph.struct, hops, level, flags[1 - level % 2], flags[level % 2], counters)
        return graph.found(level)[0]

    return graph.search(advance)


def by_queue(kernel: str, threads: int, graph: Graph, source: Source) -> Found:
    """``threads`` for each node of a queue of the frontier."""
    run, hops, queues, counters = getattr(graph.kernels("queues"), kernel), graph.hops, graph.queues, graph.counters
    graph.begin(source)
    count = 1

    def advance(level: int) -> int:
        nonlocal count
        last, new = queues[1 - level % 2], queues[level % 2]
        run(threads * count, graph.struct, hops, level, last, count, new, counters)
        count = graph.found(level)[0]
        return count

    return graph.search(advance)


def buckets(graph: Graph, source: Source) -> Found:
    """A queue for rows of fewer than 32 edges, of fewer than 1024, and of more: for threads, warps and blocks."""
    kernels, hops, counters = graph.kernels("balanced"), graph.hops, graph.counters
    queues = graph.pair("buckets", 3 * graph.nodes, np.int32)
    graph.begin(source)
    kernels.begin_buckets(1, graph.struct, source.lid, queues[0], counters, block=1)
    counts = graph.found(0)

    def advance(level: int) -> int:
        nonlocal counts
        last, new = queues[1 - level % 2], queues[level % 2]
        for bucket, (together, count) in enumerate(zip(TOGETHER, counts)):
            arguments = hops, level, bucket, together, last, count, new, counters
            kernels.push_bucket(together * count, graph.struct, *arguments)
        counts = graph.found(level)
        return sum(counts)

    return graph.search(advance)


def gathered(graph: Graph, source: Source) -> Found:
    """A block takes 256 rows: its long ones together, middling ones by warps, the edges of all others by a scan."""
    graph.begin(source)
    count = 1

    def advance(level: int) -> int:
        nonlocal count
        count = _push(graph, level, count)
        return count

    return graph.search(advance)


def one_block(graph: Graph, source: Source) -> Found:
    """The same, but frontiers of up to 4,096 nodes are the work of one block, which goes on by itself."""
    kernels, hops, counters = graph.kernels("balanced"), graph.hops, graph.counters
    graph.begin(source)
    count, level = 1, 0
    while count:
        level += 1
        if count <= MOST:
            kernels.push_levels(
                ONE_BLOCK, graph.struct, hops, level, *graph.queues, count, MOST, counters, block=ONE_BLOCK
            )
            count, level, _ = graph.read()[9:]
        else:
            count = _push(graph, level, count)
    return Found(hops, level)


def compacted(graph: Graph, source: Source) -> Found:
    """A level only sets flags, and the nodes with flags are then selected."""
    kernels, hops = graph.kernels("balanced"), graph.hops
    marked = graph.array("marked", graph.nodes, bool)
    graph.begin(source)
    marked.fill(False)
    queue = cp.full(1, source.lid, np.int64)

    def advance(level: int) -> int:
        nonlocal queue
        kernels.push_marking(queue.size, graph.struct, hops, level, queue, queue.size, marked)
        queue = cp.flatnonzero(marked)
        return queue.size

    return graph.search(advance)


def either_way(graph: Graph, source: Source) -> Found:
    """Large levels pull, all others push (Beamer, Asanovic, Patterson, SC 2012), with a launch or two for a level."""
    kernels, hops, counters, queues = graph.kernels("every_node"), graph.hops, graph.counters, graph.queues
    words = -(-graph.nodes // 32)
    bits = graph.pair("bits", words, np.uint32)
    graph.begin(source)
    nodes, edges, before, unexplored, pulled = 1, 0, 0, graph.part.num_edges, False

    def advance(level: int) -> int:
        nonlocal nodes, edges, before, unexplored, pulled
        last, new, unexplored = 1 - level % 2, level % 2, unexplored - edges
        pull = nodes >= before or nodes > graph.nodes // BETA if pulled else edges > unexplored // ALPHA
        if pull and not pulled:
            bits[last].fill(0)
            kernels.queue_to_bits(nodes, queues[last], nodes, bits[last])
        elif pulled and not pull:
            place = graph.once("place", lambda: cp.zeros(1, np.uint64))
            place.fill(0)
            kernels.bits_to_queue(32 * words, bits[last], graph.nodes, queues[last], place)
        before, pulled = nodes, pull
        if pull:
            kernels.pull_bits(many_threads(), graph.struct, hops, level, bits[last], bits[new], counters)
        else:
            _push(graph, level, nodes, with_edges=True)
        nodes, edges, _ = graph.found(level)
        return nodes

    return graph.search(advance)


def _push(graph: Graph, level: int, count: int, with_edges: bool = False) -> int:
    """A level of :func:`gathered`: the queue of the last one to that of this one, whose size is returned."""
    queues, push = graph.queues, graph.kernels("balanced").push_gathered
    arguments = queues[1 - level % 2], count, queues[level % 2], int(with_edges), graph.counters
    push(count, graph.struct, graph.hops, level, *arguments)
    return 0 if with_edges else graph.found(level)[0]


def library(graph: Graph, source: Source) -> Found:
    """``cusp bfs``: the whole search in one kernel."""
    prepared = graph.once("prepared", lambda: bfs.prepare(graph.part, graph.sync))
    answer = bfs.bfs(graph.part, graph.sync, source.gid, prepared=prepared)
    return Found(answer.labels["hops"], int(answer.rounds))


def products(graph: Graph, source: Source) -> Found:
    """As linear algebra: apps/semiring.py."""
    matrix = graph.once("matrix", lambda: semiring.Matrix(graph.part, graph.sync))
    answer = semiring.bfs(matrix, source.gid)
    return Found(answer.labels["hops"], int(answer.rounds))


RUNGS = {
    "edge-centric": Rung(edge_centric),
    "push by flags": Rung(partial(by_flags, "push_flags")),
    "pull by flags": Rung(partial(by_flags, "pull_flags")),
    "queue": Rung(partial(by_queue, "push_queue", 1)),
    "private queue": Rung(partial(by_queue, "push_private", 1)),
    "warp per row": Rung(partial(by_queue, "push_warps", 32)),
    "buckets by degree": Rung(buckets),
    "gathered": Rung(gathered),
    "one block": Rung(one_block),
    "compacted": Rung(compacted),
    "either way": Rung(either_way),
    "cusp bfs": Rung(library, counts=False),
    "matrix products": Rung(products, counts=False),
}
