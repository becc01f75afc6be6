"""Finished rows of a CSR graph, bucket by bucket, on their way into a graph file."""

from dataclasses import dataclass

import numpy as np

from cusp.edge_lists.spool import Spool, Stored
from cusp.edge_lists.threads import ordered_map
from cusp.output.graph_writer import GraphWriter


@dataclass(frozen=True)
class Part:
    """Consecutive edges of the finished graph: indices and, if there are any, weights."""

    indices: Stored
    weights: Stored | None


@dataclass(frozen=True)
class Rows:
    """The finished rows of one bucket: its out-degrees (int64), from ``first_node`` on, and its edges."""

    first_node: int
    num_edges: int
    degrees: Stored
    parts: list[Part]


def write_rows(writer: GraphWriter, group: str, spool: Spool, rows: list[Rows], first_edge: int) -> None:
    """Write consecutive rows, whose first edge is ``first_edge``, with all threads.

    ``group`` is put before the names of the datasets: nothing, or ``csc/``. The zero at the head of
    ``indptr`` is not written.
    """

    def write(job: tuple[Rows, int]) -> None:
        row, at = job
        ends = at + np.cumsum(spool.get(row.degrees))
        writer.write(group + "indptr", row.first_node + 1, ends)
        for part in row.parts:
            writer.write(group + "indices", at, spool.get(part.indices))
            if part.weights is not None:
                writer.write(group + "data", at, spool.get(part.weights))
            at += part.indices.size

    starts = first_edge + np.cumsum([0] + [row.num_edges for row in rows])
    for _ in ordered_map(write, zip(rows, starts.tolist(), strict=False)):
        pass


def drop_rows(spool: Spool, rows: list[Rows]) -> None:
    """Give the memory of rows back, and forget them."""
    for row in rows:
        spool.drop(row.degrees)
        for part in row.parts:
            spool.drop(part.indices)
            if part.weights is not None:
                spool.drop(part.weights)
    rows.clear()
