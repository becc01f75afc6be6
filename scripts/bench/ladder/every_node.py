"""Rungs that inspect every edge or every node in each level."""

from cusp.kernels.cuda import many_threads
from scripts.bench.ladder.graph import Found, Graph, Source


def edge_centric(graph: Graph, source: Source) -> Found:
    """Every thread has an edge of a list of pairs; a flag says whether anything has changed.

    No row is long or short here, so nothing is out of balance, and all reads of the list are streams. But the whole
    list is read in every level: levels times edges of work, for a search that needs each edge once.
    """
    kernels, hops, counters = graph.kernels("every_node"), graph.hops, graph.counters
    graph.begin(source)

    def advance(level: int) -> int:
        kernels.look_at_edges(many_threads(), graph.struct, hops, level, counters)
        return graph.found(level)[0]

    return graph.search(advance)


def push_flags(graph: Graph, source: Source) -> Found:
    """Every thread has a node, and goes through its row if its flag says that it is in the frontier.

    Each edge is inspected once, and a level reads a byte of every node instead of eight of every edge. The new
    trouble is balance: 31 lanes wait for the one that has a hub, and lanes read far from each other.
    """
    return _by_flags(graph, source, "push_flags")


def pull_flags(graph: Graph, source: Source) -> Found:
    """Every thread has a node, and looks for a neighbour in the frontier, if it is not reached yet.

    It stops at the first, and nobody writes what is another's. That wins where the frontier is most of the graph, so
    that the first neighbours are in it. In all other levels nodes look through whole rows in vain: again and again
    the same edges.
    """
    return _by_flags(graph, source, "pull_flags")


def _by_flags(graph: Graph, source: Source, kernel: str) -> Found:
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
