"""Rungs with a queue of the frontier, in which a thread or a warp has a row."""

from scripts.bench.ladder.graph import Found, Graph, Source


def queue(graph: Graph, source: Source) -> Found:
    """The frontier is a queue, with a thread for each of its nodes; one counter says where the next one goes.

    A level costs what its frontier costs, not what the graph does: with thousands of small levels that is the largest
    step of all. In large levels all threads queue up for the one counter, since atomics on one address follow each
    other.
    """
    return _level_by_level(graph, source, "push_queue", 1)


def private_queue(graph: Graph, source: Source) -> Found:
    """Each block collects in shared memory, and takes room in the queue once for all of it (Luo, Wong, Hwu, DAC 2010).

    A level has an atomic on the common counter per block rather than per node, and writes its queue in streams. Rows
    are as unbalanced as before, and small levels have two more barriers.
    """
    return _level_by_level(graph, source, "push_private", 1)


def warps(graph: Graph, source: Source) -> Found:
    """A warp has a row (Hong, Kim, Oguntebi, Olukotun, PPoPP 2011), and a ballot appends with one atomic.

    Lanes read neighbouring targets, and a hub takes a 32nd of the time. Where rows have three edges, as those of
    roads, 29 lanes of 32 have nothing to do.
    """
    return _level_by_level(graph, source, "push_warps", 32)


def _level_by_level(graph: Graph, source: Source, kernel: str, threads: int) -> Found:
    """``threads`` for each node of the queue."""
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
