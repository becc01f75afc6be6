"""Rungs that balance the edges of a frontier over threads, however long its rows are."""

import cupy as cp
import numpy as np

from cusp.apps.operators.traversal.interfaces import ALPHA, BETA
from cusp.kernels.cuda import BLOCK, many_threads
from scripts.bench.ladder.graph import Found, Graph, Source

TOGETHER = (1, 32, BLOCK)  # threads that have a row of each bucket
MOST = 4096  # nodes of a frontier that one block is enough for
ONE_BLOCK = 1024  # its threads


def buckets(graph: Graph, source: Source) -> Found:
    """A queue for rows of fewer than 32 edges, of fewer than 1024, and of more: a thread, a warp or a block has a row.

    Enterprise (Liu, Huang, SC 2015) and cuGraph divide frontiers so. Now rows of a launch are of a similar length.
    The price is up to three launches for a level, and that the degree of each node is looked up when it is found.
    """
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
    """A block takes 256 rows: its long ones together, middling ones by warps, the edges of all others by a scan.

    Merrill, Garland, Grimshaw (PPoPP 2012). One launch for a level, no lane without an edge, and one queue. A scan
    and a few barriers for every 256 rows are what it costs.
    """
    graph.begin(source)
    count = 1

    def advance(level: int) -> int:
        nonlocal count
        count = _push(graph, level, count)
        return count

    return graph.search(advance)


def one_block(graph: Graph, source: Source) -> Found:
    """The same, but frontiers of up to 4,096 nodes are the work of one block, which goes on to the next level itself.

    A launch and a look at the counter take about 15 us; a barrier of a block takes 0.1 us. Hence the levels of a road
    network cost a fraction, and graphs of few and large levels gain nothing.
    """
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
    """A level only sets flags, and the nodes with flags are then selected: a scan, as CUB's DeviceSelect has one.

    CuPy's ``flatnonzero`` does it, with a scan of its own and a kernel that writes; it does not call CUB. No atomics
    at all, and the queue is in order, so that neighbouring lanes have neighbouring rows. But each level reads the
    flags of all nodes: work for large frontiers only.
    """
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
    """Large levels pull, all others push (Beamer, Asanovic, Patterson, SC 2012), with a launch or two for a level.

    Where most edges of a level lead to nodes that are reached, the nodes that are not look for one of the frontier,
    and stop at the first: of a Kronecker graph a few edges in a hundred are left to inspect. A road network hardly
    ever has such a level.
    """
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
