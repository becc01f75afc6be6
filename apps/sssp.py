"""Single-source shortest paths by delta-stepping, with buckets that all ranks agree on.

``mpirun -n 4 python -m apps.sssp graph.h5 --source 17 --delta 8 --verify --output distance.h5``

>>> from cusp import partition_graph, sssp
>>> graph = partition_graph(([0, 0, 1], [1, 2, 2], [2, 9, 3]))  # sources, targets, weights
>>> sssp(graph, source=0).distance
array([0, 2, 5])
"""

import argparse
import sys
from typing import Any

import numpy as np

from cusp.apps.edge_operator import EdgeOperator
from cusp.apps.harness import Answer, App, main
from cusp.apps.operators.expressions.interfaces import Drain
from cusp.apps.operators.interfaces import without_rounds
from cusp.apps.operators.traversal.interfaces import GpuSssp, Sssp
from cusp.apps.operators.ways import relax_all, way_of
from cusp.apps.shared.lengths import Lengths, bucket_end, measure
from cusp.apps.verify.paths import verify_distances
from cusp.errors import GraphFileError, together
from cusp.launch import run_main
from cusp.partition import Partition
from cusp.runtime.devices import backend, to_host, xp_of
from gluon.label import Label
from gluon.reduction import MAX, MIN
from gluon.sync import Sync

MARK_TOO_FAR = EdgeOperator("1", into="dst.mark", where="src.distance < far and weight >= far - src.distance")


def sssp(part: Partition, sync: Sync, source: int, lengths: Lengths) -> Answer:
    """Distance from ``source`` to every node along out-edges. Collective.

    Delta-stepping (Meyer and Sanders, J. Algorithms 2003), bulk-asynchronous: all ranks agree on the lowest bucket that
    is not empty, each drains its part of it without waiting for the others, then the distances are synchronised.

    Parameters
    ----------
    lengths : Lengths
        What :func:`~cusp.apps.shared.lengths.measure` returned for this partition.

    Returns
    -------
    Answer
        ``distance`` of this rank's masters: int64 with -1, or float64 with inf, where there is no path.

    Raises
    ------
    GraphFileError
        A distance is above 2^63 - 2: the largest int64 stands for no path.
    """
    return _answer(part, sync, source, lengths, *distances_from(part, sync, source, lengths))


def distances_from(part: Partition, sync: Sync, source: int, lengths: Lengths) -> tuple[Any, Any]:
    """Distances of all proxies, ``lengths.far`` where there is no path, and rounds. Collective.

    Those of mirrors may be stale.
    """
    ops = backend(Sssp, part.device)
    if ops.drains(lengths.queue, sync):
        found = backend(GpuSssp, part.device).shortest_paths(part, sync, source, lengths)
        sync.count_peers(found[1])
        return found
    distances = Label(part, lengths.dtype, lengths.far, MIN)
    distances.write(source, 0)
    if ops.settles(lengths.queue) and not without_rounds(part, sync):
        return distances.values, Settling(part, sync, distances, lengths).settle_and_pull()
    drain: Drain = Relaxing(part, distances, lengths) if part.device == "gpu" else _operator(part, distances, lengths)
    way = way_of(part, sync)
    rounds = relax_all(_expression(lengths), drain, way, part, sync, distances, sync.write, sync.read)
    return distances.values, rounds


def _expression(lengths: Lengths) -> str:
    return "src.distance + 1" if lengths.unit else "src.distance + weight"


def _operator(part: Partition, distances: Label, lengths: Lengths) -> Drain:
    """Pending nodes of the operator that shortest paths are."""
    delta = min(lengths.delta, sys.float_info.max)
    return EdgeOperator(_expression(lengths), "dst.distance", delta=delta).drain(part, distance=distances)


class Relaxing:
    """Pending nodes that the kernels of sssp.cuh relax: a Drain of operators/expressions/interfaces.py.

    Attributes
    ----------
    relaxed_at : (proxies,) of the type of the distances
        The distance at which a node's out-edges were last relaxed.
    pending : bits of proxies
    """

    edges = 0

    def __init__(self, part: Partition, distances: Label, lengths: Lengths) -> None:
        self._part, self._distances, self._lengths, self._lowest = part, distances, lengths, lengths.far.item()
        device = distances.device
        self.relaxed_at = device.full(part.num_proxies, lengths.far, lengths.dtype)
        self.pending = device.no_bits(part.num_proxies)

    def add(self, bits: Any) -> None:
        ops, distances = backend(GpuSssp, self._part.device), self._distances.values
        self._lowest = ops.find_pending(bits, distances, self.relaxed_at, self.pending, self._lengths.far)

    def lowest(self) -> Any:
        return self._lengths.dtype.type(self._lowest)

    def count(self) -> int:
        return int(self._distances.device.count_bits(self.pending, self._part.num_proxies))

    def bucket_end(self, lowest: Any) -> Any:
        number = self._lengths.dtype.type
        return bucket_end(number(lowest), number(min(self._lengths.delta, self._lengths.far)), self._lengths.far)

    def run(self, edges: int) -> bool:
        if self._lowest == self._lengths.far:
            return False
        self.run_below(self.bucket_end(self._lowest))
        return True

    def run_below(self, limit: Any) -> None:
        part, lengths, distances = self._part, self._lengths, self._distances
        backend(GpuSssp, part.device).relax_below(
            limit, lengths.delta, lengths.far, part.offsets, part.targets, lengths.weights, distances.values,
            self.relaxed_at, self.pending, distances.updated, lengths.queue,
        )  # fmt: skip

    def run_all(self, sync: Sync, write: str, read: str) -> int:
        raise AssertionError("a whole search is shortest_paths")


class Settling:
    """Distances that are settled bucket by bucket, on GPUs.

    Attributes
    ----------
    distances : Label
    rounds : int
    """

    def __init__(self, part: Partition, sync: Sync, distances: Label, lengths: Lengths) -> None:
        self.part, self.sync, self.distances, self.lengths, self.rounds = part, sync, distances, lengths, 0
        self.drain = Relaxing(part, distances, lengths)

    def lowest_pending(self) -> Any:
        """Lowest distance of a pending node of any rank, ``lengths.far`` if there is none. Collective."""
        self.drain.add(self.distances.swap_updated())
        return self.sync.lowest(self.drain.lowest())

    def settle_and_pull(self) -> int:
        """Settle distances bucket by bucket until most edges belong to settled nodes; the others pull. Collective.

        A bucket relaxes, of every node that is settled, just the edges that lead into it, and of every node that falls
        into it, those that stay inside. So nothing travels but distances of its nodes.
        """
        self.distances.swap_updated()  # every proxy of the source knows its distance
        low = self._settle_buckets()
        if low != self.lengths.far:
            self._pull(low)
        return self.rounds

    def _settle_buckets(self) -> Any:
        """Settle until most edges belong to settled nodes; all nodes below the distance returned are. Collective."""
        ops, lengths, far, low = backend(GpuSssp, self.part.device), self.lengths, self.lengths.far.item(), 0
        for _ in range(ops.MOST_BUCKETS):
            high = low + lengths.delta if far - low > lengths.delta else far
            settled, lowest = ops.open_bucket(self.part, low, high, far, self.distances.values, lengths.queue)
            (settled,), lowest = self.sync.total(settled), self.sync.lowest(lowest, lengths.dtype)
            if lowest == far:
                return far
            if settled >= ops.ENOUGH * self.part.num_edges:
                break
            if lowest < high:
                self._settle(high)
            low = max(high, lowest)
        return low

    def _settle(self, high: Any) -> None:
        """Relax below ``high`` until no rank has anything left to do there. Collective."""
        ops = backend(GpuSssp, self.part.device)
        while True:
            ops.settle_bucket(self.part, high, self.lengths.far.item(), self.distances.values, self.drain.relaxed_at,
                              self.drain.pending, self.distances.updated, self.lengths.queue)  # fmt: skip
            self.sync(self.distances)
            self.sync.end_round()
            self.rounds += 1
            if self.lowest_pending() == self.lengths.far:
                return

    def _pull(self, low: Any) -> None:
        """Nodes not settled below ``low`` look for their distance at their in-neighbours. Collective."""
        part, distances, far = self.part, self.distances, self.lengths.far.item()
        ops = backend(GpuSssp, part.device)
        ops.mark_reached(part, far, distances.values, distances.updated)
        self.sync.broadcast(distances, read="dst")
        distances.swap_updated()  # what is marked there is settled
        ops.pull(part, low, far, distances.values, distances.updated, self.lengths.queue)
        self.sync.reduce(distances, write="src")
        self.sync.broadcast(distances, read="any")
        if self.lowest_pending() != far:
            self._settle(far)


def _answer(part: Partition, sync: Sync, source: int, lengths: Lengths, distances: Any, rounds: Any) -> Answer:
    """Distances of this rank's masters, if all fit. Collective."""
    if lengths.may_overflow:
        _refuse_overflow(part, sync, source, lengths, distances)
    values, unreached = distances[: part.num_masters], lengths.far
    if lengths.dtype.kind != "f":
        values, unreached = xp_of(part.device).where(values == lengths.far, np.int64(-1), values), -1
    return Answer({"distance": values}, unreached, rounds)


def _refuse_overflow(part: Partition, sync: Sync, source: int, lengths: Lengths, distances: Any) -> None:
    """Raise if a node was not reached only because its distance does not fit. Collective."""
    marks, far = Label(part, np.int32, 0, MAX), int(lengths.far)
    MARK_TOO_FAR(part, mark=marks, distance=distances, far=far)
    sync.reduce(marks, write="dst")
    own = slice(0, part.num_masters)
    lost = np.flatnonzero(to_host((marks.values[own] == 1) & (distances[own] == lengths.far)))
    with together(sync.comm):
        if lost.size:
            raise GraphFileError(
                f"the distance from node {source:,} to node {part.gids[lost[0]]:,} is above 2^63 - 2, "
                "the largest that fits into 64 bits; use smaller weights or floats"
            )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this app alone."""
    parser.add_argument("--delta", type=float, help="width of a bucket (default: chosen from weights and degrees)")


APP = App(
    name="sssp",
    summary="single-source shortest paths by delta-stepping",
    prepare=lambda part, sync, options: measure(part, sync, options.delta),
    run=lambda part, sync, source, lengths, options: sssp(part, sync, source, lengths),
    verify=lambda part, sync, source, answer, lengths, options: verify_distances(part, sync, source, **answer.labels),
    add_options=add_options,
    weighted=True,
    needs_rounds=lambda options: "",
)

if __name__ == "__main__":
    run_main(lambda comm, argv: main(APP, comm, argv))
