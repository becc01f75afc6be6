"""Hard graphs, graph files of them, and serial answers found by other algorithms than the system's own."""

import heapq
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import ranks
from hypothesis import strategies as st
from numpy.typing import DTypeLike

from cusp.input.checksum import checksum

TYPES = ("i8", "i8", "f8")  # of the weights of graphs of any shape; for every other one much would be compiled


class Graph(NamedTuple):
    """A list of edges, sorted by source: any order of targets, parallel edges and loops are allowed."""

    num_nodes: int
    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    @property
    def num_edges(self) -> int:
        """Number of edges, each of parallel ones counted."""
        return self.sources.size

    @property
    def degrees(self) -> np.ndarray:
        """(nodes,) int64: out-degrees."""
        return np.bincount(self.sources, minlength=self.num_nodes)

    @property
    def indptr(self) -> np.ndarray:
        """(nodes + 1,) int64."""
        return np.concatenate([[0], np.cumsum(self.degrees)]).astype(np.int64)

    def triples(self) -> list[tuple]:
        """All edges as sorted tuples (source, target, weight)."""
        return sorted(zip(self.sources.tolist(), self.targets.tolist(), self.weights.tolist(), strict=True))


def make(num_nodes: int, pairs: Any, weights: Any = None) -> Graph:
    """A graph of pairs (source, target) in any order; weights 1 to 9 unless they are given."""
    pairs = np.array(list(pairs), np.int64).reshape(-1, 2)
    if weights is None:
        weights = (pairs[:, 0] * 5 + pairs[:, 1] * 3 + np.arange(len(pairs))) % 9 + 1
    order = np.argsort(pairs[:, 0], kind="stable")  # rows keep the order in which their edges were named
    return Graph(num_nodes, pairs[order, 0], pairs[order, 1], np.asarray(weights)[order])


def both_ways(graph: Graph) -> Graph:
    """The graph and its reverse together; an edge and its reverse weigh the same."""
    pairs = np.stack([np.r_[graph.sources, graph.targets], np.r_[graph.targets, graph.sources]], axis=1)
    return make(graph.num_nodes, pairs, np.r_[graph.weights, graph.weights])


def before_and_added(graph: Graph) -> tuple[Graph, Graph]:
    """What a graph was before it grew, with fewer nodes; and the added edges, in both directions if it had both."""
    size = max(graph.num_nodes * 3 // 4, 1)
    low, high = np.minimum(graph.sources, graph.targets), np.maximum(graph.sources, graph.targets)
    kept = (high < size) & ((3 * low + 5 * high) % 4 > 0)
    before, added = ([each[some] for each in graph[1:]] for some in (kept, ~kept))
    return Graph(size, *before), Graph(graph.num_nodes, *added)


def random_directed(num_nodes: int = 60, num_edges: int = 300, seed: int = 1) -> Graph:
    """Edges between random nodes, unsorted, with loops and parallel edges."""
    rng = np.random.default_rng(seed)
    return make(num_nodes, rng.integers(0, num_nodes, (num_edges, 2)), rng.integers(1, 20, num_edges))


def lattice(size: int, width: int) -> np.ndarray:
    """(edges, 2): each of ``size`` nodes, in rows of ``width``, with the next in its row and the one below."""
    node = np.arange(size)
    right = np.stack([node[:-1], node[1:]], axis=1)[node[1:] % width > 0]
    return np.concatenate([right, np.stack([node[:-width], node[width:]], axis=1)])


def of_any_shape(random: np.random.Generator) -> Graph:
    """Of one of the shapes below, its nodes numbered at random, its weights of one of the TYPES."""
    kind = str(random.choice(["random"] * 4 + ["dense", "path", "ring", "lattice", "tree", "star", "skewed", "none"]))
    size = int(random.choice([random.integers(1, 8), random.integers(1, 60), random.integers(1, 200)]))
    node = np.arange(size)
    if kind == "random":
        pairs = random.integers(0, size, (int(random.integers(0, 4 * size)), 2))
    elif kind == "dense":
        size = min(size, 30)
        pairs = np.argwhere(random.random((size, size)) < 0.6)
    elif kind == "path":
        pairs = np.stack([node[:-1], node[1:]], axis=1)
    elif kind == "ring":
        pairs = np.stack([node, (node + random.integers(1, size + 1)) % size], axis=1)
    elif kind == "lattice":
        pairs = lattice(size, int(random.integers(1, 15)))
    elif kind == "tree":
        pairs = np.stack([(random.random(size - 1) * node[1:]).astype(np.int64), node[1:]], axis=1)
    elif kind == "star":
        pairs = np.stack([np.zeros_like(node), node], axis=1)[:, :: 1 if random.integers(2) else -1]
    elif kind == "skewed":
        pairs = (random.random((3 * size, 2)) ** 3 * size).astype(np.int64)
    else:
        pairs = np.empty((0, 2), np.int64)
    pairs = random.permutation(size)[pairs.reshape(-1, 2)]
    dtype = np.dtype(TYPES[random.integers(len(TYPES))])
    weights = random.integers(0 if random.integers(2) else 1, 20, len(pairs)).astype(dtype)
    if dtype.kind == "f" and random.integers(2):
        weights = random.random(len(pairs)).astype(dtype)
    graph = make(size, pairs, weights)
    return both_ways(graph) if random.integers(2) else graph


def _loops_and_doubles() -> Graph:
    pairs = [(0, 0), (0, 1), (0, 1), (0, 1), (1, 1), (1, 1), (1, 2), (2, 1), (2, 3), (3, 3), (3, 0), (4, 4)]
    return make(5, pairs, [3, 7, 2, 2, 1, 5, 4, 4, 9, 1, 6, 2])


def _hub() -> Graph:
    """Node 20 has an edge to and from every other, and there is a ring beside it."""
    ring = [(v, (v + 1) % 40) for v in range(40)]
    return make(40, ring + [(20, v) for v in range(40) if v != 20] + [(v, 20) for v in range(40) if v != 20])


HARD: dict[str, Callable[[], Graph]] = {
    "star": lambda: make(21, [(0, v) for v in range(1, 21)]),
    "star_inwards": lambda: make(21, [(v, 10) for v in range(21) if v != 10]),
    "path": lambda: make(30, [(v, v + 1) for v in range(29)]),
    "path_descending": lambda: make(30, [(v + 1, v) for v in range(29)]),
    "two_islands": lambda: make(16, [(u, v) for u in range(16) for v in range(16) if u != v and u // 8 == v // 8]),
    "loops_and_doubles": _loops_and_doubles,
    "two_nodes": lambda: make(2, [(1, 0), (0, 1), (1, 1)]),
    "three_nodes": lambda: make(3, [(2, 0), (0, 2), (2, 1)]),
    "one_node": lambda: make(1, []),
    "one_loop": lambda: make(1, [(0, 0)]),
    "no_edges": lambda: make(9, []),
    "hub": _hub,
    "complete": lambda: make(12, [(u, v) for u in range(12) for v in range(12) if u != v]),
    "last_isolated": lambda: make(70, [(u, (u * 7 + k) % 30) for u in range(30) for k in range(3)]),
    "first_isolated": lambda: make(70, [(u, 69 - u % 30) for u in range(40, 70)]),
    "random": random_directed,
    "random_symmetric": lambda: both_ways(random_directed(50, 120, seed=2)),
}
SYMMETRIC = ("two_islands", "complete", "random_symmetric", "no_edges", "one_node")


def write(
    path: str | Path,
    graph: Graph,
    *,
    index: DTypeLike = np.uint32,
    indptr: DTypeLike = np.int64,
    weight: DTypeLike | None = np.int64,
    symmetric: bool = False,
    sums: bool = False,
    transpose: bool = False,
    **storage: Any,
) -> str:
    """Write a graph file as a user would: plain datasets and no attributes unless they are asked for.

    ``weight=None`` leaves the weights out; ``storage`` are options of h5py such as ``compression``. Only
    rank 0 writes; returns when all can read. Collective.
    """
    options = {"index": index, "indptr": indptr, "weight": weight, "symmetric": symmetric, "sums": sums}
    if ranks.COMM.rank == 0:
        write_here(path, graph, **options, transpose=transpose, **storage)
    ranks.COMM.Barrier()
    return str(path)


def write_here(
    path: str | Path, graph: Graph, *, index: DTypeLike = np.uint32, indptr: DTypeLike = np.int64,
    weight: DTypeLike | None = np.int64, symmetric: bool = False, sums: bool = False, transpose: bool = False,
    **storage: Any,
) -> None:  # fmt: skip
    """As `write`, by the process that calls it."""
    with h5py.File(path, "w") as file:
        _write_group(file, graph, index, indptr, weight, sums, storage)
        if transpose:
            turned = make(graph.num_nodes, np.stack([graph.targets, graph.sources], axis=1), graph.weights)
            _write_group(file.create_group("csc"), turned, index, indptr, weight, sums, storage)
        if symmetric:
            file.attrs["symmetric"] = True


def _write_group(
    group: h5py.Group, graph: Graph, index: DTypeLike, indptr: DTypeLike, weight: DTypeLike | None, sums: bool,
    storage: dict[str, Any],
) -> None:  # fmt: skip
    arrays = {"indptr": graph.indptr.astype(indptr), "indices": graph.targets.astype(index)}
    if weight is not None:
        arrays["data"] = graph.weights.astype(weight)
    for name, values in arrays.items():
        dataset = group.create_dataset(name, data=values, **(storage if values.size else {}))
        if sums:
            dataset.attrs["checksum"] = np.uint64(checksum(values))


def serial_hops(graph: Graph, source: int) -> np.ndarray:
    """(nodes,) int32: hops by a queue, -1 where there is no path."""
    indptr, targets = graph.indptr.tolist(), graph.targets.tolist()
    hops = [-1] * graph.num_nodes
    hops[source] = 0
    queue = deque([source])
    while queue:
        node = queue.popleft()
        for target in targets[indptr[node] : indptr[node + 1]]:
            if hops[target] < 0:
                hops[target] = hops[node] + 1
                queue.append(target)
    return np.array(hops, np.int32)


def serial_distances(graph: Graph, source: int) -> np.ndarray:
    """(nodes,) int64 with -1, or float64 with inf, where there is no path: Dijkstra with a heap."""
    real = graph.weights.dtype.kind == "f"
    weights = graph.weights.astype(np.float64).tolist() if real else graph.weights.tolist()
    indptr, targets = graph.indptr.tolist(), graph.targets.tolist()
    distances: list[Any] = [None] * graph.num_nodes
    heap: list[tuple[Any, int]] = [(0, source)]
    while heap:
        distance, node = heapq.heappop(heap)
        if distances[node] is None:
            distances[node] = distance
            for edge in range(indptr[node], indptr[node + 1]):
                if distances[targets[edge]] is None:
                    heapq.heappush(heap, (distance + weights[edge], targets[edge]))
    far = np.inf if real else -1
    return np.array([far if d is None else d for d in distances], np.float64 if real else np.int64)


def serial_widths(graph: Graph, source: int) -> np.ndarray:
    """(nodes,) int64 or float64: the narrowest edge of the widest path, by a heap of the widest; lowest without one."""
    real = graph.weights.dtype.kind == "f"
    lowest, highest = (-np.inf, np.inf) if real else (-(2**63), 2**63 - 1)
    weights, indptr, targets = graph.weights.tolist(), graph.indptr.tolist(), graph.targets.tolist()
    widths: list[Any] = [lowest] * graph.num_nodes
    done = [False] * graph.num_nodes
    heap: list[tuple[Any, int]] = [(-highest, source)]
    while heap:
        width, node = heapq.heappop(heap)
        if done[node]:
            continue
        done[node], widths[node] = True, -width
        for edge in range(indptr[node], indptr[node + 1]):
            heapq.heappush(heap, (max(width, -weights[edge]), targets[edge]))
    return np.array(widths, np.float64 if real else np.int64)


@st.composite
def small_graphs(draw: st.DrawFn, most_nodes: int = 12, most_edges: int = 30) -> Graph:
    """Strategy: any graph of a few nodes, with loops, parallel edges, isolated nodes and zero weights."""
    num_nodes = draw(st.integers(1, most_nodes))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node, st.integers(0, 6)), max_size=most_edges))
    return make(num_nodes, [edge[:2] for edge in edges], np.array([edge[2] for edge in edges], np.int64))
