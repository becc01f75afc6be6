"""Graph algorithms as products of a matrix and a vector over a semiring, as in GraphBLAS.

::

    A = Matrix(part, sync)                            # A[u, v] is the weight of the edge u -> v
    y = A.multiply(x, add=ADD)                        # y = A x: over the out-edges of u, y[u] = sum of A[u, v] * x[v]
    y = A.T.multiply(x, add=MIN, multiply="x + weight")

Breadth-first search, shortest paths and PageRank, each a few lines, are a program too:
``mpirun -n 4 python -m apps.semiring graph.h5 --algorithm sssp --source 17 --verify``
"""

import argparse
import functools
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.harness import Answer, App, main
from cusp.apps.pagerank import LEAST
from cusp.apps.shared.lengths import refuse_overflow
from cusp.apps.verify.centrality import verify_pagerank
from cusp.apps.verify.paths import verify_distances, verify_hops
from cusp.launch import run_main
from cusp.partition import Partition
from cusp.program.cli import between
from gluon.label import Label
from gluon.reduction import ADD, MIN, Reduction
from gluon.sync import Sync


class Matrix:
    """The adjacency matrix of a partitioned graph, with products over any semiring.

    Vectors are labels. The entry of a node is that of its master; a product brings mirrors the values that it reads.

    Attributes
    ----------
    T : Matrix
        The transpose, of the same edges.
    """

    def __init__(self, part: Partition, sync: Sync, transposed: bool = False) -> None:
        self.part, self.sync = part, sync
        self._transposed = transposed
        self._read, self._write = ("src", "dst") if transposed else ("dst", "src")

    @property
    def T(self) -> "Matrix":  # noqa: N802 - as in NumPy
        """The transpose: ``A.T.multiply(x)`` goes along the edges, ``A.multiply(x)`` against them."""
        return Matrix(self.part, self.sync, not self._transposed)

    def vector(self, dtype: DTypeLike, add: Reduction = ADD, fill: float | None = None) -> Label:
        """A vector of zeros of the semiring, which are identities of ``add``, or of ``fill``."""
        return Label(self.part, dtype, add.identity(np.dtype(dtype)).item() if fill is None else fill, add)

    def changed(self, x: Label) -> int:
        """Entries that changed since the last sparse product. Collective."""
        return int(self.sync.total(x.num_updated_masters())[0])

    def multiply(
        self, x: Label, add: Reduction = ADD, multiply: str = "x * weight", *, into: Label | None = None,
        mask: Label | None = None, sparse: bool = False, **numbers: float,
    ) -> Label:  # fmt: skip
        """y[u] = ``add`` over the entries A[u, v] of ``multiply`` of x[v] and A[u, v]. Collective.

        Parameters
        ----------
        add, multiply : Reduction and str
            The semiring. ``multiply`` is an edge expression (:class:`cusp.apps.edge_operator.EdgeOperator`) of ``x``,
            ``weight``, ``y`` (the entry that is written) and ``numbers``.
        into : Label, optional
            Combine the products into this vector, by its own reduction, instead of a new one of the type of ``x``. It
            may be ``x``.
        mask : Label, optional
            Only entries of y where this is not 0 are written.
        sparse : bool
            Only entries of x that changed since the last sparse product are read.
        """
        if not sparse:
            x.mark_all()
        self.sync.broadcast(x, read=self._read)
        frontier = x.swap_updated()
        if into is not None and into.reduction.idempotent:
            y = into
        else:  # in a sum, mirrors hold shares during a pass, but copies before it
            y = self.vector((into or x).values.dtype, into.reduction if into else add)
            if into is not None:
                y.masters()[:] = into.masters()
        given: dict[str, Any] = {name: value for name, value in {"x": x, "mask": mask}.items() if value is not None}
        if mask is not None:
            mask.mark_all()
            self.sync.broadcast(mask, read=self._write)
            mask.swap_updated()
        operator = _operator(multiply, self._write, mask is not None)
        operator(self.part, frontier=frontier if sparse else None, y=y, **given, **numbers)
        self.sync.reduce(y, write=self._write)
        if into is None or y is into:
            return y
        into.masters()[:] = y.masters()
        into.updated |= y.updated
        return into


@functools.cache
def _operator(multiply: str, write: str, masked: bool) -> EdgeOperator:
    return EdgeOperator(multiply, f"{write}.y", f"{write}.mask" if masked else None)


def bfs(A: Matrix, source: int) -> Answer:
    """Hops from ``source``: hops = min(hops, A^T hops) over (min, + 1), until nothing changes. Collective."""
    return _spread(A, source, "hops", "x + 1", np.int32)


def sssp(A: Matrix, source: int) -> Answer:
    """Distances from ``source``: d = min(d, A^T d) over (min, +), until nothing changes. Collective."""
    real = A.part.weights is not None and A.part.weights.dtype.kind == "f"
    return _spread(A, source, "distance", "x + weight", np.float64 if real else np.int64)


def _spread(A: Matrix, source: int, name: str, multiply: str, dtype: DTypeLike) -> Answer:
    """x = min(x, A^T x), from 0 at the source until nothing changes. Collective."""
    x, rounds = A.vector(dtype, MIN), 0
    x.write(source, 0)
    while A.changed(x):
        A.T.multiply(x, multiply=multiply, into=x, sparse=True)
        rounds += 1
    refuse_overflow(A.part, A.sync, source, x.values, x.identity)
    values, nothing = x.masters(), x.identity
    if values.dtype.kind == "f":
        return Answer({name: values}, nothing, rounds)
    return Answer({name: x.device.xp.where(values == nothing, -1, values)}, -1, rounds)


def pagerank(A: Matrix, damping: float = 0.85, tolerance: float = 1e-6) -> Answer:
    """Ranks: r = damping (P^T r + dangling / n) + (1 - damping) / n, with A's rows scaled to 1 in P. Collective."""
    part, sync, rounds, change = A.part, A.sync, 0, np.inf
    links = A.T if not part.symmetric else A  # the same pattern; rows are gathered where they are stored
    share, degrees = A.vector(np.float64), part.degrees
    ranks = share.masters() + 1 / part.num_nodes
    while change >= tolerance:
        share.masters()[:] = ranks / share.device.xp.maximum(degrees, 1)
        dangling = sync.total(float(ranks[degrees == 0].sum()))[0]
        arrived = links.multiply(share, multiply="x").masters()
        new = damping * (arrived + dangling / part.num_nodes) + (1 - damping) / part.num_nodes
        change = sync.total(float(abs(new - ranks).sum()))[0]
        ranks, rounds = new, rounds + 1
    return Answer({"pagerank": ranks}, None, rounds, {"l1_change": change})


ALGORITHMS = {
    "bfs": lambda A, source, options: bfs(A, source),
    "sssp": lambda A, source, options: sssp(A, source),
    "pagerank": lambda A, source, options: pagerank(A, tolerance=options.tolerance),
}


def verify(part: Partition, sync: Sync, source: int, answer: Answer, options: argparse.Namespace) -> None:
    """Check an answer like that of the app of the same name. Collective."""
    if options.algorithm == "bfs":
        verify_hops(part, sync, source, answer.labels["hops"])
    elif options.algorithm == "sssp":
        verify_distances(part, sync, source, answer.labels["distance"])
    else:
        teleport = np.full(part.num_masters, 1 / part.num_nodes)
        verify_pagerank(part, sync, answer.labels["pagerank"], teleport, 0.85, options.tolerance + 1e-14)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument("--algorithm", choices=tuple(ALGORITHMS), default="bfs", help="what to run (default: bfs)")
    parser.add_argument(
        "--tolerance", type=between(LEAST["float64"], 1), default=1e-6, metavar="T", help="of pagerank (default: 1e-6)"
    )


APP = App(
    name="semiring",
    summary="breadth-first search, shortest paths or PageRank as products of a matrix and vectors over a semiring",
    run=lambda part, sync, source, prepared, options: ALGORITHMS[options.algorithm](
        Matrix(part, sync), source, options
    ),
    verify=lambda part, sync, source, answer, prepared, options: verify(part, sync, source, answer, options),
    add_options=add_options,
    weighted=True,
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
