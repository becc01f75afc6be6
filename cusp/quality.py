"""How good a partition is: replication, balance, partners."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cusp.partition import Partition

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


@dataclass(frozen=True)
class Quality:
    """Counts of each rank, (ranks,) int64 each, and what follows from them.

    Attributes
    ----------
    masters, proxies, edges, partners : (ranks,) int64
        ``partners``: other ranks with which a rank has a node in common.
    num_nodes : int
    """

    masters: np.ndarray
    proxies: np.ndarray
    edges: np.ndarray
    partners: np.ndarray
    num_nodes: int

    @property
    def replication(self) -> float:
        """Replication factor: proxies of all ranks / nodes."""
        return float(self.proxies.sum() / self.num_nodes)

    @property
    def node_balance(self) -> float:
        """Proxies: maximum over the ranks / mean."""
        return balance(self.proxies)

    @property
    def edge_balance(self) -> float:
        """Edges: maximum over the ranks / mean."""
        return balance(self.edges)


def balance(counts: np.ndarray) -> float:
    """Maximum / mean; 1 is perfect, also for nothing at all."""
    return float(counts.max() / counts.mean()) if counts.any() else 1.0


def measure_quality(part: Partition, comm: "Intracomm") -> Quality:
    """Count what each rank holds. Collective."""
    mirrors = np.array(comm.allgather(np.diff(part.mirror_starts)))  # [r, s]: proxies on r of nodes of s
    held = comm.allgather((part.num_masters, part.num_proxies, part.num_local_edges))
    masters, proxies, edges = np.array(held, np.int64).T
    return Quality(masters, proxies, edges, ((mirrors + mirrors.T) > 0).sum(axis=1), part.num_nodes)
