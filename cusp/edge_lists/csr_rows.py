"""Finished rows of a CSR graph, bucket by bucket, on their way into arrays or a graph file."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from cusp.edge_lists.spool import Spool, Stored
from cusp.output.dataset_writer import DatasetWriter
from cusp.runtime.threads import ordered_map

SortedPart = tuple[Stored, Stored | None]  # consecutive edges of the finished graph: indices and, if any, weights


@dataclass(frozen=True)
class SortedBucket:
    """The finished rows of one bucket: its out-degrees (int64), from ``first_node`` on, and its edges."""

    first_node: int
    degrees: Stored
    parts: list[SortedPart]

    @property
    def num_edges(self) -> int:
        """In all its rows."""
        return sum(indices.size for indices, _ in self.parts)


def collect_buckets(
    spool: Spool, buckets: list[SortedBucket], indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None
) -> None:
    """Fill the arrays of a CSR with consecutive buckets, dropping each on the way."""
    waiting = deque(buckets)
    buckets.clear()
    indptr[0] = 0
    node, edge = 1, 0
    while waiting:
        bucket = waiting.popleft()
        degrees = spool.get(bucket.degrees)
        indptr[node : node + degrees.size] = degrees
        node += degrees.size
        for part_indices, part_weights in bucket.parts:
            place = slice(edge, edge + part_indices.size)
            indices[place] = spool.get(part_indices)
            if weights is not None and part_weights is not None:
                weights[place] = spool.get(part_weights)
            edge = place.stop
        drop_buckets(spool, [bucket])
    np.cumsum(indptr, out=indptr)


def write_buckets(
    writer: DatasetWriter, group: str, spool: Spool, buckets: list[SortedBucket], first_edge: int
) -> None:
    """Write consecutive buckets, whose first edge is ``first_edge``, with all threads.

    ``group`` is put before the names of the datasets: nothing, or ``csc/``. The zero at the head of
    ``indptr`` is not written.
    """

    def write(job: tuple[SortedBucket, int]) -> None:
        bucket, at = job
        writer.write(group + "indptr", bucket.first_node + 1, at + np.cumsum(spool.get(bucket.degrees)))
        for indices, weights in bucket.parts:
            writer.write(group + "indices", at, spool.get(indices))
            if weights is not None:
                writer.write(group + "data", at, spool.get(weights))
            at += indices.size

    starts = first_edge + np.cumsum([0] + [bucket.num_edges for bucket in buckets])
    for _ in ordered_map(write, zip(buckets, starts.tolist(), strict=False)):
        pass


def drop_buckets(spool: Spool, buckets: list[SortedBucket]) -> None:
    """Return the memory of buckets to the spool's budget, and empty the list."""
    for bucket in buckets:
        spool.drop(bucket.degrees, *(stored for part in bucket.parts for stored in part))
    buckets.clear()
