"""In-edges: the rows that a pull walks through, and the ends of the stored edges that it reads and writes."""

from typing import Any, NamedTuple

from cusp.partition import Partition


class InEdges(NamedTuple):
    """In-edges of every proxy.

    Attributes
    ----------
    offsets : (proxies + 1,) int64
    sources : (edges,) int32
        The in-edges of node v come from ``sources[offsets[v] : offsets[v + 1]]``.
    read, write : {'src', 'dst'}
        Ends of the edges, as they are stored, that a pull reads and writes.
    """

    offsets: Any
    sources: Any
    read: str
    write: str


def in_edges_of(part: Partition) -> InEdges | None:
    """The in-edges of this rank's proxies, or None if the partition has none.

    Those of a symmetric graph are its own rows: the reversed edges are the same set. So a pull there writes at the
    source of a stored edge, and reads at its target.
    """
    if part.symmetric:
        return InEdges(part.offsets, part.targets, "dst", "src")
    if part.csc is None:
        return None
    return InEdges(part.csc.offsets, part.csc.sources, "src", "dst")
