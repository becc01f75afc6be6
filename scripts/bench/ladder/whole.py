"""The rungs that are not of the ladder's own making: the library's search, and its search as products of a matrix."""

from cusp.apps import bfs, semiring
from scripts.bench.ladder.graph import Found, Graph, Source


def library(graph: Graph, source: Source) -> Found:
    """``cusp bfs``: the whole search in one kernel, which stays on the GPU, with a barrier of all blocks for a level.

    Nothing is launched or read back between levels, edges are shared out evenly over all warps by numbers that the
    queue has anyway, and large levels pull, their first neighbours out of an array of their own. Narrow levels of deep
    searches are taken in bursts: a block goes on for some of them without waiting for the others.
    """
    prepared = graph.once("prepared", lambda: bfs.prepare(graph.part, graph.sync))
    answer = bfs.bfs(graph.part, graph.sync, source.gid, prepared=prepared)
    return Found(answer.labels["hops"], int(answer.rounds))


def products(graph: Graph, source: Source) -> Found:
    """As linear algebra (``apps/semiring.py``): hops = min(hops, A^T hops) over (min, + 1), with a sparse vector.

    Three lines, and right on any number of ranks. A level is several launches that know nothing of each other, and
    always pushes.
    """
    matrix = graph.once("matrix", lambda: semiring.Matrix(graph.part, graph.sync))
    answer = semiring.bfs(matrix, source.gid)
    return Found(answer.labels["hops"], int(answer.rounds))
