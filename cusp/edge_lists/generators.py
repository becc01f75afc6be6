"""Graphs made by rule, random or regular: the same on any number of ranks."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cusp.edge_lists import random_kernels
from cusp.edge_lists.csr_builder import CsrBuilder
from cusp.edge_lists.csr_plan import MAX_NODES
from cusp.edge_lists.random_kernels import MAX_SPAN, WeightRule, require
from cusp.errors import OptionError, together
from cusp.input.graph_file import index_dtype
from cusp.runtime.mpi import MPI
from cusp.runtime.threads import ordered_map

BATCH = 2**20  # edge numbers that one thread works on at a time
MAX_SCALE = 40
RMAT = (0.57, 0.19, 0.19)  # A, B, C of the Graph500 benchmark; D is the rest

Edges = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class EdgeStream:
    """A graph as a function of edge numbers.

    Attributes
    ----------
    num_nodes : int
    size : int
        Edge numbers are ``0 ... size - 1``; each gives one edge or none.
    edges : function (first, last) -> (sources, targets)
        The edges of a range of numbers, as arrays of the same length.
    undirected : bool
        Whether each edge stands for both directions.
    """

    num_nodes: int
    size: int
    edges: Callable[[int, int], Edges]
    undirected: bool = False


def rmat(seed: int, scale: int, edge_factor: int = 16) -> EdgeStream:
    """RMAT with the parameters of Graph500: ``2**scale`` nodes, ``edge_factor`` times as many edges.

    A few nodes have very many edges. A seeded bijection permutes the ids, so that an id says nothing about the
    degree. Probabilities are rounded to multiples of 2**-16.
    """
    require(0 <= scale <= MAX_SCALE, f"scale is {scale}, not between 0 and {MAX_SCALE}")
    require(edge_factor >= 0, f"edge factor is {edge_factor}, below 0")
    size = edge_factor * 2**scale
    require(size < 2**63, f"edge factor {edge_factor:,} makes {size:,} edges with scale {scale}, not fewer than 2^63")
    thresholds = np.rint(np.cumsum(RMAT) * 2**16).astype(np.uint64)

    def edges(first: int, last: int) -> Edges:
        ends = _two_arrays(last - first, 2**scale)
        random_kernels.rmat_edges(scale, random_kernels.key_of(seed), first, thresholds, *ends)
        return ends

    return EdgeStream(2**scale, size, edges)


def uniform(seed: int, nodes: int, edges: int) -> EdgeStream:
    """Edges whose two ends are drawn independently among all nodes (at most 2**32)."""
    require(1 <= nodes <= MAX_SPAN, f"nodes is {nodes}, not between 1 and {MAX_SPAN}")
    require(edges >= 0, f"edges is {edges}, below 0")

    def draw(first: int, last: int) -> Edges:
        ends = _two_arrays(last - first, nodes)
        random_kernels.uniform_edges(nodes, random_kernels.key_of(seed), first, *ends)
        return ends

    return EdgeStream(nodes, edges, draw)


def road(seed: int, width: int, height: int, keep: float = 0.6) -> EdgeStream:
    """A lattice in which each undirected edge is kept with probability ``keep``: low degrees, long paths.

    Node ``y * width + x`` has neighbours at x - 1, x + 1, y - 1 and y + 1. Edge numbers 2 v and 2 v + 1
    are the edges from v to the right and down.
    """
    require(width >= 1 and height >= 1, f"the lattice is {width} x {height}, but both must be at least 1")
    require(width * height <= MAX_NODES, f"the lattice has {width * height} nodes, more than {MAX_NODES}")
    require(0 <= keep <= 1, f"keep is {keep}, not between 0 and 1")

    def edges(first: int, last: int) -> Edges:
        numbers = np.arange(first, last)
        chance = np.empty(last - first)
        random_kernels.uniform_units(random_kernels.key_of(seed), first, chance)
        node, down = numbers >> 1, (numbers & 1) == 1
        inside = np.where(down, node // width < height - 1, node % width < width - 1)
        kept = inside & (chance < keep)
        node = node[kept]
        return node, node + np.where(down[kept], width, 1)

    return EdgeStream(width * height, 2 * width * height, edges, undirected=True)


def grid(seed: int, width: int, height: int) -> EdgeStream:
    """The complete lattice of :func:`road`; the seed does not matter."""
    return road(seed, width, height, keep=1.0)


def _regular(size: Callable[[int], int], ends: Callable[[np.ndarray, int], Edges]) -> Callable[..., EdgeStream]:
    """A graph of some nodes by the number of its edges and the ends of those of given numbers."""

    def stream(seed: int, nodes: int) -> EdgeStream:
        require(nodes >= 1, f"nodes is {nodes}, but must be at least 1")
        return EdgeStream(nodes, size(nodes), lambda first, last: ends(np.arange(first, last), nodes))

    return stream


def _to_every_other(number: np.ndarray, nodes: int) -> Edges:
    source, target = number // (nodes - 1), number % (nodes - 1)
    return source, target + (target >= source)


STREAMS: dict[str, Callable[..., EdgeStream]] = {  # the seed does not matter from ``grid`` on
    "rmat": rmat,
    "uniform": uniform,
    "road": road,
    "grid": grid,
    "star": _regular(lambda nodes: nodes - 1, lambda number, nodes: (np.zeros_like(number), number + 1)),
    "path": _regular(lambda nodes: nodes - 1, lambda number, nodes: (number, number + 1)),
    "cycle": _regular(lambda nodes: nodes, lambda number, nodes: (number, (number + 1) % nodes)),
    "complete": _regular(lambda nodes: nodes * (nodes - 1), _to_every_other),
    "tree": _regular(lambda nodes: nodes - 1, lambda number, nodes: (number // 2, number + 1)),  # v: 2 v + 1, 2 v + 2
}


def generate(
    kind: str,
    comm: MPI.Intracomm,
    *,
    seed: int = 1,
    weights: str | None = None,
    symmetrize: bool = False,
    drop_loops: bool = False,
    dedup: bool = False,
    memory_limit: int | None = None,
    scratch: str | None = None,
    **parameters: int | float,
) -> CsrBuilder:
    """Fill a builder with a graph; each rank makes its share of the edges. Collective.

    >>> generate("cycle", MPI.COMM_SELF, nodes=4).build().targets
    array([1, 2, 3, 0], dtype=uint32)

    Parameters
    ----------
    kind : str
        A name in ``STREAMS``: the function that takes the ``parameters``.
    seed : int
        Of all random choices, including the weights.
    weights : str or None
        A range of edge weights such as ``"1:255"`` (integers) or ``"0.0:1.0"`` (float32), both ends included.
    symmetrize, drop_loops, dedup, memory_limit, scratch
        See :class:`~cusp.edge_lists.csr_builder.CsrBuilder`; lattices are always symmetrized.

    Raises
    ------
    OptionError
        If a parameter is unknown, missing or out of range.
    ScratchError
        On every rank, if a scratch file cannot be written.
    """
    require(kind in STREAMS, f"there is no graph {kind!r}; there are {', '.join(STREAMS)}")
    try:
        inspect.signature(STREAMS[kind]).bind(seed, **parameters)
    except TypeError as error:
        raise OptionError(f"{kind}: {error}") from error
    stream = STREAMS[kind](seed, **parameters)
    rule = None if weights is None else WeightRule.parse(weights)
    builder = CsrBuilder(
        comm,
        num_nodes=stream.num_nodes,
        weight_dtype=None if rule is None else rule.dtype,
        symmetrize=symmetrize or stream.undirected,
        drop_loops=drop_loops,
        dedup=dedup,
        memory_limit=memory_limit,
        scratch=scratch,
    )

    def make(first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        sources, targets = stream.edges(first, min(first + BATCH, stream.size))
        return sources, targets, None if rule is None else rule.weights(sources, targets, seed)

    with together(comm):
        for batch in ordered_map(make, range(comm.rank * BATCH, stream.size, comm.size * BATCH)):
            builder.add(*batch)
    return builder


def _two_arrays(size: int, num_nodes: int) -> Edges:
    return np.empty(size, index_dtype(num_nodes)), np.empty(size, index_dtype(num_nodes))
