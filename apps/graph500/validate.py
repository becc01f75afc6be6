"""Validation of Graph500 (specification 2.0, section 8): what must hold of a tree, checked on the input edges.

It looks at the edge list, not at the graph made from it, so it also finds mistakes of construction. Every rank
checks the edges that it generated, for which it needs the answer for all nodes: 24 bytes per node on each rank.
"""

from typing import Any, NamedTuple

import numpy as np

from cusp.apps.graph500.interfaces import EdgeList
from cusp.apps.verify.check import VerificationError
from cusp.kernels.arrays import total
from cusp.kernels.interfaces import Build
from cusp.partition import Partition
from cusp.runtime.devices import backend, move, to_host
from cusp.runtime.mpi import MPI


class EdgeTuples(NamedTuple):
    """The edges that this rank generated, each undirected, with loops and parallel edges; on its device.

    Attributes
    ----------
    num_nodes, num_edges : int
        Of all ranks.
    sources, targets : (edges,) uint32 or int64
    weights : (edges,) float32, or None
    device : {'cpu', 'gpu'}
    """

    num_nodes: int
    num_edges: int
    sources: Any
    targets: Any
    weights: Any
    device: str


class Validator:
    """Checks the trees of one partitioned edge list. Its functions are collective."""

    def __init__(self, tuples: EdgeTuples, part: Partition, comm: MPI.Intracomm) -> None:
        self._tuples, self._comm = tuples, comm
        self._build = backend(Build, tuples.device)
        self._xp = self._build.xp
        self._gids = self._gather(part.gids[: part.num_masters])

    def check(self, source: int, parents: Any, depths: Any, weighted: bool) -> int:
        """Check a tree by the five rules, and count the input edges in the component that was traversed. Collective.

        1. The tree has no cycles. 2. A tree edge joins nodes whose depths differ by its length: 1, or its weight for
        shortest paths. 3. No input edge joins nodes whose depths differ by more than its length. 4. The tree spans
        the component: no input edge joins a reached node to one that is not. 5. An input edge joins a node to its
        parent.

        Parameters
        ----------
        parents : (masters,) int64
            The source is its own; -1 where not reached.
        depths : (masters,) int32 hops with -1, or float64 distances with inf, where not reached
        weighted : bool
            Lengths are the weights of the edges.

        Raises
        ------
        VerificationError
            On every rank, with the rule and the node or edge.
        """
        xp = self._xp
        parent, depth = self._by_gid(parents), self._by_gid(depths)
        if depth.dtype.kind == "f":
            far = depth.dtype.type(np.inf)
        else:
            far = np.int32(1 << 30)
            depth[depth < 0] = far
        reached = depth != far
        self._check_nodes(source, parent, depth, reached)
        joined = xp.zeros(depth.size, np.bool_)
        wrong, traversed = self._check_edges(parent, depth, far, joined, weighted)
        self._tell(wrong)
        joined = self._anywhere(joined)
        joined[source] = True
        self._tell(
            _first(reached & ~joined, "rules 2 and 5: no input edge of the right length joins it to its parent:")
        )
        self._check_cycles(parent, depth, reached, source)
        return int(self._comm.allreduce(traversed))

    def _check_nodes(self, source: int, parent: Any, depth: Any, reached: Any) -> None:
        """What needs no edges: the same on all ranks."""
        xp = self._xp
        if int(parent[source]) != source or float(depth[source]) != 0:
            raise VerificationError(
                f"rule 1: the source {source} has the parent {parent[source]}, depth {depth[source]}"
            )
        wrong = (parent >= parent.size) | (parent < -1) | ((parent >= 0) != reached)
        self._tell(_first(wrong, "rule 1: reached without a parent, or the other way round:"))
        if depth.dtype.kind != "f":
            above = xp.where(reached, depth[xp.maximum(parent, 0)] + 1, depth)
            above[source] = 0
            self._tell(_first(above != depth, "rule 2: not one hop further away than its parent:"))

    def _check_edges(self, parent: Any, depth: Any, far: Any, joined: Any, weighted: bool) -> tuple[str | None, int]:
        """Check rules 3 and 4 on this rank's edges; set marks for rule 5; count the edges that were traversed."""
        tuples = self._tuples
        sources, targets, lengths = tuples.sources, tuples.targets, tuples.weights if weighted else None
        check = backend(EdgeList, tuples.device).check_edges
        wrong, traversed = check(sources, targets, lengths, parent, depth, far, joined)
        if wrong < 0:
            return None, traversed
        ends = int(sources[wrong]), int(targets[wrong])
        depths = [depth[end].item() for end in ends]
        rule, length = 4 if far in depths else 3, 1 if lengths is None else lengths[wrong].item()
        nodes = " and ".join(f"node {end} at depth {value}" for end, value in zip(ends, depths))
        return f"rule {rule}: an input edge of length {length} joins {nodes}", traversed

    def _check_cycles(self, parent: Any, depth: Any, reached: Any, source: int) -> None:
        """Depths fall from a node to its parent, except over edges of length 0, which are followed until they do."""
        xp = self._xp
        level = xp.flatnonzero(reached & (depth[xp.maximum(parent, 0)] == depth))
        level = level[level != source]
        above = parent[level]
        for _ in range(level.size):
            on = (depth[above] == depth[level]) & (above != source)
            if not total(on):
                return
            level, above = level[on], parent[above[on]]
        if level.size and bool(((depth[above] == depth[level]) & (above != source)).any()):
            raise VerificationError(f"rule 1: node {level[0]} is its own ancestor")

    def _by_gid(self, values: Any) -> Any:
        whole = self._xp.empty(self._tuples.num_nodes, values.dtype)
        whole[self._gids] = self._gather(values)
        return whole

    def _gather(self, values: Any) -> Any:
        """The values of all ranks, concatenated. Collective."""
        return self._xp.concatenate(self._build.all_to_all(self._comm, [values] * self._comm.size))

    def _anywhere(self, marks: Any) -> Any:
        """Marks that any rank has set. Collective."""
        bits = to_host(self._xp.packbits(marks))
        self._comm.Allreduce(MPI.IN_PLACE, bits, MPI.BOR)
        return self._xp.unpackbits(move(bits, self._tuples.device))[: marks.size].astype(np.bool_)

    def _tell(self, message: str | None) -> None:
        """Raise the first message of any rank. Collective."""
        messages = [text for text in self._comm.allgather(message) if text is not None]
        if messages:
            raise VerificationError(messages[0])


def _first(wrong: Any, message: str) -> str | None:
    return f"{message} node {int(wrong.argmax())}" if bool(wrong.any()) else None
