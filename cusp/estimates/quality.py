"""The quality of a partition: replication, balance, partners, cut edges, traffic, memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cusp.errors import Intracomm
from cusp.partition import Partition

LABEL_BYTES = 4
NODE_BYTES = 8 + 8 + 1 + 4  # gids, offsets, has_in, lid table
TARGET_BYTES = 4


@dataclass(frozen=True)
class Quality:
    """Counts of each part, and what follows from them.

    Attributes
    ----------
    masters, proxies, edges : (parts,) int64
    mirrors : (parts, parts) int64
        ``[r, s]``: proxies on part r of nodes whose master is on part s.
    mirrors_in, mirrors_out : (parts,) int64
        Mirrors with in-edges, which are reduced after a push, and with out-edges, which get broadcasts.
    num_nodes : int
        Of the graph.
    moved_edges : int
        Edges that another part than their own has read, as estimated.
    """

    masters: np.ndarray
    proxies: np.ndarray
    edges: np.ndarray
    mirrors: np.ndarray
    mirrors_in: np.ndarray
    mirrors_out: np.ndarray
    num_nodes: int
    moved_edges: int = 0

    @property
    def replication(self) -> float:
        """Replication factor: proxies of all parts / nodes."""
        return float(self.proxies.sum() / self.num_nodes)

    @property
    def partners(self) -> np.ndarray:
        """(parts,): other parts with which a part shares a node."""
        found: np.ndarray = ((self.mirrors + self.mirrors.T) > 0).sum(axis=1)
        return found

    @property
    def node_balance(self) -> float:
        """Proxies: maximum over the parts / mean."""
        return balance(self.proxies)

    @property
    def edge_balance(self) -> float:
        """Edges: maximum over the parts / mean."""
        return balance(self.edges)

    @property
    def master_balance(self) -> float:
        """Masters: maximum over the parts / mean."""
        return balance(self.masters)

    @property
    def mb_a_round(self) -> float:
        """Most that a round can send, in MB: 4 bytes for every mirror with a role; for push and for pull."""
        return float((self.mirrors_in.sum() + self.mirrors_out.sum()) * LABEL_BYTES / 1e6)

    def memory_mb(self, weight_bytes: int = 0) -> float:
        """Memory of the largest part, in MB: its CSR, ids and the map from global to local ids."""
        edges = self.edges * (TARGET_BYTES + weight_bytes)
        return float((edges + self.proxies * NODE_BYTES + self.num_nodes // 4).max() / 1e6)

    def times(self, factor: int) -> "Quality":
        """That of a graph so many times as large, of which each part has so many times as much of everything."""
        return Quality(*(factor * count for count in vars(self).values()))

    def summary(self) -> dict[str, Any]:
        """The figures, by their names in rows."""
        return {
            "parts": self.masters.size,
            "replication": self.replication,
            "node_balance": self.node_balance,
            "edge_balance": self.edge_balance,
            "master_balance": self.master_balance,
            "partners": float(self.partners.mean()),
            "mb_a_round": self.mb_a_round,
            "memory_mb": self.memory_mb(),
        }


def balance(counts: np.ndarray) -> float:
    """Maximum / mean; 1 is perfect, and the answer if all counts are 0."""
    return float(counts.max() / counts.mean()) if counts.any() else 1.0


def measure_quality(part: Partition, comm: Intracomm) -> Quality:
    """Count what each rank holds. Collective."""
    mirrors = np.array(comm.allgather(np.diff(part.mirror_starts)), np.int64)
    mirror = slice(part.num_masters, None)
    roles = (int(part.has_in[mirror].sum()), int(part.has_out[mirror].sum()))
    counts = comm.allgather((part.num_masters, part.num_proxies, part.num_local_edges, *roles))
    masters, proxies, edges, mirrors_in, mirrors_out = np.array(counts, np.int64).T
    return Quality(masters, proxies, edges, mirrors, mirrors_in, mirrors_out, part.num_nodes)
